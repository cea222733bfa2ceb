// The charts over the steps, and the lengths of the responses.
const POOLS = { tail: "tail pool", bulk: "bulk pool" };

function charts() {
  const run = state.subject;
  const steps = { x: "step", whole: true, now: view.step, pick: select };
  const of = several ? ` of ${run.name}` : "";
  const has = (key) => Boolean(run.steps[key]);
  const lineOf = (run, name, key, colour, more) => ({ name, colour, x: run.steps.step, y: run.steps[key], ...more });
  const mine = (name, key, colour, more) => (has(key) ? [lineOf(run, name, key, colour, more)] : []);
  const all = (key) => runs.filter((r) => r.steps[key]).map((r) => lineOf(r, r.name, key, colourOf(r)));
  const strip = (label, series, more) => ({ label, series, height: 150, ...more });
  const [tail, bulk, muted] = ["--tail", "--bulk", "--muted"].map(css);

  // A pool without groups took no time.
  const time = (name, key, colour) => mine(name, key, colour, { y: run.steps[key].map((s) => s || null) });
  const applied = (label, key, height) =>
    strip(
      label,
      [
        ...mine("applied", key, tail, { stepped: true, area: true }),
        ...mine("proposed", `proposed_${key}`, muted, { stepped: true, dashed: true }),
      ],
      { height, whole: true },
    );
  const byPool = (label, key) =>
    strip(label, [...mine(POOLS.tail, `${key}_tail`, tail), ...mine(POOLS.bulk, `${key}_bulk`, bulk)], { height: 84 });

  const predicted = mine(`predicted for ${run.name}`, "predicted_s", colourOf(run), { dashed: true });
  const found = [
    chart(
      "Generation time by step",
      "From the first dispatch to the last consumed token. Click to see a step above.",
      [strip(unit, [...all("gen_time_s"), ...predicted])],
      steps,
    ),
    chart(
      `Tail and bulk time${of}`,
      "The step takes the longer of the two.",
      [
        strip(unit, [
          ...time("tail groups", "tail_time_s", tail),
          ...time("fresh groups, to the cutoff", "bulk_time_s", bulk),
        ]),
      ],
      steps,
    ),
    chart(
      `Allocation${of}`,
      "What the controller chose.",
      [applied("q, tail groups", "q", 68), applied("m, tail replicas", "m", 50)],
      steps,
    ),
    lengthsChart(),
  ];
  const rewards = all("reward_mean");
  if (rewards.length)
    found.push(chart("Reward", "Mean over the step's responses.", [strip("reward", rewards, { zero: false })], steps));
  found.push(
    chart(
      "Tokens thrown away",
      "Share of all generated tokens: left-over groups, and tries that failed.",
      [strip("share", all("wasted_fraction"), { tick: percent })],
      { ...steps, value: percent },
    ),
  );
  if (has("accept_length_tail") || has("accept_length_bulk"))
    found.push(
      chart(
        `Speculation${of}`,
        "Tokens drafted at once; tokens a verification yields, its own one included.",
        [byPool("draft depth", "draft_depth"), byPool("tokens a verification", "accept_length")],
        steps,
      ),
    );
  document.getElementById("charts").replaceChildren(...found.map((c) => c.card));
  found.forEach((c) => c.draw());
  drawn.splice(0, drawn.length, ...found);
}

function lengthsChart() {
  const { edges, shares } = data.lengths;
  const series = runs.map((run, i) => ({
    name: run.name,
    colour: colourOf(run),
    x: edges,
    y: [...shares[i], 0],
    stepped: true,
    area: true,
  }));
  const bin = (x) => {
    const to = edges[edges.indexOf(x) + 1];
    return to ? `${number(Math.ceil(x))} to ${number(Math.ceil(to) - 1)} tokens` : `over ${number(x)} tokens`;
  };
  const quantiles = runs.map(
    (run) => `${several ? `${run.name} ` : ""}${run.lengths.map((n) => number(n)).join(", ")}`,
  );
  return chart(
    "Response lengths",
    `Consumed responses. P50, P90, longest: ${quantiles.join("; ")}.`,
    [{ label: "share of the responses", series, height: 150, tick: percent }],
    { x: "tokens, logarithmic", log: true, title: bin, value: percent },
  );
}
