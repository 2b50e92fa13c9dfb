"""What do constraints cost? Seconds of `generate_constrained`, with other constraints in every row ÷ seconds of Transformers' free
beam search (`model.generate`), and those of Transformers 4.56.2's own constrained search, which version 5 no longer has.

Seconds are CPU seconds of the process (`time.process_time`) on one thread, so that a busy machine does not move them. In every
round the searches run one after the other in turn, on inputs and constraints of their own; ratios are medians of the rounds'.
Models have the shape of t5-small and random weights. They know no end token: nothing ends early, in either library, and no
processor of logits is needed for that. Every search returns all of its beams.

Half of the rows are plain (phrases with nothing in common), half hard (phrases that begin alike, that are a prefix of another,
that stand in two clauses). `satisfied` is the share of rows whose best text meets all clauses, looked up here in the tokens alone.
`bookkeeping` is the share of the search's seconds that goes into constraints: their automata and tables, where every beam stands
in them, the tokens that lead on, and the choice among banks.

The other search is measured where HFCF_PEER_TRANSFORMERS names a folder with that version:
    pip install --target FOLDER --no-deps transformers==4.56.2 tokenizers==0.22.1 huggingface_hub==0.36.0
"""

from __future__ import annotations

import os
import time

os.environ.update(HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any

import torch
from common import CURE, PEER, Clock, ask_peer, patched, peer_folder, read_options, run, show

Clauses = list[list[list[int]]]

PROMPT, WORDS = 128, 32128


@dataclass(frozen=True)
class Setting:
    """The settings of one line of the table."""

    model: str
    beams: int
    tokens: int
    batch: int
    rounds: int


LARGEST = Setting("encoder-decoder", 30, 96, 8, 2)
QUICK = [
    Setting("encoder-decoder", 10, 32, 1, 1),
    Setting("encoder-decoder", 10, 32, 8, 1),
    Setting("decoder-only", 10, 32, 8, 1),
]
FULL = [
    Setting("encoder-decoder", 10, 32, 1, 4),
    Setting("encoder-decoder", 10, 32, 8, 3),
    Setting("encoder-decoder", 30, 96, 1, 2),
    LARGEST,
    Setting("decoder-only", 10, 32, 1, 4),
    Setting("decoder-only", 10, 32, 8, 2),
    Setting("decoder-only", 30, 96, 1, 2),
    Setting("decoder-only", 30, 96, 8, 1),  # minutes a round
]
TIMED, TRIES, KINDS = 2, 60, ("shared", "prefix")
SMALL: dict[str, Any] = {"num_beams": 6, "max_new_tokens": 24}


def encoder_decoder(words: int = WORDS, size: int = 512, layers: int = 6, heads: int = 8) -> Any:
    """Make a T5 with random weights, by default of the size of t5-small."""
    from transformers import T5Config, T5ForConditionalGeneration

    shape: dict[str, Any] = {"d_model": size, "d_kv": size // heads, "d_ff": 4 * size, "num_layers": layers, "num_heads": heads}
    tokens: dict[str, Any] = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
    return endless(T5ForConditionalGeneration, T5Config(vocab_size=words, **shape, **tokens))


def decoder_only() -> Any:
    """Make a GPT-2 of about that size."""
    from transformers import GPT2Config, GPT2LMHeadModel

    shape: dict[str, Any] = {"n_embd": 512, "n_layer": 6, "n_head": 8, "n_positions": 512}
    return endless(GPT2LMHeadModel, GPT2Config(vocab_size=WORDS, **shape, bos_token_id=0, pad_token_id=0, eos_token_id=1))


def endless(kind: Any, config: Any) -> Any:
    """Make a model without an end token."""
    torch.manual_seed(0)
    model = kind(config).eval()
    model.generation_config.eos_token_id = None
    return model


def single_phrases(rng: Random, ids: range) -> Clauses:
    """Draw 3 clauses of 4 phrases, no token in two of them."""
    some = rng.sample(ids, 24)
    return [[[some.pop() for _ in range(length)] for length in (1, 2, 3, 2)] for _ in range(3)]


def alike(rng: Random, ids: range) -> Clauses:
    """Draw phrases that begin alike, and some that are a prefix of another."""
    clauses = []
    for _ in range(3):
        a, b, c, d, e = rng.sample(ids, 5)
        clauses.append([[a, b], [a, b, c], [a, b, d, e], [a, e, c]])
    return clauses


def shared(rng: Random, ids: range) -> Clauses:
    """Draw two clauses with a common phrase, and a third."""
    a, b, c, d, e, f = rng.sample(ids, 6)
    return [[[a, b], [c, d, e]], [[a, b], [d, c, e]], [[f]]]


def hard(rng: Random, ids: range) -> Clauses:
    """Combine both: a clause of phrases that begin alike, and two that have a phrase in common."""
    first = alike(rng, ids)[0]
    second, third, _ = shared(rng, ids)
    a, b, c = rng.sample(ids, 3)
    # The phrase of two clauses is a prefix of one, and the end of another is where a phrase of the first clause begins.
    return [first, [*second, [*second[0], a], [a, b]], [*third, [b, c], [c, first[0][0]]]]


def met(tokens: Sequence[int], clauses: Clauses) -> bool:
    """Return whether the tokens hold a phrase of every clause."""

    def holds(phrase: list[int]) -> bool:
        return any(list(tokens[i : i + len(phrase)]) == phrase for i in range(len(tokens) - len(phrase) + 1))

    return all(any(holds(phrase) for phrase in clause) for clause in clauses)


def inputs(ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return a model's inputs without padding."""
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def case(setting: Setting, number: int) -> tuple[torch.Tensor, list[Clauses]]:
    """Return a round's inputs and each row's constraints, the same in every process."""
    ids = torch.randint(2, WORDS, (setting.batch, PROMPT), generator=torch.Generator().manual_seed(number))
    rng, words = Random(number), range(1000, 30_000)
    return ids, [(hard if (row + number) % 2 else single_phrases)(rng, words) for row in range(setting.batch)]


def time_search(search: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds of a search, and its result."""
    start = time.process_time()
    with torch.inference_mode():
        output = search()
    return time.process_time() - start, output


def written(model: Any, sequences: torch.Tensor, tokens: int) -> list[list[int]]:
    """Return the generated part, or raise if the search stopped early."""
    prompt = 1 if model.config.is_encoder_decoder else PROMPT
    if sequences.shape[1] != prompt + tokens:
        raise RuntimeError(f"{sequences.shape[1] - prompt} tokens were generated, not {tokens}: the seconds do not compare")
    return sequences[:, prompt:].tolist()


def bookkeeping(clock: Clock) -> list[tuple[Any, str, Callable[..., Any]]]:
    """Put the functions that handle constraints on a clock, for `patched`."""
    from hfcf.engines.constrained import beam_selection, search, tracker, vocabulary

    places: list[tuple[Any, Iterable[str]]] = [
        (vocabulary, ["compile_row"]),
        (search.Compiled, ["columns"]),
        (tracker.Tracker, ["__init__", "start", "move", "remeasure", "ended", "lower", "keep"]),
        (tracker.ConstraintStates, ["take", "keep"]),
        (beam_selection, ["_leading", "_without"]),
        (search, ["share_out"]),
    ]
    return [(owner, name, clock.timed(getattr(owner, name))) for owner, names in places for name in names]


def race(model: Any, setting: Setting, number: int, *, free: bool) -> dict[str, float]:
    """Run one round: seconds of each search, the share of bookkeeping, the shares of rows and of texts that meet all clauses."""
    from hfcf.engines.constrained import generate_constrained

    ids, constraints = case(setting, number)
    arguments = inputs(ids)
    common: dict[str, Any] = {"num_beams": setting.beams, "num_return_sequences": setting.beams, "max_new_tokens": setting.tokens}
    searches: dict[str, Callable[[], Any]] = {
        "native": lambda: model.generate(**arguments, **common, do_sample=False, return_dict_in_generate=True),
        "constrained": lambda: generate_constrained(model, arguments, constraints, **common),
        "free": lambda: generate_constrained(model, arguments, [[] for _ in constraints], **common),
    }
    names, figures = [name for name in searches if free or name != "free"], {}
    turn = number % len(names)
    for name in names[turn:] + names[:turn]:
        clock = Clock(time.process_time)
        with patched(*(bookkeeping(clock) if name == "constrained" else [])):
            figures[name], output = time_search(searches[name])
        texts = written(model, output.sequences, setting.tokens)
        if name == "constrained":
            checked = [met(text, constraints[i // setting.beams]) for i, text in enumerate(texts)]
            if output.satisfied.tolist() != checked:
                raise RuntimeError("`satisfied` contradicts the tokens of the texts")
            figures["bookkeeping"] = clock.seconds / figures[name]
            figures["satisfied"], figures["texts_satisfied"] = mean(checked[:: setting.beams]), mean(checked)
    return figures


def measure(model: Any, setting: Setting, *, free: bool) -> dict[str, Any]:
    """Summarise a setting's rounds; seconds are those of an instance."""
    race(model, replace(setting, beams=2, tokens=12, batch=1), 0, free=free)  # warm
    rounds = [race(model, setting, number, free=free) for number in range(setting.rounds)]
    row: dict[str, Any] = {**asdict(setting), "free_seconds": None, "free_over_native": None}
    for name in ("native", "constrained", *(["free"] if free else [])):
        row[f"{name}_seconds"] = median(figures[name] / setting.batch for figures in rounds)
        row[f"{name}_over_native"] = median(figures[name] / figures["native"] for figures in rounds)
    row["bookkeeping"] = median(figures["bookkeeping"] for figures in rounds)
    row["satisfied"], row["texts_satisfied"] = (
        mean(figures[name] for figures in rounds) for name in ("satisfied", "texts_satisfied")
    )
    return row


def tiny() -> Any:
    """Make a model small enough for many searches."""
    return encoder_decoder(400, 32, 2, 4)


def tries(kind: str) -> list[tuple[torch.Tensor, Clauses]]:
    """Return inputs and constraints for the tiny model, the same in every process."""
    rng, make = Random(1), {"shared": shared, "prefix": alike}[kind]
    ids = [torch.randint(2, 400, (1, 12), generator=torch.Generator().manual_seed(number)) for number in range(TRIES)]
    return [(tokens, make(rng, range(10, 400))) for tokens in ids]


def ours_satisfied(model: Any, kind: str) -> float:
    """Return the share of the tries that this library's search meets."""
    from hfcf.engines.constrained import generate_constrained

    with torch.inference_mode():
        outputs: list[Any] = [generate_constrained(model, inputs(ids), [clauses], **SMALL) for ids, clauses in tries(kind)]
    return mean(met(output.sequences[0].tolist()[1:], clauses) for output, (_, clauses) in zip(outputs, tries(kind), strict=True))


def peer_case(number: int) -> tuple[torch.Tensor, Clauses]:
    """Return a plain row of the largest setting's rounds: the other search refuses the hard ones."""
    ids, constraints = case(LARGEST, number)
    row = number % 2
    return ids[row : row + 1], constraints[row]


def peer(folder: Path) -> None:
    """Under the other version, time its constrained search and count what it meets; the figures go to the standard output."""
    import transformers

    model, seconds, satisfied = loaded(encoder_decoder(), folder / "large.pt"), [], []
    beams, tokens = LARGEST.beams, LARGEST.tokens
    model.generate(**inputs(peer_case(0)[0]), force_words_ids=[[[5]]], num_beams=2, max_new_tokens=12)  # warm
    for number in range(TIMED):
        ids, clauses = peer_case(number)
        settings: dict[str, Any] = {"num_beams": beams, "max_new_tokens": tokens, "do_sample": False, "force_words_ids": clauses}
        spent, output = time_search(partial(model.generate, **inputs(ids), **settings))
        seconds.append(spent)
        satisfied.append(met(written(model, output, tokens)[0], clauses))
    small = loaded(tiny(), folder / "tiny.pt")
    figures = {"version": transformers.__version__, "seconds": median(seconds), "plain": mean(satisfied)}
    print(json.dumps({**figures, **{kind: peer_satisfied(small, kind) for kind in KINDS}}))


def peer_satisfied(model: Any, kind: str) -> dict[str, Any]:
    """Return the shares of the tries that the other search meets, and refuses (which count as not met)."""
    satisfied, errors = [], 0
    for ids, clauses in tries(kind):
        try:
            sequences = model.generate(**inputs(ids), **SMALL, do_sample=False, force_words_ids=clauses)
        except ValueError:
            errors += 1
            satisfied.append(False)
        else:
            satisfied.append(met(sequences[0].tolist()[1:], clauses))
    return {"satisfied": mean(satisfied), "refused": errors / len(satisfied)}


def loaded(model: Any, weights: Path) -> Any:
    """Load these weights: one seed need not give equal weights in two versions."""
    model.load_state_dict(torch.load(weights))
    return model


def measure_peer(large: Any, small: Any, folder: str) -> dict[str, Any]:
    """Return the other version's figures, from a process of its own."""
    with TemporaryDirectory() as place:
        torch.save(large.state_dict(), Path(place, "large.pt"))
        torch.save(small.state_dict(), Path(place, "tiny.pt"))
        figures: dict[str, Any] = ask_peer(__file__, place, folder)
    return figures


def table(rows: list[dict[str, Any]]) -> list[list[Any]]:
    """Return the figures of every setting, for `show`."""
    names = ["model", "beams", "tokens", "batch", "rounds", "native_seconds", "constrained_seconds", "free_seconds"]
    names += ["constrained_over_native", "free_over_native", "bookkeeping", "satisfied"]
    return [["–" if row[name] is None else row[name] for name in names] for row in rows]


def main() -> None:
    """Measure every setting, and the other version if it is there; print the table."""
    options = read_options(__doc__ or "")
    settings, folder = (QUICK, None) if options.quick else (FULL, peer_folder())
    models = {"encoder-decoder": encoder_decoder(), "decoder-only": decoder_only()}
    small = tiny()
    # First, so that it does not fail after a long wait.
    other = measure_peer(models["encoder-decoder"], small, folder) if folder else None
    rows = [measure(models[setting.model], setting, free=not options.quick) for setting in settings]
    main_row = next(row for row in reversed(rows) if (row["model"], row["batch"]) == ("encoder-decoder", 8))
    instances = [row["batch"] * row["rounds"] for row in rows]
    figures: dict[str, Any] = {
        "constrained_over_native": main_row["constrained_over_native"],
        "satisfied": sum(row["satisfied"] * n for row, n in zip(rows, instances, strict=True)) / sum(instances),
        "bookkeeping": main_row["bookkeeping"],
        "peer_over_ours": None,
        "peer_satisfied": None,
        "rows": rows,
    }
    if other is not None:
        same = [row for row in rows if (row["model"], row["beams"]) == (LARGEST.model, LARGEST.beams)]
        figures["peer_over_ours"] = other["seconds"] / min(row["constrained_seconds"] for row in same)
        figures["peer_satisfied"] = mean(other[kind]["satisfied"] for kind in KINDS)
        figures["peer"] = {**other, "ours_satisfied": {kind: ours_satisfied(small, kind) for kind in KINDS}}
    show(
        "Beam search with constraints, CPU seconds an instance on one thread; native: Transformers' own search, without any",
        ["model", "beams", "tokens", "batch", "rounds", "native", "constrained", "free", "constrained/native", "free/native",
         "bookkeeping", "satisfied"], table(rows), options.json, figures,
    )  # fmt: skip
    report(figures)


def report(figures: dict[str, Any]) -> None:
    """Print a line or two on the other version's search."""
    if "peer" not in figures:
        print(f"not compared with force_words_ids: set {PEER} to a FOLDER (and leave --quick out) made by\n    {CURE}")
        return
    other = figures["peer"]
    print(
        f"force_words_ids of {other['version']}, batch 1, {LARGEST.beams} beams, {LARGEST.tokens} tokens: "
        f"{other['seconds']:.3g} s, {figures['peer_over_ours']:.3g} × ours at its best batch; "
        f"{other['plain']:.0%} of plain rows met"
    )
    for kind in KINDS:
        theirs, ours = other[kind], other["ours_satisfied"][kind]
        print(
            f"{TRIES} rows with {kind} phrases: {theirs['satisfied']:.0%} met, {theirs['refused']:.0%} refused; ours {ours:.0%} met"
        )


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(main, peer)
