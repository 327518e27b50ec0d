// The curves, drawn from the embedded results. `hidden` holds the names of the methods not to
// draw and `view` what is chosen; call the function it returns whenever one of them, the theme or
// the width has changed.
"use strict";

function makeCharts(results, styles, hidden, view) {
  const { root, NARROW, css, plain, fade, axis, titled, layout, draw } = canvas;
  const UNITS = [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3], ["B", 1]];
  const CLOCK = [["hours", 3600], ["minutes", 60], ["seconds", 1]];

  const metric = () => view.metric ?? results.metric;
  const accurate = () => metric() === "accuracy";
  const scale = () => (accurate() ? 100 : 1); // accuracies are drawn in percent
  const percent = () => (accurate() ? " %" : "");
  const number = (value, digits) =>
    accurate() ? (100 * value).toFixed(2) : String(+value.toPrecision(digits));
  const shown = (value, spread) =>
    number(value, 4) + (spread === null ? "" : " ± " + number(spread, 2)) + percent();

  // What is drawn of the methods: those that have this metric, each with its curve and its end.
  const drawn = () => results.methods.map((method, index) => {
    const curve = metric() === results.metric ? method.curve : method.loss;
    const mean = curve?.mean.at(-1) ?? null;
    return {
      ...method, ...styles[index], curve, name: plain(method.algorithm),
      color: css(styles[index].variable), visible: !hidden.has(method.hides ?? method.algorithm),
      end: { mean, spread: curve?.spread.at(-1) ?? null },
    };
  }).filter(({ curve }) => curve);

  function band(method, x) {
    const { mean, spread } = method.curve;
    const known = x.map((_, at) => at).filter((at) => mean[at] !== null && spread[at] !== null);
    const back = [...known].reverse();
    return {
      type: "scatter", mode: "lines", line: { width: 0 }, fill: "toself", hoverinfo: "skip",
      fillcolor: fade(method.color, 0.22), visible: method.visible,
      x: [...known, ...back].map((at) => x[at]),
      y: [
        ...known.map((at) => scale() * (mean[at] + spread[at])),
        ...back.map((at) => scale() * (mean[at] - spread[at])),
      ],
    };
  }

  function line(method, x, rest) {
    const { mean, spread, rounds } = method.curve;
    const thin = results.methods.length > 8 && spread.every((value) => value === null);
    return {
      type: "scatter", mode: "lines+markers", name: method.name, x,
      y: mean.map((value) => (value === null ? null : scale() * value)),
      line: { color: method.color, width: thin ? 1.25 : 2, dash: method.dash },
      marker: { symbol: method.symbol, size: thin ? 5 : 7, maxdisplayed: 8, color: method.color },
      visible: method.visible,
      text: mean.map((value, at) => (value === null ? "" : shown(value, spread[at]))),
      customdata: rounds,
      ...rest,
    };
  }

  function measure(div, rest) {
    const { target } = results;
    const lines = target === null || metric() !== results.metric ? [] : [{
      type: "line", layer: "below", xref: "paper", x0: 0, x1: 1,
      y0: scale() * target, y1: scale() * target,
      line: { color: css("--muted"), width: 1, dash: "dash" },
      label: {
        text: `target ${+(scale() * target).toPrecision(12)}${percent()}`,
        textposition: accurate() ? "start" : "end", yanchor: "bottom",
        font: { color: css("--muted"), size: 12 },
      },
    }];
    return layout(div, {
      height: root.classList.contains("printing") ? 265 : div.clientWidth < NARROW ? 320 : 440,
      shapes: lines, uirevision: `${metric()} ${view.way}`,
      yaxis: axis({
        tickformat: "~g", ticksuffix: percent(), showline: false, ticks: "", ticklabelstandoff: 6,
        autorangeoptions: accurate() ? { maxallowed: 100, minallowed: 0 } : {},
      }),
      ...rest,
    });
  }

  function drawByRound(methods) {
    const div = document.getElementById("by-round");
    const bands = methods.map((method) => band(method, method.curve.rounds));
    const lines = methods.map((method) =>
      line(method, method.curve.rounds, {
        hovertemplate: "%{fullData.name}  <b>%{text}</b><extra></extra>",
      }));
    const last = 1.02 * Math.max(1, ...methods.map((method) => method.rounds));
    draw(div, [...bands, ...lines], measure(div, {
      hovermode: "x unified", hoversort: accurate() ? "value descending" : "value ascending",
      xaxis: axis({
        title: titled("round"), showgrid: false, showline: true, range: [0, last],
        dtick: last < 10 ? 1 : undefined,
        unifiedhovertitle: { text: "round %{x}" }, spikecolor: css("--muted"), spikethickness: 1,
      }),
    }));
  }

  // What a method reaches for what it spends: `along` its curve, `total` in the end.
  function drawBySpent(name, methods, along, total, units, what, nothing) {
    const div = document.getElementById(`by-${name}`);
    const most = Math.max(0, ...methods.map(total));
    const [unit, size] = units.find(([, least]) => most >= least) ?? units.at(-1);
    const last = (1.02 * most) / size || 1;
    const spending = methods.filter((method) => total(method) > 0);
    const silent = methods.filter((method) => total(method) === 0 && method.end.mean !== null);
    const x = (method) => along(method.curve).map((spent) => spent / size);
    const lines = spending.map((method) => line(method, x(method), {
      hovertemplate:
        `<b>%{fullData.name}</b><br>%{text}<br>%{x:.3~g} ${unit}, round %{customdata}<extra></extra>`,
    }));
    const levels = silent.map((method) => ({
      ...line(method, [0, last], {
        hovertemplate: `<b>%{fullData.name}</b><br>%{text}<br>${nothing}<extra></extra>`,
      }),
      mode: "lines", y: Array(2).fill(scale() * method.end.mean),
      text: Array(2).fill(shown(method.end.mean, method.end.spread)),
      line: { color: method.color, width: 2, dash: "dash" },
    }));
    const seen = silent.filter(({ visible }) => visible);
    const names = silent.length > 1 ? [] : seen.map((method) => ({
      text: `${method.name}: ${nothing}`, font: { color: method.color, size: 12 }, showarrow: false,
      xref: "paper", x: 1, xanchor: "right", y: scale() * method.end.mean,
      yanchor: accurate() ? "top" : "bottom",
    }));
    draw(div, [...spending.map((method) => band(method, x(method))), ...lines, ...levels],
      measure(div, {
        hovermode: "closest", annotations: names,
        xaxis: axis({
          title: titled(`${unit}${what}`), showgrid: false, showline: true, range: [0, last],
        }),
      }));
  }

  const WAYS = {
    both: [(curve) => curve.traffic, (method) => method.bytes_down + method.bytes_up, " sent"],
    down: [(curve) => curve.down, (method) => method.bytes_down, " sent down"],
    up: [(curve) => curve.up, (method) => method.bytes_up, " sent up"],
  };

  return () => {
    const methods = drawn();
    for (const heading of document.querySelectorAll("h2 .metric")) {
      heading.textContent = metric()[0].toUpperCase() + metric().slice(1);
    }
    drawByRound(methods);
    const sent = Math.max(0, ...methods.map(WAYS.both[1]));
    document.getElementById("bytes").hidden = sent === 0;
    if (sent) {
      const [along, total, what] = WAYS[view.way];
      drawBySpent("bytes", methods, along, total, UNITS, what, "nothing sent");
    }
    const spent = Math.max(0, ...methods.map((method) => method.seconds));
    document.getElementById("seconds").hidden = spent === 0;
    if (spent) {
      drawBySpent("seconds", methods, (curve) => curve.seconds, (method) => method.seconds,
        CLOCK, "", "no time");
    }
  };
}
