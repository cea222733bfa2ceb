// The headline numbers, and the table of the runs.
const interval = (three) => `${three[0].toFixed(2)} (${three[1].toFixed(2)}–${three[2].toFixed(2)})`;

function card(title, value, note) {
  const small = (text) => h("span", { class: "sub" }, text);
  return h("div", { class: "card number" }, small(title), h("b", {}, value), small(note));
}

function cards() {
  const run = state.subject;
  const last = (name) => run.steps[name][run.steps[name].length - 1];
  const count = run.steps.step.length;
  const times = run.steps.gen_time_s;
  const other = run === first ? "" : `; ${first.name} ${seconds(first.genTime[0])}`;
  const [ratio, low, high] = run.speedup || [];
  const slowest = times.indexOf(Math.max(...times));
  const model = run.model ? `real engines, ${run.model.split("/").pop()}` : "real engines";
  const consumed = number(count * run.groups * run.responses);
  document
    .getElementById("cards")
    .replaceChildren(
      card("Generation time a step", seconds(run.genTime[0]), `median of ${count}${other}`),
      run.speedup
        ? card(
            "Speedup",
            `${ratio.toFixed(2)}×`,
            `over ${first.name}, step by step; 95 %: ${low.toFixed(2)} to ${high.toFixed(2)}`,
          )
        : card("Slowest step", seconds(times[slowest]), `step ${run.steps.step[slowest]}`),
      card(
        "Last step's allocation",
        `q ${number(last("q"))}, m ${number(last("m"))}`,
        `tail groups of ${run.groups}, tail replicas of ${run.replicas.length}`,
      ),
      card("Tokens thrown away", percent(run.wasted), `${number(run.abortedTokens)} tokens of left-over groups`),
      card(
        "Off-policy responses",
        number(run.offPolicy),
        run.offPolicy === null ? "rollouts without training" : `of ${consumed} consumed`,
      ),
      card("Runs on", run.backend, run.measured ? model : `no real engines: ${run.backend} seconds`),
    );
}

function about() {
  const size = `${first.groups} groups of ${first.responses} responses a step`;
  document.getElementById("about").textContent =
    `${runs.map((run) => run.name).join(" · ")} — ${size}, tailsieve-rl ${data.version}`;
  if (first.measured) return;
  const banner = document.getElementById("emulated");
  const profile = first.model ? `the decode profile ${first.model}` : "a decode profile";
  banner.hidden = false;
  banner.textContent =
    `${several ? "These runs are" : "This run is"} ${first.backend}: engines decode by ${profile}, not by a model. ` +
    `All seconds are ${first.backend} seconds.`;
}

// What the table says of a run, column by column.
const COLUMNS = [
  ["run", (run) => [dot(colourOf(run)), run.name]],
  ["backend", (run) => (run.measured ? run.backend : h("span", { class: "tag" }, run.backend))],
  ["steps", (run) => run.steps.step.length],
  ["median, quartiles", (run) => `${number(run.genTime[0])} (${number(run.genTime[1])}–${number(run.genTime[2])}) s`],
  ["speedup, 95 %", (run) => (run.speedup ? interval(run.speedup) : "–")],
  ["q", (run) => range(run.steps.q)],
  ["m", (run) => range(run.steps.m)],
  ["thrown away", (run) => percent(run.wasted)],
  ["off-policy", (run) => number(run.offPolicy)],
  ["P50 / P90 / max tokens", (run) => run.lengths.map((n) => number(n)).join(" / ")],
  ["reward", (run) => firstToLast(run.steps.reward_mean)],
];

const firstToLast = (values) => (values ? `${number(values[0])} → ${number(values[values.length - 1])}` : "–");

function range(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return low === high ? number(low) : `${number(low)}–${number(high)}`;
}

function table() {
  const row = (run) =>
    tableRow(
      "td",
      COLUMNS.map(([, value]) => value(run)),
      {
        class: run === state.subject ? "chosen" : "",
        tabindex: 0,
        onclick: () => choose(run),
        onkeydown: (event) => event.key === "Enter" && choose(run),
      },
    );
  const names = COLUMNS.map(([name]) => name);
  document.getElementById("runs").replaceChildren(tableOf(names, runs.map(row)));
}

function choose(run) {
  state.subject = run;
  cards();
  table();
  charts();
}
