// The page of a run: pairs and rows as cards, search, filters, order and pages.
// `blocks` and `changed` hold HTML that the page's writer escaped; every other text reaches the page by textContent.

const SHOWN = 20, PAGE = 25;
const field = (id) => document.getElementById(id);
const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null));
  return made;
};
const bdi = (text) => element("bdi", {}, text);
const option = (text, value = text) => element("option", { value }, text);
const count = (n) => n.toLocaleString("en");
const number = (value) =>
  Number.isInteger(value) ? count(value) : Math.abs(value) < 1e3 ? String(Number(value.toPrecision(4))) : count(Math.round(value));

const data = field("data") && JSON.parse(field("data").textContent);
const accepted = (row) => !row.reason;
const keyOf = ([stage, level, , short]) => JSON.stringify([stage, level, short]);
const links = document.querySelectorAll("[data-why]"); // the funnel's reasons
const keyOfLink = ({ dataset }) => keyOf([dataset.stage, dataset.level, "", dataset.why]);

// A row as an article.
function card(row) {
  const source = data.sources[row.source], before = source.label, after = row.label;
  const label = element("span", { class: "label" });
  if (before && after && before !== after) label.append(bdi(before), " → ", bdi(after));
  else if (after || before) label.append(before ? "" : "→ ", bdi(after || before));
  const change = row.change ? `${row.change} changed` : row.reason ? "nothing was made of it" : "";
  const id = element("span", { class: "id soft" }, bdi(String(row.id)));
  const texts = element("div", { class: "texts" });
  texts.innerHTML = htmlOf(row);
  const made = element("article", { class: row.reason ? "pair rejected" : "pair" },
    element("h3", { class: "top" }, label, element("span", { class: "soft" }, change), id), texts);
  if (row.reason) {
    const [stage, level, why] = row.reason, who = level === "row" ? "Source" : "Candidate";
    made.append(element("p", { class: "why" }, element("strong", {}, `${who} rejected by ${stage}: `), bdi(why)));
  }
  const scores = data.measures.flatMap(([name], n) =>
    row.measures[n] === null ? [] : element("div", {}, element("dt", {}, bdi(name)), element("dd", {}, number(row.measures[n]))));
  if (scores.length) made.append(element("dl", { class: "scores" }, ...scores));
  return made;
}

// The texts of a row: those of its source, and in their places those that it changed.
function htmlOf(row) {
  const blocks = [...data.sources[row.source].blocks];
  for (const [place, html] of Object.entries(row.changed)) blocks[place] = html;
  return blocks.join("");
}

// Rows by a measure, those without it last; equal ones stay in their order.
function ranked(rows, measure, direction) {
  const value = (row) => row.measures[measure] ?? direction * Infinity;
  return [...rows].sort((a, b) => (value(a) === value(b) ? 0 : direction * (value(a) - value(b))));
}

// Twenty accepted pairs: the best, the worst, or some at random. A run that accepted nothing has no such part.
const ways = [...document.querySelectorAll("input[name=way]")];
let seed = 1;

function choosePairs() {
  const way = ways.find((input) => input.checked).value, pairs = data.rows.filter(accepted);
  field("again").hidden = way !== "random";
  field("ranking").hidden = way === "random";
  if (way === "random") return [sample(pairs), `at random, of ${count(pairs.length)}`];
  const measure = Number(field("by").value), low = (way === "best") === (field("low").value === "low");
  const measured = pairs.filter((row) => row.measures[measure] !== null);
  const note = `the ${way} of ${count(measured.length)}, by ${data.measures[measure][0]}, ${low ? "least" : "most"} first`;
  return [ranked(measured, measure, low ? 1 : -1).slice(0, SHOWN), note];
}

// Equal for an equal seed, so that the page shows the same pairs whenever it is opened.
function sample(rows) {
  let state = seed;
  const next = () => (state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff) / 0x7fffffff;
  return rows.map((row) => [next(), row]).sort(([a], [b]) => a - b).slice(0, SHOWN).map(([, row]) => row);
}

function showPairs() {
  const [chosen, note] = choosePairs();
  field("pairs-list").replaceChildren(...chosen.map(card));
  field("chosen").textContent = `${chosen.length} ${chosen.length === 1 ? "pair" : "pairs"}: ${note}`;
}

function startPairs() {
  const better = () => (data.measures[field("by").value][1] ? "low" : "high");
  data.measures.forEach(([name], n) => {
    if (data.rows.some((row) => accepted(row) && row.measures[n] !== null)) field("by").append(option(name, n));
  });
  if (field("by").options.length) field("low").value = better();
  else {
    for (const input of ways) if (input.value === "random") input.checked = true; else input.closest("label").remove();
  }
  for (const control of [...ways, field("low")]) control.addEventListener("change", showPairs);
  field("by").addEventListener("change", () => { field("low").value = better(); showPairs(); });
  field("again").addEventListener("click", () => { seed++; showPairs(); });
  showPairs();
}

// Every row: search, filters, order and pages.
const OUTCOMES = {
  all: () => true,
  accepted,
  rejected: (row) => !accepted(row),
  sources: (row) => row.reason?.[1] === "row",
  candidates: (row) => row.reason?.[1] === "candidate",
};
const fold = (text) => text.normalize("NFKC").toLowerCase();
const pagers = [...document.querySelectorAll(".pager")].map((pager) => [...pager.children]);
const state = { found: [], page: 0, words: [] };

// A row's texts, id and reason in lower case, made when they are first searched.
function textOf(row) {
  if (row.text) return row.text;
  const holder = document.createElement("template");
  holder.innerHTML = htmlOf(row).replaceAll("</p>", "\n</p>");
  row.text = fold([row.id, data.sources[row.source].id, holder.content.textContent, row.reason?.[2] ?? ""].join("\n"));
  return row.text;
}

function filter() {
  state.words = fold(field("find").value).split(/\s+/).filter(Boolean);
  const [outcome, label, change, why, order] = ["outcome", "label", "change", "why", "order"].map((id) => field(id).value);
  state.found = data.rows.filter((row) =>
    OUTCOMES[outcome](row) && (!label || row.label === label) && (!change || row.change === change) &&
    (!why || (row.reason && keyOf(row.reason) === why)) && state.words.every((word) => textOf(row).includes(word)));
  if (order) state.found = ranked(state.found, ...order.split(":").map(Number));
  showPage(0);
}

function showPage(page) {
  const pages = Math.max(1, Math.ceil(state.found.length / PAGE)), list = field("list");
  state.page = Math.min(Math.max(0, page), pages - 1);
  const shown = state.found.slice(state.page * PAGE, (state.page + 1) * PAGE);
  list.replaceChildren(...shown.map(card));
  if (!shown.length) list.append(element("p", { class: "soft" }, data.rows.length ? "No row is like this." : "The run had no rows."));
  field("count").textContent = `${count(state.found.length)} of ${count(data.rows.length)} rows`;
  for (const [back, note, on] of pagers) {
    back.disabled = state.page === 0;
    on.disabled = state.page === pages - 1;
    note.textContent = `page ${count(state.page + 1)} of ${count(pages)}`;
  }
  highlight(list);
}

// Marks what was sought, where the browser can.
function highlight(list) {
  if (!CSS.highlights) return;
  const ranges = [], walker = document.createTreeWalker(list, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.data.toLowerCase();
    if (text.length !== walker.currentNode.data.length) continue;
    for (const word of state.words)
      for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
        const range = new Range();
        range.setStart(walker.currentNode, at);
        range.setEnd(walker.currentNode, at + word.length);
        ranges.push(range);
      }
  }
  CSS.highlights.set("sought", new Highlight(...ranges));
}

function startRows() {
  data.measures.forEach(([name], n) =>
    field("order").append(option(`${name}, highest first`, `${n}:-1`), option(`${name}, lowest first`, `${n}:1`)));
  for (const id of ["label", "change"]) field(id).append(...data[`${id}s`].map((name) => option(name)));
  // The funnel is of the whole run: a page that holds a sample of it may have no row of a reason.
  const groups = new Map([...links].map((link) => [keyOfLink(link), 0]));
  for (const { reason } of data.rows) if (reason) groups.set(keyOf(reason), (groups.get(keyOf(reason)) || 0) + 1);
  for (const [key, n] of [...groups].sort((a, b) => b[1] - a[1])) {
    const [stage, level, short] = JSON.parse(key);
    field("why").append(option(`${stage}: ${short} (${count(n)} ${level === "row" ? "sources" : "candidates"})`, key));
  }
  for (const id of ["label", "change", "why", "order"]) {
    field(id).closest("label").hidden = field(id).options.length < 2;
    field(id).addEventListener("change", filter);
  }
  let waiting = 0;
  field("find").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 120); });
  field("outcome").addEventListener("change", filter);
  field("filters").addEventListener("submit", (event) => { event.preventDefault(); filter(); });
  field("filters").addEventListener("reset", () => setTimeout(filter));
  for (const [back, , on] of pagers)
    for (const [button, step] of [[back, -1], [on, 1]])
      button.addEventListener("click", () => { showPage(state.page + step); field("rows").scrollIntoView(); });
  // A reason in the funnel leads to its rows.
  for (const link of links)
    link.addEventListener("click", () => {
      field("filters").reset();
      field("why").value = keyOfLink(link);
      field("rows").scrollIntoView();
    });
  filter();
}

// What is folded on the screen is not left out on paper.
const details = document.querySelectorAll("details:not([open])");
addEventListener("beforeprint", () => details.forEach((one) => (one.open = true)));
addEventListener("afterprint", () => details.forEach((one) => (one.open = false)));
if (data) {
  if (field("pairs-list")) startPairs();
  startRows();
}
document.documentElement.dataset.ready = "";
