// The steps of an argument: read from program text, written as it, and checked by the rules of hfcf/tasks/structures and of
// hfcf/studies/review/version.py. A test holds both to the same answers.

const ROOT = "claim", ROOT_NAME = "Claim"; // in steps, in program text
const LINKING = { one_to_one_linking: [false, false], one_to_multiple_linking: [false, true], multiple_to_one_linking: [true, false] };
const ARGUMENT = String.raw`\[[^\[\]()]*\]|[^\s,()\[\]]+`;
const CALL = new RegExp(String.raw`^(\w+)\s*\(\s*(${ARGUMENT})\s*,\s*(${ARGUMENT})\s*\)$`, "u");

// The steps of a program text, and what can't be read of it. Steps are {premises, conclusion}.
function parseProgram(text, names) {
  const steps = [], errors = [];
  text.split(/\r\n|\r|\n/).forEach((line, i) => {
    try {
      steps.push(...parseLine(line.replace(/#.*/, "").trim(), names));
    } catch (error) {
      errors.push(`line ${i + 1}: ${error.message}`);
    }
  });
  return { steps: unique(steps), errors };
}

function parseLine(code, names) {
  if (!code) return [];
  const [, name, ...sides] = code.match(CALL) ?? [];
  if (!(name in LINKING)) throw Error(`write ${Object.keys(LINKING).join(", ")}, with the names of evidence`);
  const [premises, conclusions] = sides.map((side) => side.replace(/^\[|\]$/g, "").split(",").map((one) => nodeOf(one.trim(), names)));
  const lists = [premises, conclusions].map((side) => side.length > 1);
  if (lists[0] && lists[1]) throw Error("several premises lead to several conclusions: write one line for each conclusion");
  if (lists.some((list, i) => list !== LINKING[name][i] || list !== sides[i].startsWith("[")))
    throw Error(`${name} does not fit: write ${linking(premises, conclusions)}`);
  if ([premises, conclusions].some((side) => new Set(side).size < side.length)) throw Error("a list has a name twice");
  return conclusions.map((conclusion) => ({ premises, conclusion }));
}

function nodeOf(name, names) {
  if (name === ROOT_NAME) return ROOT;
  if (!names.includes(name) || name === ROOT) throw Error(`${name || "nothing"} is no name: write one of ${[...names, ROOT_NAME].join(", ")}`);
  return name;
}

function writeProgram(steps) {
  const links = new Map(); // a divergent link stands where its first step does
  steps.forEach(({ premises, conclusion }, i) => {
    const key = premises.length === 1 ? premises[0] : i;
    if (!links.has(key)) links.set(key, [premises, []]);
    links.get(key)[1].push(conclusion);
  });
  return [...links.values()].map(([premises, conclusions]) => linking(premises, conclusions)).join("\n");
}

function linking(premises, conclusions) {
  const write = (names) => {
    const written = names.map((name) => (name === ROOT ? ROOT_NAME : name)).join(", ");
    return names.length > 1 ? `[${written}]` : written;
  };
  const name = Object.keys(LINKING).find((one) => LINKING[one][0] === premises.length > 1 && LINKING[one][1] === conclusions.length > 1);
  return `${name}(${write(premises)}, ${write(conclusions)})`;
}

function unique(steps) {
  const seen = new Map();
  for (const step of steps) {
    const key = JSON.stringify([[...step.premises].sort(), step.conclusion]);
    if (!seen.has(key)) seen.set(key, step);
  }
  return [...seen.values()];
}

const edgesOf = (steps) => steps.flatMap(({ premises, conclusion }) => premises.map((premise) => [premise, conclusion]));
const nodesOf = (steps) => [...new Set(steps.flatMap(({ premises, conclusion }) => [...premises, conclusion]))];

// All that makes a structure illegal; `useful` are the names of evidence that must be used.
function problems(steps, useful) {
  if (!steps.length) return ["there is no step"];
  const edges = edgesOf(steps), nodes = nodesOf(steps), ownPremises = edges.filter(([from, to]) => from === to).map(([name]) => name);
  const messages = [...new Set(ownPremises)].map((name) => `${name} is a premise of itself`);
  if (edges.some(([from]) => from === ROOT)) messages.push("the claim is a premise: it is the root, and nothing follows from it");
  if (!edges.some(([, to]) => to === ROOT)) messages.push("nothing leads to the claim");
  const circle = circleOf(edges);
  if (circle) messages.push(`the steps run in a circle: ${circle.join(" → ")}`);
  const toRoot = leadingTo(edges, ROOT);
  for (const name of nodes) {
    if (name === ROOT || toRoot.has(name)) continue;
    if (!edges.some(([from]) => from === name)) messages.push(`${name} leads to nothing: link it to the claim or to a conclusion`);
    else if (nodes.includes(ROOT)) messages.push(`${name} is not connected with the claim`);
  }
  return [...messages, ...useful.filter((name) => !nodes.includes(name)).map((name) => `${name} is useful and not used`)];
}

// The names of a circle of several steps, its first again at its end.
function circleOf(edges) {
  const done = new Set();
  const walk = (name, path) => {
    if (path.includes(name)) return [...path.slice(path.indexOf(name)), name];
    if (done.has(name)) return null;
    for (const [from, to] of edges) {
      const circle = from === name && to !== name && walk(to, [...path, name]);
      if (circle) return circle;
    }
    done.add(name);
    return null;
  };
  for (const [from] of edges) {
    const circle = walk(from, []);
    if (circle) return circle;
  }
  return null;
}

function leadingTo(edges, root) {
  const reached = new Set(), open = [root];
  while (open.length) {
    const name = open.pop();
    for (const [from, to] of edges)
      if (to === name && !reached.has(from)) {
        reached.add(from);
        open.push(from);
      }
  }
  return reached;
}

// Why a text can't be worked on, as hfcf/text/check.py has it; a piece may be a number.
function textProblem(text, what, letters) {
  if (!text.trim()) return `${what} is empty`;
  if ([...text].length > 20000) return `${what} has more than 20,000 characters`;
  if (/[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/.test(text)) return `${what} holds a control character`;
  return letters.test(text) ? null : `${what} has no letters`;
}

// All that a version must not have before it can be kept. `needed`: whether the row must have a structure.
function versionProblems({ claim, evidence, steps }, needed) {
  const messages = [], names = evidence.map(({ id }) => id);
  const texts = [textProblem(claim, "the claim", /\p{L}/u), ...evidence.map(({ id, text }) => textProblem(text, id, /[\p{L}\p{Nd}]/u))];
  messages.push(...texts.filter(Boolean));
  if (!evidence.length) messages.push("there is no evidence");
  for (const name of new Set(names)) if (names.indexOf(name) !== names.lastIndexOf(name)) messages.push(`there are two pieces of the name ${name}`);
  if (!steps.length && !needed) return messages;
  const used = nodesOf(steps), concluded = steps.map(({ conclusion }) => conclusion);
  messages.push(...problems(steps, evidence.filter(({ role }) => role !== "distractor").map(({ id }) => id)));
  for (const { id, role } of evidence) {
    if (role === "distractor" && used.includes(id)) messages.push(`${id} is used: it is not a distractor`);
    else if (role === "leaf" && concluded.includes(id)) messages.push(`${id} is concluded in a step: it is not a leaf but an intermediate`);
    else if (role === "intermediate" && used.includes(id) && !concluded.includes(id))
      messages.push(`${id} is concluded in no step: it is not an intermediate but a leaf`);
  }
  return messages;
}
