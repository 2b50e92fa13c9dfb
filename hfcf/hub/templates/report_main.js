// The page put together: options of the lists, what each control does, and the first rows.

const SHOWN = 20;
const field = (id) => document.getElementById(id);
const holder = document.getElementById("data");
const data = holder ? { ...JSON.parse(holder.textContent), sources: [] } : null;
const option = (text, value = text) => element("option", { value }, text);

// Twenty accepted pairs: the best, the worst, or some at random; those without the measure are none of these.
function choose(way) {
  const all = [...data.rows.keys()].filter(accepted);
  if (way === "random") return sample(all, seed);
  const measure = Number(field("by").value), low = field("low").value === "low";
  const there = all.filter((i) => measured(i, measure) !== null);
  return ranked(there, measure, (way === "best") === low ? 1 : -1).slice(0, SHOWN);
}

// Equal for an equal seed, so that the page shows the same pairs whenever it is opened.
let seed = 1;
function sample(numbers, from) {
  const mixed = [...numbers];
  let state = from;
  const next = () => { // mulberry32
    state = (state + 0x6d2b79f5) | 0;
    let x = Math.imul(state ^ (state >>> 15), 1 | state);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return (x ^ (x >>> 14)) >>> 0;
  };
  const n = Math.min(SHOWN, mixed.length);
  for (let i = 0; i < n; i++) {
    const j = i + (next() % (mixed.length - i));
    [mixed[i], mixed[j]] = [mixed[j], mixed[i]];
  }
  return mixed.slice(0, n);
}

let wanted = 0;
async function showPairs() {
  const question = ++wanted, way = document.querySelector("input[name=way]:checked").value;
  field("again").hidden = way !== "random";
  field("ranking").hidden = way === "random";
  const chosen = choose(way);
  await open(chosen.map(blockOf));
  if (question === wanted) field("pairs-list").replaceChildren(...chosen.map(card));
}

// Whether accepted pairs have a measure.
const ranks = (measure) => data.rows.some((_, i) => accepted(i) && measured(i, measure) !== null);

const better = () => (data.measures[field("by").value][1] ? "low" : "high");

function fill() {
  data.measures.forEach(([name], i) => {
    if (ranks(i)) field("by").append(option(name, i));
    field("order").append(option(`${name}, highest first`, `${i}:-1`), option(`${name}, lowest first`, `${i}:1`));
  });
  data.labels.forEach((label, i) => field("label").append(option(label, i)));
  data.changes.forEach((change, i) => field("change").append(option(change, i)));
  const groups = new Map();
  for (const row of data.rows) {
    if (row[ROW.reason] < 0) continue;
    const key = keyOf(data.reasons[row[ROW.reason]]);
    groups.set(key, (groups.get(key) || 0) + 1);
  }
  for (const [key, n] of [...groups].sort((a, b) => b[1] - a[1])) {
    const [stage, level, short] = JSON.parse(key);
    field("why").append(option(`${stage}: ${short} (${n.toLocaleString("en")} ${level === "row" ? "sources" : "candidates"})`, key));
  }
  for (const id of ["label", "change", "why", "order"]) field(id).closest("label").hidden = field(id).options.length < 2;
}

function listen() {
  let waiting = 0;
  field("find").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 120); });
  for (const id of ["outcome", "label", "change", "why", "order"]) field(id).addEventListener("change", filter);
  field("filters").addEventListener("submit", (event) => { event.preventDefault(); filter(); });
  field("filters").addEventListener("reset", () => setTimeout(filter));
  for (const pager of document.querySelectorAll(".pager")) {
    pager.firstElementChild.addEventListener("click", () => turn(-1));
    pager.lastElementChild.addEventListener("click", () => turn(1));
  }
  for (const way of document.querySelectorAll("input[name=way]")) way.addEventListener("change", showPairs);
  field("by").addEventListener("change", () => { field("low").value = better(); showPairs(); });
  field("low").addEventListener("change", showPairs);
  field("again").addEventListener("click", () => { seed++; showPairs(); });
  // A reason in the funnel leads to its rows.
  for (const link of document.querySelectorAll("[data-why]"))
    link.addEventListener("click", () => {
      field("filters").reset();
      field("why").value = keyOf([link.dataset.stage, link.dataset.level, "", link.dataset.why]);
      field("rows").scrollIntoView();
    });
}

function start() {
  fill();
  if (field("by").options.length) field("low").value = better();
  else {
    document.querySelectorAll("input[name=way]:not([value=random])").forEach((way) => way.closest("label").remove());
    document.querySelector("input[name=way]").checked = true;
  }
  listen();
  state.found = [...data.rows.keys()];
  // Waited for: a page that says that it is loaded shows its rows.
  return Promise.all([data.accepted ? showPairs() : null, showPage()]);
}
if (data) await start();
document.documentElement.dataset.ready = "";
