// The curves, drawn from the embedded results. `hidden` holds the indices of the methods not to
// draw; call the function it returns whenever that, the theme or the width has changed.
"use strict";

function makeCharts({ methods, metric, target, holdings }, styles, hidden) {
  const { root, NARROW, css, plain, fade, axis, titled, layout, draw } = canvas;
  const accurate = metric === "accuracy";
  const UNITS = [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3], ["B", 1]];
  const SCALE = accurate ? 100 : 1; // accuracies are drawn in percent

  const PERCENT = accurate ? " %" : "";

  const number = (value, digits) =>
    accurate ? (SCALE * value).toFixed(2) : String(+value.toPrecision(digits));
  const shown = (value, spread) =>
    number(value, 4) + (spread === null ? "" : " ± " + number(spread, 2)) + PERCENT;
  const styled = methods.map((method, index) => ({
    ...method,
    index,
    name: plain(method.algorithm),
    ...styles[index],
    sent: method.bytes_down + method.bytes_up,
    get color() { return css(this.variable); },
  }));

  function band(method, x) {
    const { mean, spread } = method.curve;
    const drawn = x.map((_, at) => at).filter((at) => mean[at] !== null && spread[at] !== null);
    const back = [...drawn].reverse();
    return {
      type: "scatter", mode: "lines", line: { width: 0 }, fill: "toself", hoverinfo: "skip",
      fillcolor: fade(method.color, 0.22), visible: !hidden.has(method.index),
      x: [...drawn, ...back].map((at) => x[at]),
      y: [
        ...drawn.map((at) => SCALE * (mean[at] + spread[at])),
        ...back.map((at) => SCALE * (mean[at] - spread[at])),
      ],
    };
  }

  function line(method, x, rest) {
    const { mean, spread, rounds } = method.curve;
    return {
      type: "scatter", mode: "lines+markers", name: method.name, x,
      y: mean.map((value) => (value === null ? null : SCALE * value)),
      line: { color: method.color, width: 2, dash: method.dash },
      marker: { symbol: method.symbol, size: 7, maxdisplayed: 8, color: method.color },
      visible: !hidden.has(method.index),
      text: mean.map((value, at) => (value === null ? "" : shown(value, spread[at]))),
      customdata: rounds,
      ...rest,
    };
  }

  function measure(div, rest) {
    const lines = target === null ? [] : [{
      type: "line", layer: "below", xref: "paper", x0: 0, x1: 1, y0: SCALE * target, y1: SCALE * target,
      line: { color: css("--muted"), width: 1, dash: "dash" },
      label: {
        text: `target ${+(SCALE * target).toPrecision(12)}${PERCENT}`,
        textposition: accurate ? "start" : "end", yanchor: "bottom",
        font: { color: css("--muted"), size: 12 },
      },
    }];
    return layout(div, {
      height: root.classList.contains("printing") ? 265 : div.clientWidth < NARROW ? 320 : 440, shapes: lines,
      yaxis: axis({
        tickformat: "~g", ticksuffix: PERCENT, showline: false, ticks: "", ticklabelstandoff: 6,
        autorangeoptions: accurate ? { maxallowed: 100, minallowed: 0 } : {},
      }),
      ...rest,
    });
  }

  function drawByRound() {
    const div = document.getElementById("by-round");
    const bands = styled.map((method) => band(method, method.curve.rounds));
    const lines = styled.map((method) =>
      line(method, method.curve.rounds, {
        hovertemplate: "%{fullData.name}  <b>%{text}</b><extra></extra>",
      }));
    const last = 1.02 * Math.max(1, ...styled.map((method) => method.rounds));
    draw(div, [...bands, ...lines], measure(div, {
      hovermode: "x unified", hoversort: accurate ? "value descending" : "value ascending",
      xaxis: axis({
        title: titled("round"), showgrid: false, showline: true, range: [0, last],
        dtick: last < 10 ? 1 : undefined,
        unifiedhovertitle: { text: "round %{x}" }, spikecolor: css("--muted"), spikethickness: 1,
      }),
    }));
  }

  function drawByBytes() {
    const div = document.getElementById("by-bytes");
    const most = Math.max(...styled.map((method) => method.sent));
    document.getElementById("bytes").hidden = most === 0;
    if (most === 0) return;
    const [unit, size] = UNITS.find(([, bytes]) => most >= bytes);
    const last = (1.02 * most) / size;
    const sending = styled.filter((method) => method.sent > 0);
    const silent = styled.filter((method) => method.sent === 0 && method.final?.mean != null);
    const x = (method) => method.curve.traffic.map((bytes) => bytes / size);
    const lines = sending.map((method) => line(method, x(method), {
      hovertemplate:
        `<b>%{fullData.name}</b><br>%{text}<br>%{x:.3~g} ${unit}, round %{customdata}<extra></extra>`,
    }));
    const levels = silent.map((method) => ({
      ...line(method, [0, last], {
        hovertemplate: "<b>%{fullData.name}</b><br>%{text}<br>nothing sent<extra></extra>",
      }),
      mode: "lines", y: Array(2).fill(SCALE * method.final.mean),
      text: Array(2).fill(shown(method.final.mean, method.final.spread)),
      line: { color: method.color, width: 2, dash: "dash" },
    }));
    const names = silent.length > 1 ? [] : silent.filter(({ index }) => !hidden.has(index)).map((method) => ({
      text: `${method.name}: nothing sent`, font: { color: method.color, size: 12 }, showarrow: false,
      xref: "paper", x: 1, xanchor: "right", y: SCALE * method.final.mean, yanchor: accurate ? "top" : "bottom",
    }));
    draw(div, [...sending.map((method) => band(method, x(method))), ...lines, ...levels],
      measure(div, {
        hovermode: "closest", annotations: names,
        xaxis: axis({
          title: titled(`${unit} sent`), showgrid: false, showline: true,
          range: [0, last],
        }),
      }));
  }

  return () => {
    drawByRound();
    drawByBytes();
    drawHoldings(holdings);
  };
}
