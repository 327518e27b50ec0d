// The page of a federation: who holds what, how much, and who comes.
"use strict";
(() => {
  const { NARROW, css, axis, titled, layout, draw, redraw } = canvas;
  const { holdings, sizes, labels, coming } = JSON.parse(
    document.getElementById("results").textContent);

  function drawAmounts() {
    const div = document.getElementById("amounts");
    const narrow = div.clientWidth < NARROW;
    const panels = [["samples", sizes], ["labels", labels]].filter(([, bars]) => bars !== null);
    const names = (bars) => bars.map(([low, high]) => (low < high ? `${low}–${high}` : `${low}`));
    const rows = narrow && panels.length > 1;
    const domain = (at) => (panels.length < 2 ? [0, 1] : at ? [0.56, 1] : [0, 0.44]);
    const axes = {};
    const data = panels.map(([what, bars], at) => {
      const tail = at ? "2" : "";
      const first = bars[0][0], last = bars[bars.length - 1][1];
      const width = bars[0][1] - first + 1;
      const margin = Math.max(0, 3 - (last - first) / 2); // a single bar is not as wide as the page
      axes[`xaxis${tail}`] = axis({
        title: titled(`${what} a client`), showgrid: false, showline: true, tickformat: ",d",
        domain: rows ? [0, 1] : domain(at), anchor: `y${tail}`,
        range: [first - 0.5 - margin, last + 0.5 + margin], nticks: 8,
        tickvals: last - first < 12 && width === 1 ? bars.map(([low]) => low) : undefined,
      });
      axes[`yaxis${tail}`] = axis({
        title: titled("clients"), showline: false, ticks: "", nticks: 5, tickformat: ",d",
        domain: rows ? domain(1 - at) : [0, 1], anchor: `x${tail}`,
        range: [0, 1.06 * Math.max(...bars.map(([, , count]) => count))],
      });
      return {
        type: "bar", xaxis: `x${tail}`, yaxis: `y${tail}`, marker: { color: css("--held") },
        x: bars.map(([low, high]) => (low + high) / 2), y: bars.map(([, , count]) => count),
        width: bars.map(() => 0.88 * width), text: names(bars), textposition: "none",
        hovertemplate: `%{text} ${what}: %{y:,} clients<extra></extra>`,
      };
    });
    draw(div, data, layout(div, {
      height: rows ? 480 : 260, margin: { l: 48, r: 12, t: 12, b: 48 }, ...axes,
    }));
  }

  function drawComing() {
    const div = document.getElementById("coming");
    const { width, there } = coming;
    const most = Math.max(1, ...there.map((round) => Math.max(...round)));
    draw(div, [{
      type: "heatmap", z: there, x: there[0].map((_, at) => at * width),
      y: there.map((_, at) => at + 1), zmin: 0, zmax: most, showscale: false,
      colorscale: [[0, css("--tint")], [1, css("--held")]],
      xgap: there[0].length > 150 ? 0 : 1, ygap: there.length > 60 ? 0 : 1,
      hovertemplate: width > 1
        ? `round %{y}, ${width} clients from %{x}: %{z} come<extra></extra>`
        : "round %{y}, client %{x}: %{z}<extra></extra>",
    }], layout(div, {
      height: 80 + Math.max(140, Math.min(9 * there.length, 460)), hovermode: "closest",
      xaxis: axis({ title: titled("client"), showgrid: false, ticks: "" }),
      yaxis: axis({
        title: titled("round"), showgrid: false, ticks: "", tickformat: "d",
        range: [there.length + 0.5, 0.5],
      }),
    }));
  }

  redraw(() => {
    drawHoldings(holdings);
    drawAmounts();
    drawComing();
  });
})();
