// Every row: search, filters, order and pages.

const PAGE = 25;
const state = { found: [], page: 0 };
let haystack = null; // the promise of each source's and each row's texts in lower case, made at the first search
let asked = 0; // the latest question: what an older one finds later is not shown

const folded = (text) => text.normalize("NFKC").toLowerCase();
const pagers = () => [...document.querySelectorAll(".pager")].map((pager) => [...pager.children]);
const inOne = (...texts) => folded(texts.flat().join("\n"));

async function searchable() {
  await open(data.blocks.keys());
  const sources = data.sources.map((source) => inOne(source[SOURCE.id], source[SOURCE.texts]));
  const rows = data.rows.map((_, i) => inOne(own.get(i)[OWN.id], Object.values(own.get(i)[OWN.texts]), reasonOf(i)?.[2] ?? ""));
  return (i, word) => rows[i].includes(word) || sources[data.rows[i][ROW.source]].includes(word);
}

const OUTCOMES = {
  all: () => true,
  accepted: (i) => accepted(i),
  rejected: (i) => !accepted(i),
  sources: (i) => reasonOf(i)?.[1] === "row",
  candidates: (i) => reasonOf(i)?.[1] === "candidate",
};

async function filter() {
  const question = ++asked, sought = folded(field("find").value).split(/\s+/).filter(Boolean);
  let has = null;
  if (sought.length) {
    field("count").textContent = "reading all texts …";
    // Else a page turned meanwhile would be the latest question, and what was sought lost.
    for (const [back, , on] of pagers()) back.disabled = on.disabled = true;
    has = await (haystack ??= searchable());
    if (question !== asked) return;
  }
  const outcome = OUTCOMES[field("outcome").value], why = field("why").value;
  const [label, change] = ["label", "change"].map((id) => (field(id).value === "" ? null : Number(field(id).value)));
  state.found = [...data.rows.keys()].filter((i) => {
    const row = data.rows[i];
    if (!outcome(i) || (label !== null && row[ROW.label] !== label) || (change !== null && row[ROW.change] !== change)) return false;
    if (why && (accepted(i) || keyOf(reasonOf(i)) !== why)) return false;
    return sought.every((word) => has(i, word));
  });
  const order = field("order").value;
  if (order) state.found = ranked(state.found, ...order.split(":").map(Number));
  state.page = 0;
  await showPage();
}

// Rows by a measure, those without it last; equal ones stay in their order.
function ranked(numbers, measure, direction) {
  return [...numbers].sort((a, b) => {
    const [one, other] = [measured(a, measure), measured(b, measure)];
    if (one === null || other === null) return (one === null) - (other === null) || a - b;
    return direction * (one - other) || a - b;
  });
}

const keyOf = ([stage, level, , short]) => JSON.stringify([stage, level, short]);

async function showPage() {
  const question = ++asked, pages = Math.max(1, Math.ceil(state.found.length / PAGE));
  state.page = Math.min(Math.max(0, state.page), pages - 1);
  const shown = state.found.slice(state.page * PAGE, (state.page + 1) * PAGE);
  await open(shown.map(blockOf));
  if (question !== asked) return;
  const list = field("list");
  list.replaceChildren(...shown.map(card));
  if (!shown.length) list.append(element("p", { class: "soft" }, none()));
  field("count").textContent = `${state.found.length.toLocaleString("en")} of ${data.rows.length.toLocaleString("en")} rows`;
  for (const [back, told, on] of pagers()) {
    back.disabled = state.page === 0;
    on.disabled = state.page === pages - 1;
    told.textContent = `page ${(state.page + 1).toLocaleString("en")} of ${pages.toLocaleString("en")}`;
  }
  highlight(list);
}

function none() {
  if (!data.rows.length) return "There are no rows.";
  const why = field("why").value;
  const there = !why || data.reasons.some((reason) => keyOf(reason) === why);
  return there
    ? "No row is like this: ask for less, or clear the filters."
    : "None of these rows is in this page, which has a sample of the run's; all are in the Parquet files beside it.";
}

// What was sought is marked where it stands, without touching the elements.
function highlight(list) {
  if (!window.CSS || !CSS.highlights) return;
  CSS.highlights.delete("sought");
  const sought = field("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  if (!sought.length) return;
  const ranges = [], walker = document.createTreeWalker(list, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.data.toLowerCase();
    if (text.length !== walker.currentNode.data.length) continue;
    for (const word of sought)
      for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
        const range = new Range();
        range.setStart(walker.currentNode, at);
        range.setEnd(walker.currentNode, at + word.length);
        ranges.push(range);
      }
  }
  CSS.highlights.set("sought", new Highlight(...ranges));
}

async function turn(pages) {
  state.page += pages;
  await showPage();
  field("rows").scrollIntoView();
}
