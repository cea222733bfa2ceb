// The section that shows one step: its controls, and a timeline of each run that is chosen.
let redraw = () => {};

const HOW =
  "A lane is a replica, a thin bar a request. Point at a bar for its details and its group, drag to zoom, " +
  "click a replica's name to enlarge it.";

function timeline() {
  const blocks = h("div", {});
  const label = h("span", {});
  const made = new Map();
  const byIndex = (i) => select(stepsDrawn[Math.max(0, Math.min(stepsDrawn.length - 1, i))]);
  const byOne = (step) => byIndex(stepsDrawn.indexOf(view.step) + step);
  const slider = h("input", {
    type: "range",
    min: 0,
    max: stepsDrawn.length - 1,
    "aria-label": "Step",
    oninput: () => byIndex(Number(slider.value)),
  });
  const ordered = (order, text) => button(text, () => drawWith({ order }), { value: order });
  const orders = [ordered("end", "end time"), ordered("group", "group")];
  const toggles = runs.map((run) => button(run.name, () => toggle(run)));
  const whole = button("Whole step", () => drawWith({ zoomed: false }));

  function drawWith(changes) {
    Object.assign(view, changes);
    draw();
  }

  // One run at least is shown.
  function toggle(run) {
    if (!state.shown.delete(run)) state.shown.add(run);
    if (!state.shown.size) state.shown.add(run);
    draw();
  }

  function draw() {
    const shown = runs.filter((run) => state.shown.has(run));
    if (!view.zoomed) {
      const steps = shown.flatMap((run) => run.timelines).filter((t) => t.step === view.step);
      view.from = 0;
      view.to = Math.max(1e-9, ...steps.map((t) => t.span)) * 1.004;
    }
    slider.value = stepsDrawn.indexOf(view.step);
    label.textContent = `step ${view.step}`;
    whole.hidden = !view.zoomed;
    orders.forEach((order) => order.setAttribute("aria-pressed", order.value === view.order));
    toggles.forEach((shows, i) => shows.setAttribute("aria-pressed", state.shown.has(runs[i])));
    for (const run of shown) if (!made.has(run)) made.set(run, timelineBlock(run, colourOf(run), view, draw));
    const elements = shown.map((run) => made.get(run).element);
    // Only if they change: a canvas that is taken out loses the mouse.
    if (elements.length !== blocks.children.length || elements.some((e, i) => blocks.children[i] !== e))
      blocks.replaceChildren(...elements);
    shown.forEach((run) => made.get(run).draw());
  }

  const swatch = (name, text) => h("span", {}, dot(css(name)), text);
  const legend = [
    swatch("--bulk", "fresh group"),
    swatch("--tail", "regenerated (tail) group"),
    swatch("--aborted", "thrown away"),
    swatch("--idle", "idle"),
  ];
  const before = button("‹", () => byOne(-1), { "aria-label": "Step before" });
  const next = button("›", () => byOne(1), { "aria-label": "Next step" });
  const some = stepsDrawn.length < Math.max(...runs.map((run) => run.steps.step.length));
  const section = document.getElementById("timeline");
  section.replaceChildren(h("h2", {}, "One step, request by request"), h("p", { class: "sub" }, HOW));
  section.append(
    h(
      "div",
      { class: "controls" },
      h("span", {}, before, slider, next, label),
      h("span", {}, "rows by", orders),
      several ? h("span", {}, "runs", toggles) : null,
      whole,
      h("span", { class: "legend" }, legend),
    ),
  );
  const text = `This page holds the timelines of ${stepsDrawn.length} of the steps; --steps A-B chooses others.`;
  if (some) section.append(h("p", { class: "sub" }, text));
  section.append(blocks);
  redraw = draw;
  draw();
}

// Shows the step, or the nearest one that has a timeline.
function select(step) {
  view.step = stepsDrawn.reduce((best, s) => (Math.abs(s - step) < Math.abs(best - step) ? s : best), stepsDrawn[0]);
  view.zoomed = false;
  redraw();
  charts();
}
