// Line charts in SVG: one or more strips that share their x axis.

// strips: [{label, height, zero, whole, tick, series: [{name, colour, x, y, dashed, stepped, area}]}]
// options: {x: label, log, whole, now: x of a marker, pick: called with the x that is clicked, value: of y to text}
function chart(title, note, strips, options) {
  const card = h("figure", { class: "card" });
  const draw = () => {
    const width = Math.max(280, card.clientWidth - 34);
    const legend = strips
      .flatMap((strip) => strip.series)
      .filter((line, i, all) => all.findIndex((o) => o.name === line.name) === i);
    card.replaceChildren(
      ...[
        h("h2", {}, title),
        note ? h("figcaption", {}, note) : null,
        legend.length > 1
          ? h(
              "div",
              { class: "legend" },
              legend.map((line) => h("span", {}, dot(line.colour, line.dashed), line.name)),
            )
          : null,
        plot(strips, options, width),
      ].filter(Boolean),
    );
  };
  return { card, draw };
}

function plot(strips, options, width) {
  const [left, right, gap, bottom] = [46, 10, 22, 34];
  const xs = strips.flatMap((strip) => strip.series.flatMap((line) => line.x));
  let [low, high] = [Math.min(...xs), Math.max(...xs)];
  if (!(high > low)) {
    low -= 0.5;
    high += 0.5;
  }
  const scale = options.log ? Math.log : (x) => x;
  const toX = (x) => left + ((scale(x) - scale(low)) / (scale(high) - scale(low))) * (width - left - right);
  const total = strips.reduce((sum, strip) => sum + strip.height + gap, 0);
  const svg = s("svg", { viewBox: `0 0 ${width} ${total + bottom}`, height: total + bottom, role: "img" });

  const xTicks = options.log
    ? doublings(low, high)
    : ticks(low, high, Math.min(10, width / 60)).filter((x) => !options.whole || Number.isInteger(x));
  for (const x of xTicks) {
    svg.append(s("line", { class: "grid", x1: toX(x), x2: toX(x), y1: gap, y2: total }));
    svg.append(s("text", { x: toX(x), y: total + 15, "text-anchor": "middle" }, tickText(x)));
  }
  svg.append(s("text", { x: width - right, y: total + 30, "text-anchor": "end" }, options.x));

  let top = gap;
  for (const strip of strips) {
    drawStrip(svg, strip, top, width, left, right, toX);
    top += strip.height + gap;
  }
  if (options.now !== undefined && options.now >= low && options.now <= high)
    svg.append(s("line", { class: "now", x1: toX(options.now), x2: toX(options.now), y1: gap, y2: total }));
  const cursor = s("line", { class: "axis", y1: gap, y2: total, visibility: "hidden" });
  svg.append(cursor, hitArea(svg, strips, options, { width, total, toX, cursor }));
  return svg;
}

function drawStrip(svg, strip, top, width, left, right, toX) {
  const ys = strip.series.flatMap((line) => line.y).filter((y) => y !== null);
  let low = strip.zero === false ? Math.min(...ys) : Math.min(0, ...ys);
  let high = Math.max(...ys);
  if (!ys.length) low = 0;
  if (!(high > low)) high = low + 1;
  const pad = (high - low) * 0.06;
  if (low < 0 || strip.zero === false) low -= pad;
  high += pad;
  const toY = (y) => top + strip.height - ((y - low) / (high - low)) * strip.height;
  const found = ticks(low, high, Math.max(2, strip.height / 38)).filter((y) => !strip.whole || Number.isInteger(y));
  for (const y of found) {
    svg.append(s("line", { class: "grid", x1: left, x2: width - right, y1: toY(y), y2: toY(y) }));
    svg.append(
      s("text", { x: left - 7, y: toY(y) + 4, "text-anchor": "end" }, strip.tick ? strip.tick(y) : tickText(y)),
    );
  }
  svg.append(s("text", { x: left, y: top - 5 }, strip.label));
  for (const line of strip.series) {
    const path = pathOf(line, toX, toY);
    if (line.area)
      svg.append(s("path", { d: `${path}V${toY(0)}H${toX(line.x[0])}Z`, fill: line.colour, opacity: 0.13 }));
    svg.append(
      s("path", {
        d: path,
        fill: "none",
        stroke: line.colour,
        "stroke-width": line.dashed ? 1.4 : 2,
        "stroke-linejoin": "round",
        "stroke-dasharray": line.dashed ? "4 3" : null,
      }),
    );
    if (line.x.length <= 60 && !line.stepped)
      line.x.forEach(
        (x, i) =>
          line.y[i] === null ||
          line.dashed ||
          svg.append(s("circle", { cx: toX(x), cy: toY(line.y[i]), r: 2.4, fill: line.colour })),
      );
  }
}

function pathOf(line, toX, toY) {
  let path = "";
  let pen = false;
  line.x.forEach((x, i) => {
    const y = line.y[i];
    if (y === null || y === undefined) {
      pen = false;
      return;
    }
    const [px, py] = [toX(x).toFixed(1), toY(y).toFixed(1)];
    path += !pen ? `M${px} ${py}` : line.stepped ? `H${px}V${py}` : `L${px} ${py}`;
    pen = true;
  });
  return path;
}

// Round lengths, each twice (or a power of two times) the one before.
function doublings(low, high) {
  const all = [];
  for (let x = 2 ** Math.ceil(Math.log2(low)); x <= high * 1.001; x *= 2) all.push(x);
  const every = Math.ceil(all.length / 9);
  return all.filter((_, i) => i % every === 0);
}

function hitArea(svg, strips, options, { width, total, toX, cursor }) {
  const at = [...new Set(strips.flatMap((strip) => strip.series.flatMap((line) => line.x)))].sort((a, b) => a - b);
  const nearest = (event) => {
    const box = svg.getBoundingClientRect();
    const px = ((event.clientX - box.left) / box.width) * width;
    return at.reduce((best, x) => (Math.abs(toX(x) - px) < Math.abs(toX(best) - px) ? x : best), at[0]);
  };
  const text = options.value || ((y) => number(y));
  return s("rect", {
    class: "hit",
    x: 0,
    y: 0,
    width,
    height: total,
    onpointermove(event) {
      const x = nearest(event);
      cursor.setAttribute("x1", toX(x));
      cursor.setAttribute("x2", toX(x));
      cursor.setAttribute("visibility", "visible");
      const rows = strips
        .flatMap((strip) =>
          strip.series.map((line) => {
            const y = line.y[line.x.indexOf(x)];
            return y === undefined || y === null ? null : [line.name, text(y), line.colour];
          }),
        )
        .filter(Boolean);
      tip.show(event, options.title ? options.title(x) : `${options.x} ${number(x)}`, rows);
    },
    onpointerleave() {
      cursor.setAttribute("visibility", "hidden");
      tip.hide();
    },
    onclick(event) {
      if (options.pick) options.pick(nearest(event));
    },
  });
}
