// Who came: a row for each seed, a column for each client (or some neighbours).
"use strict";

function drawComing(coming) {
  const { NARROW, css, plain, axis, titled, layout, draw } = canvas;
  const div = document.getElementById("came");
  if (!div) return;
  const { width, rows, times } = coming;
  const narrow = div.clientWidth < NARROW;
  const label = (row) => (narrow ? plain(row).replace(", ", "<br>") : plain(row));
  const most = Math.max(1, ...times.map((row) => Math.max(...row)));
  draw(div, [{
    type: "heatmap", z: times, x: times[0].map((_, at) => at * width), y: rows.map((_, at) => at),
    colorscale: [[0, css("--tint")], [1, css("--held")]], zmin: 0, zmax: most, showscale: false,
    xgap: times[0].length > 150 ? 0 : 1, ygap: 2, text: rows.map((row) => times[0].map(() => plain(row))),
    hovertemplate: width > 1
      ? `%{text}: ${width} clients from %{x} came %{z} times<extra></extra>`
      : "%{text}: client %{x} came %{z} times<extra></extra>",
  }], layout(div, {
    height: 80 + Math.min(34 * rows.length, 520), hovermode: "closest",
    xaxis: axis({ title: titled("client"), showgrid: false, ticks: "" }),
    yaxis: axis({
      tickvals: rows.map((_, at) => at), ticktext: rows.map(label), showgrid: false, ticks: "",
      range: [rows.length - 0.5, -0.5],
    }),
  }));
}
