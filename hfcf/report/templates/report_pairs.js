// Twenty accepted pairs: the best, the worst, or some at random. A run that accepted nothing has no such part.

const SHOWN = 20;
const ways = () => [...document.querySelectorAll("input[name=way]")];
const way = () => ways().find((one) => one.checked).value;
const better = () => (data.measures[field("by").value][1] ? "low" : "high");

// Whether accepted pairs have a measure.
const ranks = (measure) => data.rows.some((_, i) => accepted(i) && measured(i, measure) !== null);

// The rows to show, and in words which these are; pairs without the measure are neither the best nor the worst.
function choose() {
  const all = [...data.rows.keys()].filter(accepted);
  if (way() === "random") return [sample(all, seed), `at random, of ${all.length.toLocaleString("en")}`];
  const measure = Number(field("by").value), low = (way() === "best") === (field("low").value === "low");
  const there = all.filter((i) => measured(i, measure) !== null);
  const told = `the ${way()} of ${there.length.toLocaleString("en")}, by ${data.measures[measure][0]}, ${low ? "least" : "most"} first`;
  return [ranked(there, measure, low ? 1 : -1).slice(0, SHOWN), told];
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
  const question = ++wanted;
  field("again").hidden = way() !== "random";
  field("ranking").hidden = way() === "random";
  const [chosen, told] = choose();
  await open(chosen.map(blockOf));
  if (question !== wanted) return;
  field("pairs-list").replaceChildren(...chosen.map(card));
  field("chosen").textContent = `${chosen.length} ${chosen.length === 1 ? "pair" : "pairs"}: ${told}`;
}

function startPairs() {
  data.measures.forEach(([name], i) => { if (ranks(i)) field("by").append(option(name, i)); });
  if (field("by").options.length) field("low").value = better();
  else {
    ways().forEach((one) => { if (one.value !== "random") one.closest("label").remove(); });
    ways()[0].checked = true;
  }
  for (const one of ways()) one.addEventListener("change", showPairs);
  field("by").addEventListener("change", () => { field("low").value = better(); showPairs(); });
  field("low").addEventListener("change", showPairs);
  field("again").addEventListener("click", () => { seed++; showPairs(); });
  return showPairs();
}
