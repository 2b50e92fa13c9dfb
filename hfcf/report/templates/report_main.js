// The page put together: options of the lists, what each control does, and the first rows.

const field = (id) => document.getElementById(id);
const holder = field("data");
const data = holder ? { ...JSON.parse(holder.textContent), sources: [] } : null;
const option = (text, value = text) => element("option", { value }, text);
const links = document.querySelectorAll("[data-why]"); // the funnel's reasons
const keyOfLink = ({ dataset }) => keyOf([dataset.stage, dataset.level, "", dataset.why]);

function fill() {
  data.measures.forEach(([name], i) =>
    field("order").append(option(`${name}, highest first`, `${i}:-1`), option(`${name}, lowest first`, `${i}:1`)));
  data.labels.forEach((label, i) => field("label").append(option(label, i)));
  data.changes.forEach((change, i) => field("change").append(option(change, i)));
  // The funnel is of the whole run: a page that holds a sample of it may have no row of a reason.
  const groups = new Map([...links].map((link) => [keyOfLink(link), 0]));
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
  for (const [back, , on] of pagers()) {
    back.addEventListener("click", () => turn(-1));
    on.addEventListener("click", () => turn(1));
  }
  // A reason in the funnel leads to its rows.
  for (const link of links)
    link.addEventListener("click", () => {
      field("filters").reset();
      field("why").value = keyOfLink(link);
      field("rows").scrollIntoView();
    });
  // What is folded on the screen is not left out on paper.
  const folded = document.querySelectorAll("details:not([open])");
  addEventListener("beforeprint", () => folded.forEach((one) => (one.open = true)));
  addEventListener("afterprint", () => folded.forEach((one) => (one.open = false)));
}

// A page that can't show its rows, such as in a browser that can't unpack them, says so.
function failed({ error, reason, message }) {
  const told = `This browser could not show the rows (${(error || reason)?.message || message}). They are in the Parquet files beside the page, too.`;
  for (const [note, list] of [["chosen", "pairs-list"], ["count", "list"]])
    if (field(list) && (note === "count" || !field(list).children.length)) field(note).textContent = told;
  document.documentElement.dataset.failed = "";
}

function start() {
  for (const kind of ["error", "unhandledrejection"]) addEventListener(kind, failed);
  fill();
  listen();
  state.found = [...data.rows.keys()];
  // Waited for: a page that says that it is loaded shows its rows.
  return Promise.all([field("pairs-list") && startPairs(), showPage()]);
}
if (data) await start();
document.documentElement.dataset.ready = "";
