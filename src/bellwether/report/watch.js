// The page that grows: asks for new rounds, adds them to the runs, and draws again.
"use strict";
(() => {
  const EVERY = 2000; // milliseconds between two questions
  const results = { methods: [], metric: "accuracy", target: null };
  const styles = [];
  const hidden = new Set();
  const show = () => results.methods.length && charts();
  const view = makeChoices(show);
  const charts = makeCharts(results, styles, hidden, view);
  const runs = new Map();
  let epoch = 0, seen = 0, legend = "";
  const trouble = document.getElementById("trouble");

  const empty = () => ({ rounds: [], accuracy: [], loss: [], down: [], up: [], seconds: [] });
  const last = (values) => values.at(-1) ?? 0;

  function add([key, round, accuracy, loss, down, up, seconds]) {
    if (!runs.has(key)) runs.set(key, empty());
    const run = runs.get(key);
    run.rounds.push(round);
    run.accuracy.push(accuracy);
    run.loss.push(loss);
    run.down.push(last(run.down) + down);
    run.up.push(last(run.up) + up);
    run.seconds.push(last(run.seconds) + seconds);
  }

  // The rounds at which the run was evaluated, as `charts.js` draws a method's.
  function curve(run, metric) {
    const at = run.rounds.map((_, index) => index).filter((index) => run[metric][index] !== null);
    const pick = (values) => at.map((index) => values[index]);
    return at.length ? {
      rounds: pick(run.rounds), mean: pick(run[metric]), spread: at.map(() => null),
      down: pick(run.down), up: pick(run.up), seconds: pick(run.seconds),
      traffic: at.map((index) => run.down[index] + run.up[index]),
    } : null;
  }

  function arrange(told) {
    const begun = told.filter(({ key }) => runs.has(key));
    const methods = [...new Set(begun.map(({ method }) => method))];
    const title = ({ method, seed }) => `${method}, seed ${seed}`;
    const names = methods.length > 1 ? methods : begun.map(title);
    const accurate = begun.some(({ key }) => runs.get(key).accuracy.some((value) => value !== null));
    results.metric = accurate ? "accuracy" : "loss";
    document.querySelector("[data-choice=metric]").hidden = !accurate;
    if (!accurate) view.metric = "loss";
    styles.length = 0;
    results.methods = begun.map((told) => {
      const run = runs.get(told.key);
      const hides = methods.length > 1 ? told.method : title(told);
      styles.push(looks.style(names.indexOf(hides)));
      return {
        algorithm: title(told), hides, rounds: last(run.rounds),
        bytes_down: last(run.down), bytes_up: last(run.up), seconds: last(run.seconds),
        curve: curve(run, results.metric), loss: curve(run, "loss"),
      };
    });
    if (legend !== names.join("\n")) {
      legend = names.join("\n");
      makeLegend(names, hidden, show);
    }
  }

  const percent = (value) => (value === null ? "—" : `${(100 * value).toFixed(2)} %`);
  const amount = (bytes) => {
    const units = ["B", "kB", "MB", "GB", "TB"];
    const step = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(bytes || 1) / 3)));
    return `${+(bytes / 1000 ** step).toPrecision(3)} ${units[step]}`;
  };

  function tell(told) {
    const lines = told.map(({ key, method, seed, finished }) => {
      const run = runs.get(key) ?? empty();
      const known = (values) => values.filter((value) => value !== null);
      const best = known(run.accuracy).reduce((one, other) => Math.max(one, other), -1);
      const row = document.createElement("tr");
      const cells = {
        run: `${method}, seed ${seed}`,
        accuracy: percent(known(run.accuracy).at(-1) ?? null),
        best: percent(best < 0 ? null : best),
        loss: known(run.loss).at(-1)?.toPrecision(4) ?? "—",
        round: String(last(run.rounds)), down: amount(last(run.down)), up: amount(last(run.up)),
        seconds: last(run.seconds).toPrecision(3), state: finished ? "finished" : "on its way",
      };
      for (const [name, text] of Object.entries(cells)) {
        const cell = document.createElement(name === "run" ? "th" : "td");
        cell.textContent = text;
        cell.dataset.name = name;
        row.append(cell);
      }
      return row;
    });
    document.querySelector("#runs tbody").replaceChildren(...lines);
    document.getElementById("runs").hidden = !lines.length;
    const done = told.filter(({ finished }) => finished).length;
    const most = Math.max(0, ...[...runs.values()].map((run) => last(run.rounds)));
    const many = told.length === 1 ? "1 run" : `${told.length} runs`;
    document.getElementById("headline").textContent = !most ? "Waiting for the first round."
      : done === told.length ? `${many} finished, ${most} rounds.`
      : `${done} of ${many} finished; the furthest is at round ${most}.`;
  }

  function warn(text) {
    trouble.hidden = !text;
    trouble.firstElementChild.textContent = text;
  }

  async function ask() {
    if (document.hidden) return;
    try {
      const answer = await fetch(`rounds?epoch=${epoch}&after=${seen}`);
      const told = await answer.json();
      if (told.trouble) return warn(told.trouble);
      if (told.fresh) runs.clear();
      told.rounds.forEach(add);
      [epoch, seen] = [told.epoch, told.next];
      warn("");
      tell(told.runs);
      if (told.rounds.length || told.fresh) {
        arrange(told.runs);
        show();
      }
    } catch {
      warn("Nobody answers: is `bellwether watch` still running? The page goes on asking.");
    }
  }

  canvas.redraw(show);
  const again = () => ask().finally(() => setTimeout(again, EVERY));
  document.addEventListener("visibilitychange", ask);
  again();
})();
