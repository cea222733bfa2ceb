// What the other parts share: elements, numbers, the tooltip, the colours of the theme.
const SVG = "http://www.w3.org/2000/svg";

function make(space, tag, attributes, children) {
  const element = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  // Strings become text nodes: names of runs and groups are never read as markup.
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}
const h = (tag, attributes, ...children) => make(null, tag, attributes, children);
const s = (tag, attributes, ...children) => make(SVG, tag, attributes, children);

function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  if (Number.isInteger(value)) return String(value);
  return value.toFixed(Math.max(0, Math.min(6, digits - 1 - Math.floor(Math.log10(size || 1)))));
}
const seconds = (value) => `${number(value)} s`;
const percent = (share) => `${number(100 * share, share < 0.0995 ? 2 : 3)} %`;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const button = (text, onclick, more) => h("button", { type: "button", onclick, ...more }, text);
const tableRow = (tag, cells, more) => {
  const made = cells.map((cell) => h(tag, {}, cell));
  return h("tr", more, made);
};
const tableOf = (names, rows) =>
  h("div", { class: "scroll" }, h("table", {}, h("thead", {}, tableRow("th", names)), h("tbody", {}, rows)));

const tip = {
  show(event, title, rows) {
    const box = document.getElementById("tip");
    const line = ([name, value, colour]) =>
      h("tr", {}, h("td", {}, colour ? dot(colour) : null, name), h("td", {}, value));
    box.replaceChildren(h("b", {}, title), h("table", {}, rows.map(line)));
    box.hidden = false;
    const { width, height } = box.getBoundingClientRect();
    const left = event.clientX + 16 + width > innerWidth ? event.clientX - 16 - width : event.clientX + 16;
    box.style.left = `${Math.max(4, left)}px`;
    box.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - height - 4))}px`;
  },
  hide() {
    document.getElementById("tip").hidden = true;
  },
};
const dot = (colour, dashed) => h("span", { class: dashed ? "dot dashed" : "dot", style: `background:${colour}` });

// A tick's text: no more digits than it has.
const tickText = (value) =>
  Math.abs(value) >= 10000 ? value.toLocaleString("en") : String(Number(value.toPrecision(6)));

// At most `count` round values that cover [low, high].
function ticks(low, high, count) {
  if (!(high > low)) return [low];
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= rough * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++)
    found.push(Number((i * step).toPrecision(12)));
  return found;
}
