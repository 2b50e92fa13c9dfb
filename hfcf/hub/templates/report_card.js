// A row as an article. Texts reach the page by textContent alone.

const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== undefined) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
};
const number = (value) =>
  Number.isInteger(value) ? value.toLocaleString("en") : Math.abs(value) < 1e3 ? String(Number(value.toPrecision(4))) : Math.round(value).toLocaleString("en");

function card(i) {
  const reason = reasonOf(i);
  const made = element("article", { class: reason ? "pair rejected" : "pair" }, heading(i, reason));
  const body = element("div", { class: "texts" });
  body.append(...(sourceOf(i)[SOURCE.places].length ? sentence(i) : claimAndEvidence(i)));
  made.append(body);
  if (reason) {
    const [stage, level, why] = reason;
    made.append(element("p", { class: "why" }, element("strong", {}, `${level === "row" ? "Source" : "Candidate"} rejected by ${stage}: `), bdi(why)));
  }
  const told = scores(i);
  if (told) made.append(told);
  return made;
}

const bdi = (text) => element("bdi", {}, text);

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

function claimAndEvidence(row) {
  const texts = sourceOf(row)[SOURCE.texts], made = compared("claim", texts[0], textOf(row, 0));
  for (let i = 1; i < texts.length; i += 2) {
    const [title, text] = [textOf(row, i), textOf(row, i + 1)];
    const name = `evidence ${(i - 1) / 2}`;
    const changed = title !== texts[i] || text !== texts[i + 1];
    const shown = element("p", { class: changed ? "text" : "text soft", dir: "auto" });
    if (title || texts[i]) {
      const heading = element("b", {});
      write(heading, diff(words(texts[i]), words(title)), ["out", "in"]);
      shown.append(heading, " ");
    }
    write(shown, diff(words(texts[i + 1]), words(text)), ["out", "in"]);
    made.push(place(name, changed ? null : "unchanged"), shown);
  }
  return made;
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

// A relation's sentence: its tokens, with the two entities marked.
function sentence(row) {
  const source = sourceOf(row), before = source[SOURCE.texts][0].split(" "), after = textOf(row, 0).split(" ");
  const [places, moved] = [source[SOURCE.places], own.get(row)[OWN.places] || source[SOURCE.places]];
  const parts = diff(before, after), made = element("p", { class: "text", dir: "auto" });
  for (const { kind, words: its, from } of parts) {
    const parent = kind === "same" ? made : element(kind === "out" ? "del" : "ins");
    if (parent !== made) made.append(parent);
    tokens(parent, its, from, kind === "out" ? places : moved);
    made.append(" ");
  }
  return [place("sentence", parts.length === 1 && parts[0].kind === "same" ? "unchanged" : null), made];
}

function tokens(parent, its, from, [head, headEnd, tail, tailEnd]) {
  let open = null, name = null;
  its.forEach((token, k) => {
    const i = from + k, found = i >= head && i < headEnd ? "head" : i >= tail && i < tailEnd ? "tail" : null;
    if (k) (found && found === name ? open : parent).append(" ");
    if (found !== name) {
      open = found && parent.appendChild(element("mark", { class: found, title: found }));
      name = found;
    }
    (open || parent).append(token);
  });
}

function scores(row) {
  const there = data.measures.map(([name], measure) => [name, measured(row, measure)]).filter(([, value]) => value !== null);
  if (!there.length) return null;
  return element("dl", { class: "scores" }, ...there.map(([name, value]) => element("div", {}, element("dt", {}, bdi(name)), element("dd", {}, number(value)))));
}
