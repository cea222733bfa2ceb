// The timeline of one step in one run: a canvas with its facts above it.
const AXIS = 22, LANE_GAP = 6, SMALLEST = 16, TARGET = 330, TALLEST = 1200, EXPANDED = 9;

// A block for one run. `view` is shared by the blocks: step, order, range of time shown, prompt that is pointed at.
function timelineBlock(run, colour, view, changed) {
  const facts = h("div", { class: "facts" }), chips = h("div", { class: "chips" });
  const canvas = h("canvas", { role: "img", "aria-label": `Requests of one step of ${run.name}` });
  const expanded = new Set();
  let placed = null, step = null, drag = null, key = "";

  function place() {
    const wanted = `${view.step} ${view.order}`;
    if (key === wanted) return;
    key = wanted;
    step = run.timelines.find((t) => t.step === view.step) || null;
    placed = step && lanesOf(run, step, view.order, metric("gen_time_s"));
    tellFacts();
  }

  const metric = (name) => (run.steps[name] ? run.steps[name][run.steps.step.indexOf(step.step)] : null);

  function tellFacts() {
    chips.replaceChildren();
    facts.replaceChildren(dot(colour), h("b", {}, run.name));
    if (!step) { facts.append(` has no timeline of step ${view.step} in this page.`); return; }
    const [q, m, time] = ["q", "m", "gen_time_s"].map(metric);
    const idle = 1 - placed.lanes.reduce((sum, lane) => sum + lane.busy, 0) / (placed.lanes.length * time);
    const last = placed.requests.filter((r) => r.status === "consumed").reduce((a, b) => (b.to > a.to ? b : a));
    const group = placed.groups[last.group];
    facts.append(
      `: ${seconds(time)}`, m ? ` (tail pool ${seconds(metric("tail_time_s"))}, bulk pool ${seconds(metric("bulk_time_s"))})` : "",
      `, q ${number(q)}, m ${number(m)}; replicas idle ${percent(Math.max(0, idle))} of the time; the last to finish was `,
      chip(placed.groups.indexOf(group), `prompt ${group.prompt}`), ` on ${run.replicas[last.lane]}, ${number(last.tokens)} tokens.`,
    );
    const late = Math.max(0, ...placed.requests.map((r) => (r.status === "aborted" && step.cutoff !== null ? r.to - step.cutoff : 0)));
    if (!run.measured && late > 0.02 * time)
      facts.append(` Aborts reached the ${run.backend} engines up to ${seconds(late)} late: the job's own delay, in ${run.backend} seconds.`);
    list("regenerated in this step", placed.groups.filter((g) => g.tail));
    list("left over at the cutoff", placed.groups.filter((g) => g.left));
  }

  function list(title, groups) {
    if (!groups.length) return;
    const most = 16;
    chips.append(`${title}:`, ...groups.slice(0, most).map((g) => chip(placed.groups.indexOf(g), g.prompt)));
    chips.append(groups.length > most ? `and ${groups.length - most} more` : "", h("span", {}, " "));
  }

  // Points at a group while the mouse is on it, in all runs: a prompt is the same in each.
  const chip = (group, text) => h("button", {
    type: "button", title: `prompt ${placed.groups[group].prompt}, group ${placed.groups[group].uid}`,
    onpointerenter: () => point(group), onpointerleave: () => point(null), onfocus: () => point(group), onblur: () => point(null),
  }, text);
  function point(group) {
    const prompt = group === null ? null : placed.groups[group].prompt;
    if (prompt !== view.pointed) { view.pointed = prompt; changed(); }
  }

  const labelWidth = () => (canvas.clientWidth < 560 ? 74 : 148);
  const toX = (t) => labelWidth() + ((t - view.from) / (view.to - view.from)) * (canvas.clientWidth - labelWidth() - 1);
  const toTime = (x) => view.from + ((x - labelWidth()) / (canvas.clientWidth - labelWidth() - 1)) * (view.to - view.from);

  function draw() {
    place();
    canvas.hidden = !step;
    if (!step) return;
    const rows = placed.lanes.reduce((sum, lane) => sum + Math.max(1, lane.rows.length), 0);
    const rowHeight = rows > TALLEST ? TALLEST / rows : Math.max(1, Math.min(12, Math.floor(TARGET / rows)));
    let top = 18;
    for (const lane of placed.lanes) {
      const least = expanded.has(lane.name) ? EXPANDED : Math.min(12, Math.floor(SMALLEST / lane.rows.length));
      lane.rowHeight = Math.max(rowHeight, least);
      lane.top = top;
      lane.height = Math.max(SMALLEST, lane.rows.length * lane.rowHeight);
      top += lane.height + LANE_GAP;
    }
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = top + AXIS;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    paint(pen, width, top);
  }

  function paint(pen, width, bottom) {
    const ink = css("--ink"), muted = css("--muted"), edge = labelWidth();
    const end = metric("gen_time_s");
    pen.font = "11.5px system-ui, sans-serif";
    pen.lineWidth = 1;
    pen.textBaseline = "middle";
    for (const t of ticks(view.from, view.to, Math.max(2, width / 110))) {
      line(pen, toX(t), 14, bottom, css("--grid"));
      write(pen, `${number(t)} s`, Math.min(toX(t), width - 18), bottom + 9, muted, "center");
    }
    for (const lane of placed.lanes) paintLane(pen, lane, edge, end, ink, muted);
    if (step.cutoff !== null) marker(pen, step.cutoff, bottom, css("--cut"), `cutoff ${seconds(step.cutoff)}`, [4, 3], width);
    marker(pen, end, bottom, muted, step.cutoff !== null && Math.abs(toX(end) - toX(step.cutoff)) < 130 ? "" : `end ${seconds(end)}`, [], width);
    if (drag) { pen.fillStyle = `${muted}33`; pen.fillRect(Math.min(drag.from, drag.to), 14, Math.abs(drag.to - drag.from), bottom - 14); }
  }

  function paintLane(pen, lane, edge, end, ink, muted) {
    pen.save();
    pen.beginPath();
    pen.rect(edge, lane.top - 1, canvas.clientWidth - edge, lane.height + 2);
    pen.clip();
    pen.fillStyle = css("--idle");
    pen.fillRect(edge, lane.top, Math.max(0, toX(end) - edge), lane.height);
    const pointed = view.pointed === null ? -1 : placed.groups.findIndex((g) => g.prompt === view.pointed);
    const colours = { tail: css("--tail"), bulk: css("--bulk"), aborted: css("--aborted"), retried: css("--retried"), card: css("--card") };
    const tall = lane.rowHeight > 3 ? lane.rowHeight - 1 : Math.max(1, lane.rowHeight);
    lane.rows.forEach((request, i) => bar(pen, request, lane.top + i * lane.rowHeight, tall, colours, pointed === -1 || request.group === pointed ? 1 : 0.16));
    pen.globalAlpha = 1;
    const idle = end - lane.end;
    if (lane.height >= 14 && idle > 0.02 * end && toX(end) - toX(lane.end) > 90)
      write(pen, lane.rows.length ? `idle ${seconds(idle)}` : "no requests", toX(end) - 8, lane.top + 9, muted, "right");
    pen.restore();
    pen.fillStyle = lane.tail ? colours.tail : colours.bulk;
    pen.fillRect(0, lane.top, 3, lane.height);
    write(pen, fitting(pen, lane.name, edge - 16), 9, lane.top + 8, ink, "left");
    const what = edge > 100 ? `${lane.tail ? "tail pool" : "bulk"}, ${lane.rows.length} requests` : lane.tail ? "tail pool" : "bulk";
    if (lane.height >= 28) write(pen, what, 9, lane.top + 22, muted, "left");
  }

  function bar(pen, request, y, height, colours, alpha) {
    const x = toX(request.from), width = Math.max(1, toX(request.to) - x);
    const colour = request.status === "consumed" ? (request.tail ? colours.tail : colours.bulk) : colours[request.status];
    pen.globalAlpha = alpha;
    pen.fillStyle = colour;
    pen.fillRect(x, y, width, height);
    if (height >= 3 && request.first !== null && request.first > request.from) {  // waiting and prefill
      pen.globalAlpha = alpha * 0.55;
      pen.fillStyle = colours.card;
      pen.fillRect(x, y, toX(request.first) - x, height);
    }
    if (height >= 5 && request.status === "aborted") hatch(pen, x, y, width, height, colours.card, alpha);
  }

  function hatch(pen, x, y, width, height, colour, alpha) {
    pen.save();
    pen.beginPath();
    pen.rect(x, y, width, height);
    pen.clip();
    pen.globalAlpha = alpha * 0.75;
    pen.strokeStyle = colour;
    pen.beginPath();
    for (let at = x - height; at < x + width; at += 6) { pen.moveTo(at, y + height); pen.lineTo(at + height, y); }
    pen.stroke();
    pen.restore();
  }

  function line(pen, x, from, to, colour, dashes = []) {
    pen.strokeStyle = colour;
    pen.setLineDash(dashes);
    pen.beginPath();
    pen.moveTo(Math.round(x) + 0.5, from);
    pen.lineTo(Math.round(x) + 0.5, to);
    pen.stroke();
    pen.setLineDash([]);
  }
  function marker(pen, time, bottom, colour, text, dashes, width) {
    const x = toX(time);
    if (x < labelWidth() - 1 || x > width + 1) return;
    line(pen, Math.min(x, width - 1), 12, bottom, colour, dashes);
    write(pen, text, Math.min(x - 4, width - 4), 7, colour, x < labelWidth() + 110 ? "left" : "right");
  }
  function write(pen, text, x, y, colour, align) {
    pen.fillStyle = colour;
    pen.textAlign = align;
    pen.fillText(text, x, y);
  }
  // The end of a name tells replicas apart.
  function fitting(pen, text, width) {
    let cut = text;
    while (cut.length > 3 && pen.measureText(cut).width > width) cut = `…${cut.slice(cut[0] === "…" ? 2 : 1)}`;
    return cut;
  }

  function find(event) {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const lane = placed.lanes.find((l) => y >= l.top && y < l.top + l.height + LANE_GAP);
    if (!lane || x < labelWidth()) return { lane, x };
    const request = lane.rows[Math.floor((y - lane.top) / lane.rowHeight)], t = toTime(x);
    return { lane, x, request: request && t >= request.from && t <= request.to ? request : null };
  }

  function move(event) {
    if (drag) { drag.to = event.clientX - canvas.getBoundingClientRect().left; draw(); return; }
    const { request, lane, x } = find(event);
    canvas.style.cursor = x < labelWidth() ? "pointer" : "crosshair";
    point(request ? request.group : null);
    if (request) tip.show(event, `prompt ${placed.groups[request.group].prompt}, response ${request.session}`, describe(request));
    else if (lane && x < labelWidth()) tip.show(event, lane.name, [["requests", number(lane.rows.length)], ["busy", seconds(lane.busy)], ["last to end", seconds(lane.end)], ["", "click: rows large or small"]]);
    else tip.hide();
  }

  function describe(request) {
    const group = placed.groups[request.group];
    const meaning = { consumed: "consumed", aborted: "thrown away: its group was left over", retried: "failed, generated again" };
    const began = request.first === null ? request.from : request.first;
    return [
      ["group", `${group.uid}, attempt ${group.attempt}${group.tail ? ", regenerated" : ""}`], ["replica", run.replicas[request.lane]],
      ["status", meaning[request.status]], ["tokens", `${number(group.promptTokens)} in, ${number(request.tokens)} out`],
      ["time", `${seconds(request.from)} to ${seconds(request.to)}`],
      ["first token", request.first === null ? null : `after ${seconds(request.first - request.from)}`],
      ["a token", request.tokens > 1 ? `${number((1000 * (request.to - began)) / request.tokens)} ms` : null],
      ["its group", `ends at ${seconds(group.end)}`],
    ].filter(([, value]) => value !== null);
  }

  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerleave", () => { tip.hide(); if (step) point(null); });
  canvas.addEventListener("pointerdown", (event) => {
    const { x, lane } = find(event);
    if (x >= labelWidth()) { drag = { from: x, to: x }; canvas.setPointerCapture(event.pointerId); }
    else if (lane) { if (!expanded.delete(lane.name)) expanded.add(lane.name); draw(); }
  });
  canvas.addEventListener("pointerup", () => {
    if (!drag) return;
    const [from, to] = [drag.from, drag.to].sort((a, b) => a - b).map(toTime);
    const wide = Math.abs(drag.to - drag.from) > 6;
    drag = null;
    if (wide) { view.from = Math.max(0, from); view.to = to; view.zoomed = true; changed(); } else draw();
  });
  return { element: h("div", { class: "lanes" }, facts, chips, canvas), draw };
}
