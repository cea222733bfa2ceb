// The runs that the page is about, and what the reader has chosen to see.
const data = JSON.parse(document.getElementById("data").textContent);
const runs = data.runs;
const first = runs[0];
const several = runs.length > 1;
const colourOf = (run) => css(`--run${several ? runs.indexOf(run) % 6 : 1}`);
const state = { subject: runs[runs.length - 1], shown: new Set(several ? [first, runs[runs.length - 1]] : [first]) };
const unit = runs.every((run) => run.measured) ? "s" : `${first.backend} s`;
const drawn = [];
runs.forEach(unpack);
const stepsDrawn = [...new Set(runs.flatMap((run) => run.timelines.map((t) => t.step)))].sort((a, b) => a - b);
const view = { step: stepsDrawn[stepsDrawn.length - 1], order: "end", from: 0, to: 1, zoomed: false, pointed: null };

// A step says most if groups were regenerated in it and left over by it, if all runs have it, and if it is not the
// first one, in which a job still warms up.
function firstView() {
  const run = runs[runs.length - 1];
  const worth = (t) =>
    [
      t.cutoff !== null,
      t.groups.some((g) => g[2] > 1),
      t.step > run.steps.step[0],
      runs.every((r) => r.timelines.some((other) => other.step === t.step)),
    ].filter(Boolean).length;
  const best = run.timelines.reduce((a, b) => (worth(b) >= worth(a) ? b : a), run.timelines[0]);
  if (best) view.step = best.step;
}
