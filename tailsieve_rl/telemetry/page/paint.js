// A step on a canvas. A scene is {placed, step, view, end, edge, width, bottom, toX, selected}: the lanes with their
// places, what is shown of them, the step's end in seconds, where the lanes begin, and a span that is being dragged.

function paintStep(pen, scene) {
  const { view, toX, width, bottom } = scene;
  const colours = {};
  for (const name of ["ink", "muted", "grid", "card", "idle", "cut", "tail", "bulk", "aborted", "retried"])
    colours[name] = css(`--${name}`);
  pen.font = "11.5px system-ui, sans-serif";
  pen.lineWidth = 1;
  pen.textBaseline = "middle";
  for (const t of ticks(view.from, view.to, Math.max(2, width / 110))) {
    line(pen, toX(t), 14, bottom, colours.grid);
    write(pen, `${number(t)} s`, Math.min(toX(t), width - 18), bottom + 9, colours.muted, "center");
  }
  for (const lane of scene.placed.lanes) paintLane(pen, scene, lane, colours);
  const { cutoff } = scene.step;
  if (cutoff !== null) marker(pen, scene, cutoff, `cutoff ${seconds(cutoff)}`, colours.cut, [4, 3]);
  const crowded = cutoff !== null && Math.abs(toX(scene.end) - toX(cutoff)) < 130;
  marker(pen, scene, scene.end, crowded ? "" : `end ${seconds(scene.end)}`, colours.muted, []);
  if (scene.selected) {
    const [from, to] = scene.selected;
    pen.fillStyle = `${colours.muted}33`;
    pen.fillRect(Math.min(from, to), 14, Math.abs(to - from), bottom - 14);
  }
}

function paintLane(pen, scene, lane, colours) {
  const { placed, view, toX, edge, end, width } = scene;
  pen.save();
  pen.beginPath();
  pen.rect(edge, lane.top - 1, width - edge, lane.height + 2);
  pen.clip();
  pen.fillStyle = colours.idle;
  pen.fillRect(edge, lane.top, Math.max(0, toX(end) - edge), lane.height);
  const height = lane.rowHeight > 3 ? lane.rowHeight - 1 : Math.max(1, lane.rowHeight);
  lane.rows.forEach((request, i) => {
    const faint = view.pointed !== null && placed.groups[request.group].prompt !== view.pointed;
    const y = lane.top + i * lane.rowHeight;
    paintRequest(
      pen,
      request,
      { x: toX(request.from), y, to: toX(request.to), height },
      colours,
      faint ? 0.16 : 1,
      toX,
    );
  });
  pen.globalAlpha = 1;
  const idle = end - lane.end;
  if (idle > 0.02 * end && toX(end) - toX(lane.end) > 90) {
    const text = lane.rows.length ? `idle ${seconds(idle)}` : "no requests";
    write(pen, text, toX(end) - 8, lane.top + 9, colours.muted, "right");
  }
  pen.restore();
  pen.fillStyle = lane.tail ? colours.tail : colours.bulk;
  pen.fillRect(0, lane.top, 3, lane.height);
  write(pen, fitting(pen, lane.name, edge - 16), 9, lane.top + 8, colours.ink, "left");
  if (lane.height < 28) return;
  const pool = lane.tail ? "tail pool" : "bulk";
  write(pen, edge > 100 ? `${pool}, ${lane.rows.length} requests` : pool, 9, lane.top + 22, colours.muted, "left");
}

function paintRequest(pen, request, { x, y, to, height }, colours, alpha, toX) {
  const width = Math.max(1, to - x);
  pen.globalAlpha = alpha;
  pen.fillStyle = colours[request.status === "consumed" ? (request.tail ? "tail" : "bulk") : request.status];
  pen.fillRect(x, y, width, height);
  if (height >= 3 && request.first !== null && request.first > request.from) {
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
  for (let at = x - height; at < x + width; at += 6) {
    pen.moveTo(at, y + height);
    pen.lineTo(at + height, y);
  }
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

function marker(pen, { toX, edge, width, bottom }, time, text, colour, dashes) {
  const x = toX(time);
  if (x < edge - 1 || x > width + 1) return;
  line(pen, Math.min(x, width - 1), 12, bottom, colour, dashes);
  write(pen, text, Math.min(x - 4, width - 4), 7, colour, x < edge + 110 ? "left" : "right");
}

function write(pen, text, x, y, colour, align) {
  pen.fillStyle = colour;
  pen.textAlign = align;
  pen.fillText(text, x, y);
}

// A name that is too long is cut at its front: its end tells replicas apart.
function fitting(pen, text, width) {
  let cut = text;
  while (cut.length > 3 && pen.measureText(cut).width > width) cut = `…${cut.slice(cut[0] === "…" ? 2 : 1)}`;
  return cut;
}
