// The page around the charts: the legend, the choices, the files, and when to draw again.
"use strict";
(() => {
  const results = JSON.parse(document.getElementById("results").textContent);
  const { methods, coming, holdings, tables } = results;
  const hidden = new Set();
  const drawCurves = () => charts();
  const styles = methods.map((_, index) => looks.style(index));
  const charts = makeCharts(results, styles, hidden, makeChoices(drawCurves));

  function table() {
    const metrics = ["accuracy", "loss"].filter((name) =>
      methods.some((method) => method.runs.some((run) => name in run.metrics)));
    const lines = [["method", "seed", "round", ...metrics, "bytes_down", "bytes_up", "seconds"]];
    for (const method of methods) {
      for (const run of method.runs) {
        run.rounds.forEach((round, at) => lines.push([
          method.algorithm, run.seed, round, ...metrics.map((name) => run.metrics[name]?.[at]),
          run.bytes_down[at], run.bytes_up[at], run.seconds[at],
        ]));
      }
    }
    return lines;
  }

  makeLegend(methods.map((method) => method.algorithm), hidden, drawCurves);
  offerCsv(table());
  offerTables(tables);
  canvas.redraw(() => {
    charts();
    drawComing(coming);
    drawHoldings(holdings);
  });
})();
