// Put together: everything is drawn at once, and again when the theme or the window changes.
function everyMetric() {
  const details = document.getElementById("table");
  details.addEventListener("toggle", () => {
    if (!details.open) return;
    const blocks = runs.flatMap((run) => {
      const keys = Object.keys(run.steps);
      const row = (_, i) =>
        tableRow(
          "td",
          keys.map((key) => number(run.steps[key][i])),
        );
      return [h("h2", {}, dot(colourOf(run)), run.name), tableOf(keys, run.steps.step.map(row))];
    });
    details.querySelector("div").replaceChildren(...blocks);
  });
}

function everything() {
  cards();
  table();
  timeline();
  charts();
}

function theme(name) {
  document.documentElement.dataset.theme = name;
  document.getElementById("theme").textContent = name === "dark" ? "Light" : "Dark";
}

theme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
document.getElementById("theme").addEventListener("click", () => {
  theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  everything();
});
about();
firstView();
everything();
everyMetric();
document.getElementById("notes").append(...data.missing.map((why) => h("p", {}, `No run has ${why}.`)));
let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  redraw();
  drawn.forEach((c) => c.draw());
});
// What the page took to draw, milliseconds from its opening, for those who measure it.
document.documentElement.dataset.drawn = Math.round(performance.now());
