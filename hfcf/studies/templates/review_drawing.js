// A structure as a drawing that follows the edits: the claim on top, what leads to it below; a node can be chosen as a premise.

const BOX = { width: 190, gap: 20, level: 44, line: 16, pad: 8, columns: 26 };

const shape = (name, attributes = {}, ...children) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

// An SVG of the steps. Every piece is drawn, unused ones below; `chosen` are the premises of the next step, `choose` takes a name.
function drawing(claim, evidence, steps, chosen, choose) {
  const texts = new Map([[ROOT, claim], ...evidence.map(({ id, text }) => [id, text])]);
  const lines = new Map([...texts].map(([name, text]) => [name, wrapped(text)]));
  const rows = levels([...texts.keys()], edgesOf(steps));
  const width = Math.max(...rows.map((row) => row.length)) * (BOX.width + BOX.gap) + BOX.gap, boxes = new Map();
  let top = BOX.gap;
  for (const row of rows) {
    const left = (width - row.length * (BOX.width + BOX.gap) + BOX.gap) / 2;
    row.forEach((name, i) => boxes.set(name, { x: left + i * (BOX.width + BOX.gap), y: top, height: (lines.get(name).length + 1) * BOX.line + 2 * BOX.pad }));
    top += Math.max(...row.map((name) => boxes.get(name).height)) + BOX.level;
  }
  const height = top - BOX.level + BOX.gap;
  const tip = shape("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, shape("path", { d: "M0 0L8 4L0 8z" }));
  const style = `max-width: max(100%, ${0.6 * width}px)`; // a wide one is scrolled rather than made too small to read
  return shape(
    "svg", { viewBox: `0 0 ${width} ${height}`, width, height, style, role: "group", "aria-label": "Drawing of the structure" }, shape("defs", {}, tip),
    ...edgesOf(steps).map(([from, to]) => arrow(boxes.get(from), boxes.get(to))),
    ...[...texts.keys()].map((name) => node(name, boxes.get(name), lines.get(name), nodesOf(steps).includes(name), chosen, choose)),
  );
}

// Names by the length of their longest way to the end, those that lead nowhere and are no conclusion in the last row.
function levels(names, edges) {
  const depth = new Map(names.map((name) => [name, 0]));
  for (const _ of names)
    for (const [from, to] of edges) if (from !== to) depth.set(from, Math.min(Math.max(depth.get(from), depth.get(to) + 1), names.length));
  const linked = new Set([ROOT, ...edges.flat()]), rows = [];
  for (const name of names.filter((one) => linked.has(one))) (rows[depth.get(name)] ??= []).push(name);
  const unused = names.filter((name) => !linked.has(name));
  for (let i = 0; i < unused.length; i += 3) rows.push(unused.slice(i, i + 3));
  return ordered(rows.filter(Boolean), edges);
}

// Each row by the middle of what its names lead to, so that arrows cross less.
function ordered(rows, edges) {
  const places = new Map();
  const middle = (name) => {
    const above = edges.filter(([from, to]) => from === name && places.has(to)).map(([, to]) => places.get(to));
    return above.length ? above.reduce((sum, place) => sum + place) / above.length : 1;
  };
  for (const row of rows) {
    row.sort((one, other) => middle(one) - middle(other));
    row.forEach((name, i) => places.set(name, (i + 0.5) / row.length));
  }
  return rows;
}

function node(name, { x, y, height }, lines, linked, chosen, choose) {
  const text = shape("text", { x: x + BOX.pad, y: y + BOX.pad - 3 });
  [name === ROOT ? ROOT_NAME : name, ...lines].forEach((line, i) => {
    const span = shape("tspan", { x: x + BOX.pad, dy: BOX.line, ...(i ? {} : { class: "name" }) });
    span.textContent = line;
    text.append(span);
  });
  const box = shape("rect", { x, y, width: BOX.width, height, rx: 6 });
  if (name === ROOT) return shape("g", { class: "root", "data-name": name }, box, text);
  const made = shape("g", { class: linked ? "node" : "node unused", "data-name": name, tabindex: 0, role: "button", "aria-pressed": chosen.includes(name) }, box, text);
  made.addEventListener("click", () => choose(name));
  made.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose(name);
  });
  return made;
}

function arrow(from, to) {
  const [x, y] = [from.x + BOX.width / 2, from.y], [toX, toY] = [to.x + BOX.width / 2, to.y + to.height], middle = (y + toY) / 2;
  return shape("path", { class: "arrow", d: `M${x} ${y}C${x} ${middle} ${toX} ${middle} ${toX} ${toY}`, "marker-end": "url(#tip)" });
}

function wrapped(text) {
  const lines = [""];
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
    if (longer.length <= BOX.columns || !lines.at(-1)) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines.map((line) => (line.length > BOX.columns ? `${line.slice(0, BOX.columns - 1)}…` : line));
}
