// The page: one row at a time, its edits and answers, and the file that holds them.

const field = (id) => document.getElementById(id);
const data = JSON.parse(field("data").textContent);
const entries = data.entries; // what is edited, in the form of the saved file
const finished = new Set(); // numbers of rows that are done
let current = 0, chosen = [], unsaved = false;

const namesOf = (entry) => entry.evidence.map(({ id }) => id);
const needed = (entry) => data.structured[entry.id];
const open = () => entries[current];

// What is missing or wrong before a row is done: answers, and, if it is kept, all that is illegal.
function review(entry) {
  const { steps, errors } = parseProgram(entry.structure, namesOf(entry));
  const wrong = [...errors, ...versionProblems({ ...entry, steps }, needed(entry))];
  const asked = data.questions.map(({ name }) => name).filter((name) => name !== data.structural || steps.length);
  const missing = asked.filter((name) => entry[name] === null);
  return { steps, wrong, missing, done: !missing.length && (entry[data.decision] === 0 || !wrong.length) };
}

function changed() {
  unsaved = true;
  refresh();
}

// All that follows from the row: what is wrong, the drawing, the steps, and how far the review is.
function refresh() {
  const entry = open(), { steps, wrong, missing, done } = review(entry);
  field("problems").replaceChildren(...wrong.map((text) => element("li", {}, bdi(text))));
  field("legal").textContent = wrong.length ? `${wrong.length === 1 ? "One thing is" : `${wrong.length} things are`} wrong` : "Nothing is wrong";
  field("state").textContent = done ? "This row is done." : missing.length ? `To answer: ${missing.join(", ")}.` : "To keep this row, correct what is wrong.";
  chosen = chosen.filter((name) => namesOf(entry).includes(name));
  const focused = document.activeElement?.closest?.("g[data-name]")?.dataset.name;
  field("drawing").replaceChildren(drawing(entry.claim, entry.evidence, steps, chosen, choose));
  if (focused) field("drawing").querySelector(`[data-name="${CSS.escape(focused)}"]`)?.focus();
  field("from").textContent = chosen.join(" + ") || "nothing yet";
  field("link").disabled = !chosen.length;
  const conclusions = [ROOT, ...namesOf(entry)], target = field("to").value;
  field("to").replaceChildren(...conclusions.map((name) => element("option", { value: name }, name === ROOT ? ROOT_NAME : name)));
  if (conclusions.includes(target)) field("to").value = target;
  field("steps").replaceChildren(...steps.map((step, i) => stepLine(step, i, steps)));
  finished[done ? "add" : "delete"](current);
  field("progress").textContent = `${finished.size} of ${entries.length} rows done${unsaved ? ", not saved" : ""}`;
}

function stepLine({ premises, conclusion }, i, steps) {
  const text = `${premises.join(" + ")} → ${conclusion === ROOT ? ROOT_NAME : conclusion}`;
  const remove = element("button", { type: "button", "aria-label": `Remove ${text}` }, "Remove");
  remove.addEventListener("click", () => link(steps.filter((_, k) => k !== i)));
  return element("li", {}, bdi(text), " ", remove);
}

function count() {
  finished.clear();
  entries.forEach((entry, i) => review(entry).done && finished.add(i));
}

function choose(name) {
  chosen = chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name];
  refresh();
}

function link(steps) {
  open().structure = field("structure").value = writeProgram(unique(steps));
  chosen = [];
  changed();
}

// The controls of a piece of evidence.
function pieceLine(piece, i) {
  const role = element("select", { "aria-label": `Role of ${piece.id}` }, ...data.roles.map((one) => element("option", { value: one }, one)));
  role.value = piece.role;
  role.addEventListener("change", () => { piece.role = role.value; changed(); });
  const text = element("textarea", { rows: 2, dir: "auto", "aria-label": `Text of ${piece.id}` });
  text.value = piece.text;
  text.addEventListener("input", () => { piece.text = text.value; changed(); });
  const remove = element("button", { type: "button", "aria-label": `Delete ${piece.id}` }, "Delete");
  remove.addEventListener("click", () => {
    open().evidence.splice(i, 1);
    show();
    changed();
    field("add").focus();
  });
  const title = piece.title ? element("span", { class: "soft" }, " ", bdi(piece.title)) : null;
  return element("li", {}, element("div", { class: "top" }, element("b", {}, bdi(piece.id)), title, role, remove), text);
}

function add() {
  const names = [...namesOf(open()), ...data.names[open().id]];
  let n = open().evidence.length + 1;
  while (names.includes(`Sentence${n}`)) n++;
  open().evidence.push({ id: `Sentence${n}`, role: "leaf", title: "", text: "" });
  show();
  changed();
  field("evidence").lastElementChild.querySelector("textarea").focus();
}

function questionField({ name, asks, answers }) {
  const radios = answers.map(([code, meaning]) => {
    const radio = element("input", { type: "radio", name, value: code });
    radio.addEventListener("change", () => { open()[name] = Number(code); changed(); });
    return element("label", {}, radio, meaning);
  });
  return element("div", { class: "question" }, element("fieldset", { "aria-label": name }, ...radios), element("div", {}, element("b", {}, name), " ", asks));
}

// The current row in the controls.
function show() {
  const entry = open();
  field("row").value = String(current);
  [field("back").disabled, field("on").disabled] = [current === 0, current === entries.length - 1];
  for (const name of ["label", "cause", "effect"]) {
    field(name).textContent = entry[name];
    field(name).parentElement.hidden = !entry[name];
  }
  for (const name of ["claim", "structure", "note"]) field(name).value = entry[name];
  field("evidence").replaceChildren(...entry.evidence.map(pieceLine));
  for (const { name } of data.questions)
    for (const radio of document.querySelectorAll(`input[name=${name}]`)) radio.checked = entry[name] === Number(radio.value);
}

function go(to) {
  current = Math.min(Math.max(0, to), entries.length - 1);
  chosen = [];
  show();
  refresh();
}

// The file: a row on each line, as hfcf review import reads it.
function save() {
  const text = entries.map((entry) => JSON.stringify(entry) + "\n").join("");
  const address = URL.createObjectURL(new Blob([text], { type: "application/jsonl" }));
  element("a", { href: address, download: data.file }).click();
  URL.revokeObjectURL(address);
  unsaved = false;
  refresh();
}

// What was saved earlier, put back.
async function load(file) {
  const saved = new Map((await file.text()).split("\n").filter(Boolean).map((line) => JSON.parse(line)).map((entry) => [entry.id, entry]));
  const known = entries.filter(({ id }) => saved.has(id));
  for (const entry of known) Object.assign(entry, saved.get(entry.id));
  count();
  go(current);
  field("progress").textContent += `; ${known.length} rows opened`;
}

field("questions").append(...data.questions.map(questionField));
field("row").append(...entries.map(({ id }, i) => element("option", { value: i }, id)));
for (const name of ["claim", "structure", "note"]) field(name).addEventListener("input", () => { open()[name] = field(name).value; changed(); });
field("row").addEventListener("change", () => go(Number(field("row").value)));
field("back").addEventListener("click", () => go(current - 1));
field("on").addEventListener("click", () => go(current + 1));
field("add").addEventListener("click", add);
field("link").addEventListener("click", () => {
  const { steps } = parseProgram(open().structure, namesOf(open()));
  link([...steps, { premises: chosen, conclusion: field("to").value }]);
});
field("save").addEventListener("click", save);
field("file").addEventListener("change", () => {
  load(field("file").files[0]).catch(() => { field("progress").textContent = "This file is no saved review."; });
  field("file").value = "";
});
addEventListener("beforeunload", (event) => { if (unsaved) event.preventDefault(); });
count();
go(0);
document.documentElement.dataset.ready = "";
