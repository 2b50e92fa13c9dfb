// A row as an article.

const number = (value) =>
  Number.isInteger(value) ? value.toLocaleString("en") : Math.abs(value) < 1e3 ? String(Number(value.toPrecision(4))) : Math.round(value).toLocaleString("en");

function card(i) {
  const reason = reasonOf(i);
  const made = element("article", { class: reason ? "pair rejected" : "pair" }, heading(i, reason));
  const body = element("div", { class: "texts" });
  body.append(...texts(i), ...drawn(i));
  made.append(body);
  if (reason) {
    const [stage, level, why] = reason;
    made.append(element("p", { class: "why" }, element("strong", {}, `${level === "row" ? "Source" : "Candidate"} rejected by ${stage}: `), bdi(why)));
  }
  const told = scores(i);
  if (told) made.append(told);
  return made;
}

function heading(i, reason) {
  const row = data.rows[i], before = labelOf(sourceOf(i)[SOURCE.label]), after = labelOf(row[ROW.label]);
  const label = element("span", { class: "label" });
  if (before && after && before !== after) label.append(bdi(before), " → ", bdi(after));
  else if (after) label.append(before ? "" : "→ ", bdi(after));
  else if (before) label.append(bdi(before));
  const change = row[ROW.change] < 0 ? null : `${data.changes[row[ROW.change]]} changed`;
  const soft = element("span", { class: "soft" }, change || (reason ? "nothing was made of it" : ""));
  return element("h3", { class: "top" }, label, soft, element("span", { class: "id soft" }, bdi(String(own.get(i)[OWN.id]))));
}

// All texts of a row, in the layout of its source: the first with its changes inside it or before and after, the others inside.
function texts(row) {
  const source = sourceOf(row), before = source[SOURCE.texts], made = [];
  data.layouts[source[SOURCE.layout]].forEach(([name, isTitle], n, layout) => {
    if (isTitle) return; // shown with the text that follows
    if (source[SOURCE.marks].some(([text]) => text === n)) made.push(...marked(row, n, name));
    else if (n === 0) made.push(...compared(name, before[0], textOf(row, 0)));
    else made.push(...titled(row, n, name, layout[n - 1][1]));
  });
  return made;
}

// The drawing of a row, folded; an image runs no scripts, whatever stands in the texts.
function drawn(i) {
  const svg = own.get(i)[OWN.drawing] || sourceOf(i)[SOURCE.drawing];
  if (!svg) return [];
  const image = element("img", { alt: "", loading: "lazy", src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}` });
  return [element("details", { class: "drawing", open: "" }, element("summary", {}, "Drawing"), image)];
}

function titled(row, n, name, hasTitle) {
  const before = sourceOf(row)[SOURCE.texts], old = hasTitle ? before[n - 1] : "", young = hasTitle ? textOf(row, n - 1) : "";
  const text = textOf(row, n), changed = young !== old || text !== before[n];
  const shown = element("p", { class: changed ? "text" : "text soft", dir: "auto" });
  if (young || old) {
    const heading = element("b", {});
    write(heading, diff(words(old), words(young)), ["out", "in"]);
    shown.append(heading, " ");
  }
  write(shown, diff(words(before[n]), words(text)), ["out", "in"]);
  return [place(name, changed ? null : "unchanged"), shown];
}

// A text with its changes inside it; where little of it is left, before and after under each other.
function compared(name, before, after) {
  const parts = diff(words(before), words(after));
  if (parts.every((part) => part.kind === "same")) return [place(name, "unchanged"), line(parts, [])];
  const size = (kind) => parts.filter((part) => part.kind === kind).reduce((sum, part) => sum + part.words.length, 0);
  if (size("out") + size("in") <= 2 * size("same")) return [place(name), line(parts, ["out", "in"])];
  return [place(name, "before"), line(parts, ["out"]), place(name, "after"), line(parts, ["in"])];
}

const place = (name, more) => element("p", { class: "where" }, more ? `${name}, ${more}` : name);
const line = (parts, kinds) => {
  const made = element("p", { class: kinds.length ? "text" : "text soft", dir: "auto" });
  write(made, parts, kinds);
  return made;
};

function write(parent, parts, kinds) {
  for (const { kind, words: its } of parts) {
    if (kind === "same") parent.append(its.join(""));
    else if (kinds.includes(kind)) {
      const text = its.join(""), space = text.match(/^\s*/)[0];
      parent.append(space, element(kind === "out" ? "del" : "ins", {}, text.slice(space.length)));
    }
  }
}

// A text with marks in it, such as a sentence with two entities: its words, which single spaces separate.
function marked(row, n, name) {
  const source = sourceOf(row), before = source[SOURCE.texts][n].split(" "), after = textOf(row, n).split(" ");
  const marksOf = (all) => all.filter(([text]) => text === n);
  const marks = marksOf(source[SOURCE.marks]), moved = marksOf(own.get(row)[OWN.marks] || source[SOURCE.marks]);
  const parts = diff(before, after), made = element("p", { class: "text", dir: "auto" });
  for (const { kind, words: its, from } of parts) {
    const parent = kind === "same" ? made : element(kind === "out" ? "del" : "ins");
    if (parent !== made) made.append(parent);
    markedWords(parent, its, from, kind === "out" ? marks : moved);
    made.append(" ");
  }
  return [place(name, parts.length === 1 && parts[0].kind === "same" ? "unchanged" : null), made];
}

function markedWords(parent, its, from, marks) {
  let open = null, name = null;
  its.forEach((word, k) => {
    const found = marks.find(([, , start, end]) => from + k >= start && from + k < end)?.[1] ?? null;
    if (k) (found && found === name ? open : parent).append(" ");
    if (found !== name) {
      open = found && parent.appendChild(element("mark", { class: found, title: found }));
      name = found;
    }
    (open || parent).append(word);
  });
}

function scores(row) {
  const there = data.measures.map(([name], measure) => [name, measured(row, measure)]).filter(([, value]) => value !== null);
  if (!there.length) return null;
  return element("dl", { class: "scores" }, ...there.map(([name, value]) => element("div", {}, element("dt", {}, bdi(name)), element("dd", {}, number(value)))));
}
