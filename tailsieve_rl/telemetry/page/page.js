// The page: headline numbers, the runs, the timeline, the charts.
const data = JSON.parse(document.getElementById("data").textContent);
const runs = data.runs, first = runs[0], several = runs.length > 1;
const colourOf = (run) => css(`--run${several ? runs.indexOf(run) % 6 : 1}`);
const state = { subject: runs[runs.length - 1], shown: new Set(several ? [first, runs[runs.length - 1]] : [first]) };
const unit = runs.every((run) => run.measured) ? "s" : `${first.backend} s`;
const drawn = [];
runs.forEach(unpack);

// ------------------------------------------------------------------ headline

function cards() {
  const run = state.subject, last = (name) => run.steps[name][run.steps[name].length - 1];
  const other = run === first ? null : first;
  const count = run.steps.step.length;
  const card = (title, value, note) => h("div", { class: "card number" }, h("span", { class: "sub" }, title), h("b", {}, value), h("span", { class: "sub" }, note));
  const ratio = run.speedup;
  document.getElementById("cards").replaceChildren(
    card("Generation time a step", seconds(run.genTime[0]), `median of ${count}${other ? `; ${other.name} ${seconds(other.genTime[0])}` : ""}`),
    ratio ? card("Speedup", `${ratio[0].toFixed(2)}×`, `over ${first.name}, step by step; 95 %: ${ratio[1].toFixed(2)} to ${ratio[2].toFixed(2)}`)
      : card("Slowest step", seconds(Math.max(...run.steps.gen_time_s)), `step ${run.steps.step[run.steps.gen_time_s.indexOf(Math.max(...run.steps.gen_time_s))]}`),
    card("Last step's allocation", `q ${number(last("q"))}, m ${number(last("m"))}`, `tail groups of ${run.groups}, tail replicas of ${run.replicas.length}`),
    card("Tokens thrown away", percent(run.wasted), `${number(run.abortedTokens)} tokens of left-over groups`),
    card("Off-policy responses", number(run.offPolicy), run.offPolicy === null ? "rollouts without training" : `of ${number(count * run.groups * run.responses)} consumed`),
    card("Runs on", run.backend, run.measured ? run.model ? `real engines, ${run.model.split("/").pop()}` : "real engines" : `no real engines: ${run.backend} seconds`),
  );
}

function about() {
  document.getElementById("about").textContent =
    `${runs.map((run) => run.name).join(" · ")} — ${first.groups} groups of ${first.responses} responses a step, tailsieve-rl ${data.version}`;
  const odd = runs.filter((run) => !run.measured);
  if (!odd.length) return;
  const banner = document.getElementById("emulated");
  banner.hidden = false;
  banner.textContent = `${several ? "These runs are" : "This run is"} ${odd[0].backend}: engines decode by a decode profile` +
    `${odd[0].model ? ` (${odd[0].model})` : ""}, not by a model. All seconds are ${odd[0].backend} seconds.`;
}

function table() {
  const head = ["run", "backend", "steps", "median, quartiles", several ? `speedup over ${first.name}` : null, "q", "m", "thrown away", "off-policy", "P50 / P90 / max tokens", "reward"].filter(Boolean);
  const span = (values) => (Math.min(...values) === Math.max(...values) ? number(values[0]) : `${number(Math.min(...values))}–${number(Math.max(...values))}`);
  const row = (run) => {
    const reward = run.steps.reward_mean, ratio = run.speedup;
    const cells = [
      h("td", {}, dot(colourOf(run)), run.name),
      h("td", {}, run.measured ? run.backend : h("span", { class: "tag" }, run.backend)), h("td", {}, run.steps.step.length),
      h("td", {}, `${number(run.genTime[0])} (${number(run.genTime[1])}–${number(run.genTime[2])}) s`),
      several ? h("td", {}, ratio ? `${ratio[0].toFixed(2)} (${ratio[1].toFixed(2)}–${ratio[2].toFixed(2)})` : "–") : null,
      h("td", {}, span(run.steps.q)), h("td", {}, span(run.steps.m)), h("td", {}, percent(run.wasted)), h("td", {}, number(run.offPolicy)),
      h("td", {}, run.lengths.map((n) => number(n)).join(" / ")), h("td", {}, reward ? `${number(reward[0])} → ${number(reward[reward.length - 1])}` : "–"),
    ];
    return h("tr", { class: run === state.subject ? "chosen" : "", tabindex: 0, onclick: () => choose(run), onkeydown: (e) => e.key === "Enter" && choose(run) }, cells);
  };
  document.getElementById("runs").replaceChildren(h("div", { class: "scroll" },
    h("table", {}, h("thead", {}, h("tr", {}, head.map((name) => h("th", {}, name)))), h("tbody", {}, runs.map(row)))));
}

function choose(run) { state.subject = run; cards(); table(); charts(); }

// ------------------------------------------------------------------ timeline

const stepsDrawn = [...new Set(runs.flatMap((run) => run.timelines.map((t) => t.step)))].sort((a, b) => a - b);
const view = { step: stepsDrawn[stepsDrawn.length - 1], order: "end", from: 0, to: 1, zoomed: false, pointed: null };
let redraw = () => {};

// A step says most if groups were regenerated in it and left over by it, if all runs have it, and if it is not the
// first one, in which a job still warms up.
function firstView() {
  const run = runs[runs.length - 1];
  const worth = (t) => [t.cutoff !== null, t.groups.some((g) => g[2] > 1), t.step > run.steps.step[0],
    runs.every((r) => r.timelines.some((other) => other.step === t.step))].filter(Boolean).length;
  const best = run.timelines.reduce((a, b) => (worth(b) >= worth(a) ? b : a), run.timelines[0]);
  if (best) view.step = best.step;
}

function timeline() {
  const section = document.getElementById("timeline");
  const slider = h("input", { type: "range", min: 0, max: Math.max(0, stepsDrawn.length - 1), "aria-label": "Step", oninput: () => select(stepsDrawn[slider.value]) });
  const label = h("span", {}), blocks = h("div", {}), reset = h("button", { type: "button", onclick: () => { view.zoomed = false; draw(); } }, "Whole step");
  const move = (by) => select(stepsDrawn[Math.max(0, Math.min(stepsDrawn.length - 1, stepsDrawn.indexOf(view.step) + by))]);
  const orders = [["end", "end time"], ["group", "group"]].map(([order, text]) => h("button", { type: "button", value: order, onclick: () => { view.order = order; draw(); } }, text));
  const toggles = runs.map((run) => h("button", { type: "button", onclick: () => { toggle(run); draw(); } }, run.name));
  const made = new Map(runs.map((run) => [run, null]));
  const toggle = (run) => { if (!state.shown.delete(run)) state.shown.add(run); if (!state.shown.size) state.shown.add(run); };

  function draw() {
    const shown = runs.filter((run) => state.shown.has(run));
    if (!view.zoomed) {
      const spans = shown.flatMap((run) => run.timelines.filter((t) => t.step === view.step).map((t) => t.span));
      view.from = 0;
      view.to = Math.max(1e-9, ...spans) * 1.004;
    }
    slider.value = stepsDrawn.indexOf(view.step);
    label.textContent = `step ${view.step}`;
    reset.hidden = !view.zoomed;
    orders.forEach((button) => button.setAttribute("aria-pressed", button.value === view.order));
    toggles.forEach((button, i) => button.setAttribute("aria-pressed", state.shown.has(runs[i])));
    for (const run of shown) if (!made.get(run)) made.set(run, timelineBlock(run, colourOf(run), view, draw));
    const elements = shown.map((run) => made.get(run).element);
    if (elements.some((e, i) => blocks.children[i] !== e) || blocks.children.length !== elements.length) blocks.replaceChildren(...elements);
    shown.forEach((run) => made.get(run).draw());
  }
  redraw = draw;
  const swatch = (name, text) => h("span", {}, dot(css(name)), text);
  const left = stepsDrawn.length < Math.max(...runs.map((run) => run.steps.step.length));
  section.replaceChildren(...[
    h("h2", {}, "One step, request by request"),
    h("p", { class: "sub" }, "A lane is a replica, a thin bar a request. Point at a bar for its details and its group, drag to zoom, click a replica's name to enlarge it."),
    h("div", { class: "controls" },
      h("span", {}, h("button", { type: "button", "aria-label": "Step before", onclick: () => move(-1) }, "‹"), slider, h("button", { type: "button", "aria-label": "Next step", onclick: () => move(1) }, "›"), label),
      h("span", {}, "rows by", orders), several ? h("span", {}, "runs", toggles) : null, reset,
      h("span", { class: "legend" }, swatch("--bulk", "fresh group"), swatch("--tail", "regenerated (tail) group"), swatch("--aborted", "thrown away"), swatch("--idle", "idle"))),
    left ? h("p", { class: "sub" }, `This page holds the timelines of ${stepsDrawn.length} of the steps; --steps A-B chooses others.`) : null,
    blocks,
  ].filter(Boolean));
  draw();
}

function select(step) {
  const nearest = stepsDrawn.reduce((best, s) => (Math.abs(s - step) < Math.abs(best - step) ? s : best), stepsDrawn[0]);
  view.step = nearest;
  view.zoomed = false;
  redraw();
  charts();
}

// ------------------------------------------------------------------ charts

function charts() {
  const steps = { x: "step", whole: true, now: view.step, pick: select };
  const lineOf = (run, name, key, colour, more) => ({ name, colour, x: run.steps.step, y: run.steps[key], ...more });
  const all = (key, more) => runs.filter((run) => run.steps[key]).map((run) => lineOf(run, run.name, key, colourOf(run), more));
  const run = state.subject, of = several ? ` of ${run.name}` : "", has = (key) => Boolean(run.steps[key]);
  const [tail, bulk] = [css("--tail"), css("--bulk")];
  const pool = (name, key, colour) => ({ name, colour, x: run.steps.step, y: run.steps[key].map((time) => time || null) });
  const predicted = has("predicted_s") ? [lineOf(run, `predicted for ${run.name}`, "predicted_s", colourOf(run), { dashed: true })] : [];
  const strip = (label, series, more) => ({ label, series, height: 150, ...more });
  const pair = (label, key, names) => strip(label, ["tail", "bulk"].filter((pool) => has(`${key}_${pool}`)).map((pool) =>
    lineOf(run, names[pool], `${key}_${pool}`, pool === "tail" ? tail : bulk)), { height: 84 });
  const found = [
    chart("Generation time by step", "From the first dispatch to the last consumed token. Click to see a step above.", [strip(unit, [...all("gen_time_s"), ...predicted])], steps),
    chart(`Tail and bulk time${of}`, "The step takes the longer of the two.", [strip(unit, [
      pool("tail groups", "tail_time_s", tail), pool("fresh groups, to the cutoff", "bulk_time_s", bulk)])], steps),
    chart(`Allocation${of}`, "What the controller chose.", [
      strip("q, tail groups", [lineOf(run, "applied", "q", tail, { stepped: true, area: true }), ...(has("proposed_q") ? [lineOf(run, "proposed", "proposed_q", css("--muted"), { stepped: true, dashed: true })] : [])], { height: 68, whole: true }),
      strip("m, tail replicas", [lineOf(run, "applied", "m", tail, { stepped: true, area: true }), ...(has("proposed_m") ? [lineOf(run, "proposed", "proposed_m", css("--muted"), { stepped: true, dashed: true })] : [])], { height: 50, whole: true }),
    ], steps),
    lengthsChart(),
  ];
  if (all("reward_mean").length) found.push(chart("Reward", "Mean over the step's responses.", [strip("reward", all("reward_mean"), { zero: false })], steps));
  found.push(chart("Tokens thrown away", "Share of all generated tokens: left-over groups, and tries that failed.", [strip("share", all("wasted_fraction"), { tick: percent })], { ...steps, value: percent }));
  if (has("accept_length_tail") || has("accept_length_bulk")) found.push(chart(`Speculation${of}`, "Tokens drafted at once; tokens a verification yields, its own one included.", [
    pair("draft depth", "draft_depth", { tail: "tail pool", bulk: "bulk pool" }),
    pair("tokens a verification", "accept_length", { tail: "tail pool", bulk: "bulk pool" }),
  ], steps));
  document.getElementById("charts").replaceChildren(...found.map((c) => c.card));
  found.forEach((c) => c.draw());
  drawn.splice(0, drawn.length, ...found);
}

function lengthsChart() {
  const { edges, shares } = data.lengths;
  const series = runs.map((run, i) => ({ name: run.name, colour: colourOf(run), x: edges, y: [...shares[i], 0], stepped: true, area: true }));
  const bin = (x) => { const i = edges.indexOf(x); return i + 1 < edges.length ? `${number(Math.ceil(x))} to ${number(Math.ceil(edges[i + 1]) - 1)} tokens` : `over ${number(x)} tokens`; };
  return chart("Response lengths", `Consumed responses. P50, P90, longest: ${runs.map((run) => `${several ? `${run.name} ` : ""}${run.lengths.map((n) => number(n)).join(", ")}`).join("; ")}.`,
    [{ label: "share of the responses", series, height: 150, tick: percent }], { x: "tokens, logarithmic", log: true, title: bin, value: percent });
}

// ------------------------------------------------------------------ the rest

function everyMetric() {
  const details = document.getElementById("table");
  details.addEventListener("toggle", () => {
    if (!details.open) return;
    const body = runs.map((run) => {
      const keys = Object.keys(run.steps);
      return [h("h2", {}, dot(colourOf(run)), run.name), h("div", { class: "scroll" }, h("table", {},
        h("thead", {}, h("tr", {}, keys.map((key) => h("th", {}, key)))),
        h("tbody", {}, run.steps.step.map((_, i) => h("tr", {}, keys.map((key) => h("td", {}, number(run.steps[key][i])))))))) ];
    });
    details.querySelector("div").replaceChildren(...body.flat());
  });
}

function everything() { cards(); table(); timeline(); charts(); }

function theme(name) {
  document.documentElement.dataset.theme = name;
  document.getElementById("theme").textContent = name === "dark" ? "Light" : "Dark";
}

theme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
document.getElementById("theme").addEventListener("click", () => { theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"); everything(); });
about();
firstView();
everything();
everyMetric();
document.getElementById("notes").append(...data.missing.map((why) => h("p", {}, `No run has ${why}.`)));
let width = innerWidth;
addEventListener("resize", () => { if (innerWidth === width) return; width = innerWidth; redraw(); drawn.forEach((c) => c.draw()); });
// What the page took to draw, milliseconds from its opening, for those who measure it.
document.documentElement.dataset.drawn = Math.round(performance.now());
