"""What texts does the constrained search give? RACE's requests and offline generator, by transformers 4.56.2's search and ours.

The requests are those of RACE on the demo's rows, or on FEVEROUS rows with text where HFCF_DATA names a folder with
`feverous_programfc`: the sentence rationales, and for each piece of evidence its causal entities. Counted is the share of requests
whose best text names an entity of every piece, as whole words; compared are the mean log-probabilities per token of the best texts,
each computed anew from its tokens by one forward of the same weights. The other search (force_words_ids, a request at a time) is
measured where HFCF_PEER_TRANSFORMERS names a folder with that version, as `constrained.py` says; it is given the phrases as they
are written inside a sentence, and what it refuses is left out of all means.
"""

from __future__ import annotations

import os

os.environ.update(HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1", HFCF_REQUEST_CACHE="off", HF_DATASETS_DISABLE_PROGRESS_BARS="1")
os.environ.update(TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")

import json
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

import torch
from common import ask_peer, patched, peer_folder, read_options, run, show

SEARCH: dict[str, Any] = {"num_beams": 10, "max_new_tokens": 64}


def requests(rows: int) -> list[list[Any]]:
    """Return `[text, clauses]` of the first rows that ask for a claim with entities."""
    from datasets import disable_caching

    import hfcf
    from hfcf.core import recipe
    from hfcf.engines.generator import Generator
    from hfcf.systems.race.system import RACE

    data = Path(os.environ.get("HFCF_DATA", ""), "feverous_programfc")
    real = "HFCF_DATA" in os.environ and data.is_dir()
    name, folder, split = ("feverous", data, "validation") if real else ("hover", recipe.folder() / "demo", "train")
    requests_made: list[list[Any]] = []

    def note(self: Any, new: list[list[Any]]) -> list[list[Any]]:
        requests_made.extend(new)
        return [[] for _ in new]

    disable_caching()  # a cached stage would ask for nothing
    ds = hfcf.load(name, data_dir=folder, split=split)
    with patched((Generator, "run", note)):
        RACE.preset("offline")(ds.select(range(min(2 * rows, len(ds)))))
    return [request for request in requests_made if request[1]][:rows]


def log_probability(network: Any, text: list[int], source: list[int]) -> float:
    """Return the mean over the tokens of a text."""
    with torch.inference_mode():
        target = torch.tensor([text])
        scores = network(input_ids=torch.tensor([source]), labels=target).logits.log_softmax(-1)
    return float(scores[0].gather(1, target[0][:, None]).mean())


def body(sequence: list[int], end: int) -> list[int]:
    """Return the new tokens of a T5's sequence, up to the end token."""
    text = sequence[1:]
    return text[: text.index(end) + 1] if end in text else text


def ours(loaded: Any, encoded: list[Any]) -> list[list[int]]:
    """Return the best text of every request, as tokens."""
    from hfcf.engines.base import pad
    from hfcf.engines.constrained import generate_constrained

    network, tokenizer, vocabulary = loaded
    texts: list[list[int]] = []
    for i in range(0, len(encoded), 8):
        batch = encoded[i : i + 8]
        clauses, inputs = [item.extra for item in batch], pad(tokenizer, batch, torch.device("cpu"))
        with torch.inference_mode():
            output = generate_constrained(network, inputs, clauses, vocabulary=vocabulary, **SEARCH)
        texts += [body(text, tokenizer.eos_token_id) for text in output.sequences.tolist()]
    return texts


def theirs(loaded: Any, encoded: list[Any], folder: str) -> list[list[int] | None]:
    """Return the other version's best texts, from a process of its own; None for the requests that it refuses."""
    network, _, vocabulary = loaded
    # The form inside a sentence comes first; a phrase that cannot be written has none.
    forms = [[[vocabulary.variants(phrase) for phrase in clause] for clause in item.extra] for item in encoded]
    phrases = [[ids for clause in row if (ids := [some[0][0] for some in clause if some])] for row in forms]
    with TemporaryDirectory() as place:
        torch.save(network.state_dict(), Path(place, "weights.pt"))
        rows = [[item.features["input_ids"], clauses] for item, clauses in zip(encoded, phrases, strict=True)]
        Path(place, "requests.json").write_text(json.dumps({"config": network.config.to_dict(), "rows": rows}, default=str))
        texts: list[list[int] | None] = ask_peer(__file__, place, folder)
    return texts


def peer(folder: Path) -> None:
    """Under the other version, search every request and print the texts as JSON."""
    from transformers import T5Config, T5ForConditionalGeneration

    stored = json.loads((folder / "requests.json").read_text())
    fields = T5Config().to_dict()
    config = T5Config(**{name: value for name, value in stored["config"].items() if name in fields})
    network: Any = T5ForConditionalGeneration(config)
    network.load_state_dict(torch.load(folder / "weights.pt"))
    network.eval()
    texts: list[list[int] | None] = []
    for ids, clauses in stored["rows"]:
        inputs = torch.tensor([ids])
        try:
            with torch.inference_mode():
                output = network.generate(
                    input_ids=inputs,
                    attention_mask=torch.ones_like(inputs),
                    do_sample=False,
                    use_cache=True,
                    force_words_ids=clauses,
                    **SEARCH,
                )
        except ValueError:
            texts.append(None)
        else:
            texts.append(body(output[0].tolist(), stored["config"]["eos_token_id"]))
    print(json.dumps(texts))


def main() -> None:
    """Search every request with both, and print the shares and the means."""
    from hfcf.engines.generator import Generator
    from hfcf.systems.race.system import RACE
    from hfcf.text.phrase_match import met

    options = read_options(__doc__ or "")
    batch = requests(8 if options.quick else 60)
    engine = Generator(model=RACE.preset("offline").generator, num_return_sequences=1, **SEARCH)
    loaded = engine.loaded()
    network, tokenizer, _ = loaded
    encoded = engine.encode(loaded, batch)
    results: dict[str, list[Any]] = {"ours": ours(loaded, encoded)}
    free = [type(item)(item.features, []) for item in encoded]
    results["no constraints"] = ours(loaded, free)
    if (folder := peer_folder()) and not options.quick:
        results["4.56.2"] = theirs(loaded, encoded, folder)
    shared = [i for i in range(len(batch)) if all(texts[i] is not None for texts in results.values())]
    table: list[list[Any]] = []
    figures: dict[str, Any] = {"requests": len(batch), "compared": len(shared)}
    for name, texts in results.items():
        written = [tokenizer.decode(text, skip_special_tokens=True) if text is not None else "" for text in texts]
        satisfied = mean(all(met(text, clauses)) for text, (_, clauses) in zip(written, batch, strict=True))
        per_token = mean(log_probability(network, texts[i], encoded[i].features["input_ids"]) for i in shared)
        table.append([name, satisfied, per_token, sum(text is None for text in texts)])
        figures[name] = {"satisfied": satisfied, "log_probability": per_token, "refused": table[-1][-1]}
    columns = ["search", "satisfied", "log-probability a token", "refused"]
    show(f"The best text of {len(batch)} requests, {len(shared)} of them compared", columns, table, options.json, figures)


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(main, peer)
