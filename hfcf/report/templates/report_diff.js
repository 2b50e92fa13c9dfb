// What differs between two texts, word by word.

// Knows the words of scripts that put no space between them, and keeps together what is one character to the eye.
const segmenter = Intl.Segmenter ? new Intl.Segmenter("en", { granularity: "word" }) : null;
const TABLE = 4e6; // cells of the table below; texts that need more are shown as wholly replaced

// Words and punctuation marks with the white space before them: joined, they are the text.
function words(text) {
  if (!segmenter) return text.match(/\s*\S+|\s+$/g) || []; // an older browser: what stands between spaces
  const found = [];
  let space = "";
  for (const { segment } of segmenter.segment(text))
    if (segment.trim()) {
      found.push(space + segment);
      space = "";
    } else space += segment;
  return space ? [...found, space] : found;
}

// [kind, words of one or the other] parts, kind being "same", "out" or "in"; and where each part begins in the text it is of.
function diff(old, young) {
  let start = 0;
  while (start < old.length && start < young.length && old[start] === young[start]) start++;
  let ends = 0;
  while (ends < old.length - start && ends < young.length - start && old.at(-1 - ends) === young.at(-1 - ends)) ends++;
  const middle = between(old.slice(start, old.length - ends), young.slice(start, young.length - ends));
  const parts = [];
  let i = 0, j = 0;
  const add = (kind, n) => {
    if (!n) return;
    const from = kind === "out" ? i : j;
    const its = (kind === "out" ? old : young).slice(from, from + n);
    if (parts.length && parts.at(-1).kind === kind) parts.at(-1).words.push(...its);
    else parts.push({ kind, words: its, from });
    if (kind !== "in") i += n;
    if (kind !== "out") j += n;
  };
  add("same", start);
  for (const [kind, n] of middle) add(kind, n);
  add("same", ends);
  return parts;
}

// Runs of what stays, goes and comes, by a longest common subsequence.
function between(old, young) {
  const n = old.length, m = young.length, runs = [];
  if (!n || !m || n * m > TABLE) return [["out", n], ["in", m]];
  const width = m + 1, longest = new Uint16Array((n + 1) * width);
  for (let i = n - 1; i >= 0; i--)
    for (let j = m - 1; j >= 0; j--) {
      const at = i * width + j;
      longest[at] = old[i] === young[j] ? longest[at + width + 1] + 1 : Math.max(longest[at + width], longest[at + 1]);
    }
  let i = 0, j = 0;
  while (i < n || j < m) {
    const at = i * width + j;
    if (i < n && j < m && old[i] === young[j]) { runs.push(["same", 1, old[i]]); i++; j++; }
    else if (i < n && (j === m || longest[at + width] >= longest[at + 1])) { runs.push(["out", 1]); i++; }
    else { runs.push(["in", 1]); j++; }
  }
  return calm(runs);
}

// Changes gathered: what goes before what comes, and a lone comma or "the" between two changes is no island.
function calm(runs) {
  const grouped = [];
  for (const [kind, n, word] of runs) {
    const last = grouped.at(-1);
    if (kind === "same") {
      if (last && last.same) { last.same += n; last.letters += word.trim().length; }
      else grouped.push({ same: n, letters: word.trim().length });
    } else if (last && !last.same) last[kind] += n;
    else grouped.push({ out: 0, in: 0, [kind]: n });
  }
  const kept = [];
  grouped.forEach((one, k) => {
    const last = kept.at(-1), island = one.same === 1 && one.letters < 4 && k > 0 && k < grouped.length - 1;
    if (island) { last.out += 1; last.in += 1; }
    else if (last && !last.same && !one.same) { last.out += one.out; last.in += one.in; }
    else kept.push(one);
  });
  return kept.flatMap((one) => (one.same ? [["same", one.same]] : [["out", one.out], ["in", one.in]]));
}
