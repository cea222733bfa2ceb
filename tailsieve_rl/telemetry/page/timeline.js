// The timeline of one step in one run: where everything lies on its canvas, and what the mouse does there.

// Pixels: of the axis, between lanes, of the smallest lane; what all lanes of a run should take, and may take at most;
// of a row in a lane that was enlarged.
const [AXIS, GAP, SMALLEST, TARGET, TALLEST, ENLARGED] = [22, 6, 16, 330, 1200, 9];

// A block for one run. `view` is shared by the blocks: step, order, range of time shown, prompt that is pointed at;
// `changed` is called when one of them has changed it.
function timelineBlock(run, colour, view, changed) {
  const facts = h("div", { class: "facts" });
  const chips = h("div", { class: "chips" });
  const canvas = h("canvas", { role: "img", "aria-label": `Requests of one step of ${run.name}` });
  const enlarged = new Set();
  let placed = null;
  let step = null;
  let selected = null; // from and to of a span that is being dragged
  let shown = ""; // the step and order that `placed` is of

  const metric = (name) => (run.steps[name] ? run.steps[name][run.steps.step.indexOf(step.step)] : null);
  const edge = () => (canvas.clientWidth < 560 ? 74 : 148);
  const span = () => canvas.clientWidth - edge() - 1;
  const toX = (t) => edge() + ((t - view.from) / (view.to - view.from)) * span();
  const toTime = (x) => view.from + ((x - edge()) / span()) * (view.to - view.from);

  function place() {
    if (shown === `${view.step} ${view.order}`) return;
    shown = `${view.step} ${view.order}`;
    step = run.timelines.find((t) => t.step === view.step) || null;
    placed = step && lanesOf(run, step, view.order, metric("gen_time_s"));
    chips.replaceChildren();
    facts.replaceChildren(dot(colour), h("b", {}, run.name));
    if (step) tellStep(facts, chips, run, step, placed, metric, point);
    else facts.append(` has no timeline of step ${view.step} in this page.`);
  }

  // A prompt is the same in all runs, so that it is pointed at in all of them.
  function point(group) {
    const prompt = group === null ? null : group.prompt;
    if (prompt === view.pointed) return;
    view.pointed = prompt;
    changed();
  }

  function draw() {
    place();
    canvas.hidden = !step;
    if (!step) return;
    const rows = placed.lanes.reduce((sum, lane) => sum + Math.max(1, lane.rows.length), 0);
    const rowHeight = rows > TALLEST ? TALLEST / rows : Math.max(1, Math.min(12, Math.floor(TARGET / rows)));
    let bottom = 18; // room for the markers' texts
    for (const lane of placed.lanes) {
      const least = enlarged.has(lane.name) ? ENLARGED : Math.min(12, Math.floor(SMALLEST / lane.rows.length));
      lane.rowHeight = Math.max(rowHeight, least);
      lane.top = bottom;
      lane.height = Math.max(SMALLEST, lane.rows.length * lane.rowHeight);
      bottom += lane.height + GAP;
    }
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth;
    canvas.style.height = `${bottom + AXIS}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round((bottom + AXIS) * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    paintStep(pen, { placed, step, view, end: metric("gen_time_s"), edge: edge(), width, bottom, toX, selected });
  }

  // What lies under the mouse: a lane, and a request of it.
  function find(event) {
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    const lane = placed.lanes.find((l) => y >= l.top && y < l.top + l.height + GAP);
    const request = lane && x >= edge() ? lane.rows[Math.floor((y - lane.top) / lane.rowHeight)] : null;
    const on = request && toTime(x) >= request.from && toTime(x) <= request.to;
    return { x, lane, request: on ? request : null };
  }

  function move(event) {
    const { x, lane, request } = find(event);
    if (selected) {
      selected[1] = x;
      draw();
      return;
    }
    const group = request ? placed.groups[request.group] : null;
    canvas.style.cursor = x < edge() ? "pointer" : "crosshair";
    point(group);
    if (request) tip.show(event, `prompt ${group.prompt}, response ${request.session}`, details(run, request, group));
    else if (lane && x < edge())
      tip.show(event, lane.name, [
        ["requests", number(lane.rows.length)],
        ["busy", seconds(lane.busy)],
        ["last to end", seconds(lane.end)],
        ["", "click: rows large or small"],
      ]);
    else tip.hide();
  }

  function press(event) {
    const { x, lane } = find(event);
    if (x >= edge()) {
      selected = [x, x];
      canvas.setPointerCapture(event.pointerId);
    } else if (lane) {
      if (!enlarged.delete(lane.name)) enlarged.add(lane.name);
      draw();
    }
  }

  function release() {
    if (!selected) return;
    const [from, to] = selected.sort((a, b) => a - b);
    selected = null;
    if (to - from <= 6) {
      draw();
      return;
    }
    Object.assign(view, { from: Math.max(0, toTime(from)), to: toTime(to), zoomed: true });
    changed();
  }

  function leave() {
    tip.hide();
    point(null);
  }

  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerdown", press);
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointerleave", leave);
  return { element: h("div", { class: "lanes" }, facts, chips, canvas), draw };
}
