// How a method looks, the legend that hides it, and the choices of what to draw.
"use strict";

const looks = (() => {
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
  const marks = Object.keys(MARKS);
  const dashes = Object.keys(DASHES);

  const style = (index) => ({
    variable: `--color-${index % marks.length}`, // there are as many colours as marks
    symbol: marks[index % marks.length],
    dash: dashes[Math.floor(index / marks.length) % dashes.length],
  });
  const sample = ({ variable, dash, symbol }) =>
    `<svg width="28" height="12" aria-hidden="true" style="color: var(${variable})">` +
    `<path d="M0 6h28" stroke="currentColor" stroke-width="2" stroke-dasharray="${DASHES[dash]}"/>` +
    `<path d="${MARKS[symbol]}" fill="currentColor"/></svg>`;
  return { style, sample };
})();

// Buttons that hide and show; `hidden` holds the names of the methods that are not drawn.
function makeLegend(names, hidden, draw) {
  const buttons = names.map((name, index) => {
    const button = document.createElement("button");
    button.type = "button";
    button.innerHTML = looks.sample(looks.style(index));
    button.append(name);
    const choose = (change) => {
      change();
      buttons.forEach((other, at) => other.setAttribute("aria-pressed", !hidden.has(names[at])));
      draw();
    };
    button.setAttribute("aria-pressed", !hidden.has(name));
    button.addEventListener("click", () => choose(() => hidden.delete(name) || hidden.add(name)));
    button.addEventListener("dblclick", () => choose(() => {
      const alone = !hidden.has(name) && hidden.size === names.length - 1;
      hidden.clear();
      if (!alone) names.forEach((other) => other !== name && hidden.add(other));
    }));
    return button;
  });
  const legend = document.getElementById("legend");
  legend.classList.toggle("sticky", buttons.length <= 8);
  legend.replaceChildren(...buttons);
}

// What is chosen by the rows of buttons above the charts, such as { metric: "loss", way: "up" }.
function makeChoices(draw) {
  const view = {};
  for (const group of document.querySelectorAll(".choose")) {
    const buttons = [...group.children];
    view[group.dataset.choice] = buttons[0].value;
    for (const button of buttons) {
      button.addEventListener("click", () => {
        view[group.dataset.choice] = button.value;
        buttons.forEach((other) => other.setAttribute("aria-pressed", other === button));
        draw();
      });
    }
  }
  return view;
}
