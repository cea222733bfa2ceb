// A step in words: the line above its timeline, the groups that came and went, and the details of one request.

// `point` is called with the group that a button stands for while the mouse or the focus is on it, and with null after.
function tellStep(facts, chips, run, step, placed, metric, point) {
  const chip = (group, text) =>
    button(text, null, {
      title: `prompt ${group.prompt}, group ${group.uid}`,
      onpointerenter: () => point(group),
      onpointerleave: () => point(null),
      onfocus: () => point(group),
      onblur: () => point(null),
    });
  const list = (title, groups) => {
    const most = 16;
    if (!groups.length) return;
    chips.append(`${title}:`, ...groups.slice(0, most).map((group) => chip(group, group.prompt)));
    if (groups.length > most) chips.append(`and ${groups.length - most} more`);
    chips.append(h("span", {}, " "));
  };

  const [q, m, time] = ["q", "m", "gen_time_s"].map(metric);
  const idle = 1 - placed.lanes.reduce((sum, lane) => sum + lane.busy, 0) / (placed.lanes.length * time);
  const last = placed.requests.filter((r) => r.status === "consumed").reduce((a, b) => (b.to > a.to ? b : a));
  const group = placed.groups[last.group];
  facts.append(
    `: ${seconds(time)}`,
    m ? ` (tail pool ${seconds(metric("tail_time_s"))}, bulk pool ${seconds(metric("bulk_time_s"))})` : "",
    `, q ${number(q)}, m ${number(m)}; replicas idle ${percent(Math.max(0, idle))} of the time; the last to finish was `,
    chip(group, `prompt ${group.prompt}`),
    ` on ${run.replicas[last.lane]}, ${number(last.tokens)} tokens.`,
  );
  const aborted = step.cutoff === null ? [] : placed.requests.filter((r) => r.status === "aborted");
  const late = Math.max(0, ...aborted.map((r) => r.to - step.cutoff));
  if (!run.measured && late > 0.02 * time) {
    const delay = `Aborts reached the ${run.backend} engines up to ${seconds(late)} late`;
    facts.append(` ${delay}: the job's own delay, in ${run.backend} seconds.`);
  }
  const regenerated = placed.groups.filter((g) => g.tail);
  list("regenerated in this step", regenerated);
  const left = placed.groups.filter((g) => g.left);
  list("left over at the cutoff", left);
}

const MEANING = {
  consumed: "consumed",
  aborted: "thrown away: its group was left over",
  retried: "failed, generated again",
};

// Rows of a request's tooltip.
function details(run, request, group) {
  const began = request.first === null ? request.from : request.first;
  return [
    ["group", `${group.uid}, attempt ${group.attempt}${group.tail ? ", regenerated" : ""}`],
    ["replica", run.replicas[request.lane]],
    ["status", MEANING[request.status]],
    ["tokens", `${number(group.promptTokens)} in, ${number(request.tokens)} out`],
    ["time", `${seconds(request.from)} to ${seconds(request.to)}`],
    ["first token", request.first === null ? null : `after ${seconds(request.first - request.from)}`],
    ["a token", request.tokens > 1 ? `${number((1000 * (request.to - began)) / request.tokens)} ms` : null],
    ["its group", `ends at ${seconds(group.end)}`],
  ].filter(([, value]) => value !== null);
}
