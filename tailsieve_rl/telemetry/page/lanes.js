// A step's requests, unpacked and placed: each replica is a lane, each request a bar in a row of its own.
// What the columns mean is said in timelines.py.
const TICKS = 65535;
const TAIL_BIT = 4;
const STATUS = ["consumed", "aborted", "retried"];
const ARRAYS = { kind: Uint8Array, tokens: Uint32Array };

function unpack(run) {
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
  const columns = {};
  for (const [name, text] of Object.entries(run.packed)) columns[name] = new (ARRAYS[name] || Uint16Array)(bytes(text));
  run.columns = columns;
  let offset = 0;
  for (const step of run.timelines) {
    step.offset = offset;
    offset += step.rows;
  }
}

function requestsOf(run, step) {
  const c = run.columns;
  const found = [];
  for (let i = step.offset; i < step.offset + step.rows; i++) {
    const time = (ticks) => (ticks / TICKS) * step.span;
    found.push({
      lane: c.lane[i],
      group: c.group[i],
      session: c.session[i],
      tokens: c.tokens[i],
      status: STATUS[c.kind[i] % TAIL_BIT],
      tail: c.kind[i] >= TAIL_BIT,
      from: time(c.dispatch[i]),
      first: c.first[i] === TICKS ? null : time(c.first[i]),
      to: time(c.end[i]),
    });
  }
  return found;
}

// Lanes of a step, the tail pool's first. Rows are sorted by `order`: with "end" the edge of a lane is the number of its
// requests that still run, "group" puts a group's requests together. `end` is the step's generation time.
function lanesOf(run, step, order, end) {
  const requests = requestsOf(run, step);
  const groups = step.groups.map(([uid, prompt, attempt, promptTokens], i) => {
    const of = requests.filter((r) => r.group === i);
    return {
      uid,
      prompt,
      attempt,
      promptTokens,
      requests: of,
      tail: of.some((r) => r.tail),
      end: Math.max(...of.map((r) => r.to)),
      left: !of.some((r) => r.status === "consumed"),
    };
  });
  const lanes = run.replicas.map((name, i) => {
    const rows = requests.filter((r) => r.lane === i);
    const busy = covered(rows, end);
    const tail = rows.length > 0 && rows.every((r) => r.tail);
    const byEnd = (a, b) => a.to - b.to;
    const byGroup = (a, b) => groups[a.group].end - groups[b.group].end || a.group - b.group || byEnd(a, b);
    rows.sort(order === "group" ? byGroup : byEnd);
    return { name, rows, tail, busy, end: Math.max(0, ...rows.map((r) => r.to)) };
  });
  lanes.sort((a, b) => b.tail - a.tail);
  return { lanes, groups, requests };
}

// Seconds up to `end` in which at least one of the requests was there.
function covered(requests, end) {
  let total = 0;
  let until = 0;
  for (const r of [...requests].sort((a, b) => a.from - b.from)) {
    const to = Math.min(r.to, end);
    total += Math.max(0, to - Math.max(r.from, until));
    until = Math.max(until, to);
  }
  return total;
}
