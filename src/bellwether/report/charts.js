// The charts, drawn from the embedded results in the colours of the style sheet. `hidden` holds
// the indices of the methods not to draw; call the function it returns whenever that, the theme
// or the width has changed.
"use strict";

function makeCharts({ methods, metric, target, holdings }, styles, hidden) {
  const accurate = metric === "accuracy";
  const root = document.documentElement;
  const UNITS = [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3], ["B", 1]];
  const NARROW = 560;
  const SCALE = accurate ? 100 : 1; // accuracies are drawn in percent

  const PERCENT = accurate ? " %" : "";

  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  // Plotly reads a little HTML in its texts; a name is never meant as HTML.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const number = (value, digits) =>
    accurate ? (SCALE * value).toFixed(2) : String(+value.toPrecision(digits));
  const shown = (value, spread) =>
    number(value, 4) + (spread === null ? "" : " ± " + number(spread, 2)) + PERCENT;
  const fade = (color, alpha) => {
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
    return `rgba(${red}, ${green}, ${blue}, ${alpha})`;
  };
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

  const axis = (rest) => ({
    gridcolor: css("--rule"), linecolor: css("--muted"), tickcolor: css("--muted"),
    zeroline: false, ticks: "outside", ticklen: 4, automargin: true, fixedrange: touch(), ...rest,
  });
  const titled = (text) => ({ text, standoff: 8, font: { size: 13, color: css("--muted") } });
  const touch = () => matchMedia("(pointer: coarse)").matches;

  function layout(div, rest) {
    return {
      width: div.clientWidth, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: css("--sans"), size: 13, color: css("--ink") },
      margin: { l: 48, r: 12, t: 12, b: 48 }, showlegend: false,
      dragmode: touch() ? false : "zoom", uirevision: "keep",
      hoverlabel: {
        bgcolor: css("--paper"), bordercolor: css("--rule"), align: "left",
        font: { family: css("--sans"), size: 13, color: css("--ink") },
      },
      modebar: {
        bgcolor: "rgba(0,0,0,0)", color: css("--muted"), activecolor: css("--ink"),
      },
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

  const config = {
    displaylogo: false, responsive: false, displayModeBar: touch() ? false : "hover",
    modeBarButtons: [["toImage", "resetScale2d"]], toImageButtonOptions: { format: "svg" },
  };
  const draw = (div, data, rest) => Plotly.react(div, data, rest, config);

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

  function drawHoldings() {
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

  return () => {
    drawByRound();
    drawByBytes();
    drawHoldings();
  };
}
