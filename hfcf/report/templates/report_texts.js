// The rows' texts: blocks of them, opened when they are needed.

const SOURCE = { id: 0, label: 1, layout: 2, texts: 3, marks: 4, rows: 5, drawing: 6 };
const ROW = { source: 0, label: 1, change: 2, reason: 3, measures: 4 };
const OWN = { number: 0, id: 1, texts: 2, marks: 3, drawing: 4 };
const opened = new Map(); // number of a block → the promise of its sources
const own = new Map(); // number of a row → what it changed

const blockOf = (i) => Math.floor(data.rows[i][ROW.source] / data.block);

async function unpacked(block) {
  if (typeof block !== "string") return block;
  const bytes = Uint8Array.fromBase64?.(block) ?? Uint8Array.from(atob(block), (character) => character.charCodeAt(0));
  const stream = new ReadableStream({ start: (it) => { it.enqueue(bytes); it.close(); } });
  return new Response(stream.pipeThrough(new DecompressionStream("gzip"))).json();
}

// Opens blocks, each once.
function open(numbers) {
  return Promise.all([...new Set(numbers)].map((k) => {
    if (!opened.has(k))
      opened.set(k, unpacked(data.blocks[k]).then((sources) => {
        sources.forEach((source, n) => {
          data.sources[k * data.block + n] = source;
          for (const one of source[SOURCE.rows]) own.set(one[OWN.number], one);
        });
      }));
    return opened.get(k);
  }));
}

const accepted = (i) => data.rows[i][ROW.reason] < 0;
const reasonOf = (i) => (accepted(i) ? null : data.reasons[data.rows[i][ROW.reason]]);
const measured = (i, measure) => (data.rows[i][ROW.measures] ? data.rows[i][ROW.measures][measure] : null);
const labelOf = (number) => (number < 0 ? null : data.labels[number]);
// Of rows whose block is open.
const sourceOf = (i) => data.sources[data.rows[i][ROW.source]];
const textOf = (i, n) => own.get(i)[OWN.texts][n] ?? sourceOf(i)[SOURCE.texts][n];
