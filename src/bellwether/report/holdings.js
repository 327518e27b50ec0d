// Who holds what: a column of the map for each client, and each label's share of the samples.
"use strict";

function drawHoldings(holdings) {
  const { NARROW, css, plain, axis, titled, layout, draw } = canvas;
  const div = document.getElementById("holdings");
  if (!div) return;
  const { labels, clients, counts, population, server } = holdings;
  const narrow = div.clientWidth < NARROW;
  const rows = labels.map((_, label) => label);
  const share = (values) => {
    const total = values.reduce((sum, value) => sum + value, 0);
    return values.map((value) => (total ? (100 * value) / total : 0));
  };
  const names = labels.map(plain);
  const bars = [["population", population, css("--shared")], ["server", server, css("--held")]]
    .filter(([, values]) => values !== null);
  const step = Math.ceil(rows.length / 25);
  const ticks = rows.filter((row) => row % step === 0);
  const labelled = {
    tickvals: ticks, ticktext: ticks.map((row) => names[row]), showgrid: false, ticks: "",
    range: [rows.length - 0.5, -0.5],
  };
  const height = Math.max(220, Math.min(18 * rows.length, 460));
  const data = [
    {
      type: "heatmap", x: clients, y: rows, z: rows.map((row) => counts.map((held) => held[row])),
      colorscale: [[0, css("--tint")], [1, css("--held")]], zmin: 0, showscale: false,
      xgap: clients.length > 150 ? 0 : 1, ygap: 1, text: rows.map((row) => clients.map(() => names[row])),
      hovertemplate: "client %{x}, label %{text}: %{z} samples<extra></extra>",
    },
    ...bars.map(([name, values, color]) => ({
      type: "bar", orientation: "h", name, xaxis: "x2", yaxis: "y2", y: rows, x: share(values),
      marker: { color }, customdata: values, text: names, textposition: "none",
      hovertemplate: `${name}, label %{text}: %{x:.1f} % (%{customdata:,} samples)<extra></extra>`,
    })),
  ];
  const key = bars.map(([name, , color]) => `<span style="color:${color}">■</span> ${name}`);
  draw(div, data, layout(div, {
    height: narrow ? 2 * height + 150 : height + 80, barmode: "group", bargap: 0.25,
    hovermode: "closest", margin: { l: 24, r: 12, t: 28, b: 48 },
    xaxis: axis({
      title: titled("client"), showgrid: false, ticks: "",
      domain: narrow ? [0, 1] : [0, 0.66],
    }),
    yaxis: axis({ ...labelled, domain: narrow ? [0.58, 1] : [0, 1], title: titled("label") }),
    xaxis2: axis({
      title: titled("share of samples"), ticksuffix: " %", anchor: "y2",
      domain: narrow ? [0, 1] : [0.71, 1], rangemode: "tozero", nticks: 5, ticks: "",
    }),
    yaxis2: axis({
      ...labelled, anchor: "x2", domain: narrow ? [0, 0.42] : [0, 1], showticklabels: narrow,
    }),
    annotations: [{
      text: key.join("   "), showarrow: false, xref: "x2 domain", x: 0, xanchor: "left",
      yref: "y2 domain", y: 1, yanchor: "bottom", font: { size: 12 },
    }],
  }));
}
