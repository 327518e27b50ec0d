// What every chart is made of: the colours of the style sheet, axes, a layout, and when to draw
// again.
"use strict";

const canvas = (() => {
  const root = document.documentElement;
  const NARROW = 560;

  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  // Plotly reads a little HTML in its texts; a name is never meant as HTML.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const fade = (color, alpha) => {
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
    return `rgba(${red}, ${green}, ${blue}, ${alpha})`;
  };
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

  const config = {
    displaylogo: false, responsive: false, displayModeBar: touch() ? false : "hover",
    modeBarButtons: [["toImage", "resetScale2d"]], toImageButtonOptions: { format: "svg" },
  };
  const draw = (div, data, rest) => Plotly.react(div, data, rest, config);

  function redraw(drawAll) {
    let width = root.clientWidth;
    addEventListener("resize", () => {
      if (root.clientWidth === width) return; // a phone's address bar comes and goes
      width = root.clientWidth;
      drawAll();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
    const printing = (now) => {
      root.classList.toggle("printing", now);
      drawAll();
    };
    addEventListener("beforeprint", () => printing(true));
    addEventListener("afterprint", () => printing(false));
    drawAll();
  }

  return { root, NARROW, css, plain, fade, axis, titled, touch, layout, draw, redraw };
})();
