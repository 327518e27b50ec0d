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
    const domain = (at) => panels.length < 2 ? [0, 1] : at ? [0.55, 1] : [0, 0.45];
    const axes = {};
    const data = panels.map(([what, bars], at) => {
      const tail = at ? "2" : "";
      const [middle] = bars.map(([low]) => low);
      const span = Math.max(...bars.map(([, high]) => high)) - middle + 1;
      const width = bars[0][1] - bars[0][0] + 1;
      axes[`xaxis${tail}`] = axis({
        title: titled(`${what} a client`), showgrid: false, showline: true,
        domain: rows ? [0, 1] : domain(at), anchor: `y${tail}`,
        range: [middle - 0.5 - (span < 6 ? 3 : 0), middle + span - 0.5 + (span < 6 ? 3 : 0)],
        tickformat: ",d", dtick: span < 12 ? 1 : undefined, nticks: 8,
      });
      axes[`yaxis${tail}`] = axis({
        title: titled("clients"), rangemode: "tozero", showline: false, ticks: "", nticks: 5,
        domain: rows ? domain(1 - at) : [0, 1], anchor: `x${tail}`, tickformat: ",d",
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
