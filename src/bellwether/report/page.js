// The page around the charts: the legend, the CSV, and when to draw again.
"use strict";
(() => {
  // The mark of a curve, as Plotly draws it, 3.5 pixels to each side of (14, 6).
  const MARKS = {
    circle: "M10.5 6a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0",
    square: "M10.5 2.5h7v7h-7z",
    diamond: "M14 1.5l4.5 4.5l-4.5 4.5l-4.5 -4.5z",
    "triangle-up": "M14 2l4 7h-8z",
    cross: "M12.8 2h2.4v2.8h2.8v2.4h-2.8v2.8h-2.4v-2.8h-2.8v-2.4h2.8z",
    "triangle-down": "M14 10l4 -7h-8z",
    x: "M11.2 4.9l1.7 -1.7l1.1 1.1l1.1 -1.1l1.7 1.7l-1.1 1.1l1.1 1.1l-1.7 1.7l-1.1 -1.1l-1.1 1.1l-1.7 -1.7l1.1 -1.1z",
  };
  // Plotly's names of dashes, and what they look like in the legend.
  const DASHES = { solid: "none", dot: "2 3", dashdot: "7 3 2 3" };

  const results = JSON.parse(document.getElementById("results").textContent);
  const { methods } = results;
  const hidden = new Set();
  const pick = (names, index) => names[index % names.length];
  const marks = Object.keys(MARKS);
  const styles = methods.map((_, index) => ({
    variable: `--color-${index % marks.length}`, // there are as many colours as marks
    symbol: pick(marks, index),
    dash: pick(Object.keys(DASHES), Math.floor(index / marks.length)),
  }));
  const draw = makeCharts(results, styles, hidden);

  const buttons = methods.map((method, index) => {
    const { variable, dash, symbol } = styles[index];
    const button = document.createElement("button");
    button.type = "button";
    button.innerHTML =
      `<svg width="28" height="12" aria-hidden="true" style="color: var(${variable})">` +
      `<path d="M0 6h28" stroke="currentColor" stroke-width="2" stroke-dasharray="${DASHES[dash]}"/>` +
      `<path d="${MARKS[symbol]}" fill="currentColor"/></svg>`;
    button.append(method.algorithm);
    const choose = (change) => {
      change();
      buttons.forEach((other, at) => other.setAttribute("aria-pressed", String(!hidden.has(at))));
      draw();
    };
    button.setAttribute("aria-pressed", "true");
    button.addEventListener("click", () => choose(() =>
      hidden.delete(index) || hidden.add(index)));
    button.addEventListener("dblclick", () => choose(() => {
      const alone = !hidden.has(index) && hidden.size === methods.length - 1;
      hidden.clear();
      if (!alone) methods.forEach((_, at) => at !== index && hidden.add(at));
    }));
    return button;
  });

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

  const legend = document.getElementById("legend");
  legend.classList.toggle("sticky", buttons.length <= 8);
  legend.append(...buttons);
  offerCsv(table());
  canvas.redraw(draw);
})();
