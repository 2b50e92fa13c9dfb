"""How many accepted counterfactuals does a CPU minute give, by method, and how many of them are right?

RACE, CrossAug and CCG with their offline presets, beside Polyjuice's recipe, TextAttack and a prompted language model
(`rewriters.py`), all on the same rows in the same process on one thread. A peer's candidate is accepted if the verifier and the
judge of the presets of RACE and CrossAug give it the opposite label; CCG's rows and a language model's relations are accepted
without a judge, as CCG does. Models are loaded before the clock starts, no cache answers, and what CCG trains is also told apart.

One person has read up to twenty accepted rows of each method, without seeing the method or the label; the draw depends on the rows
alone. The verdicts are in `end_to_end_verdicts.jsonl`; shares are "–" unless every drawn row has one. `--pairs FILE` writes the
drawn rows.

If `HFCF_DATA` names the folder with the corpora, rows are drawn from the first 400 of FEVEROUS and from FEVER Symmetric v0.1, which
no offline model was trained on, and relations are CCG's 2-shot sample of SemEval; else, and with `--quick`, they are the demos'.
`HFCF_PEER_TEXTATTACK` names the folder with TextAttack; without it that line is left out. Where there is a GPU, its seconds are
reported too.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from common import read_options, show
from verdicts import Reading, count_right, draw_pairs, load_verdicts, own_columns, pair_key

VERDICTS = Path(__file__).with_name("end_to_end_verdicts.jsonl")
READ = 20
SEED = 13

Row = dict[str, Any]


@dataclass(frozen=True)
class Method:
    """A method, and how many rows it gets: (all, quick)."""

    title: str
    task: str
    run: Callable[[Any], Outcome]
    rows: tuple[int, int]


@dataclass(frozen=True)
class Outcome:
    """What a method made of its rows.

    Args:
        accepted: the new rows.
        proposed: of a peer, the candidates that its own checks left; a system's checks are part of it.
        cpu: seconds of the processor, trainings included.
        training: those of trainings.
        wall: seconds on the clock, for a GPU.
    """

    accepted: list[Row]
    proposed: int | None
    cpu: float
    training: float
    wall: float


def run_system(name: str, ds: Any, **settings: Any) -> Outcome:
    """Run one of the library's systems with its offline preset."""
    from hfcf.core.expand import expand
    from hfcf.systems import system_class

    system = system_class(name).preset("offline", **settings)
    if not system.trainings():
        system(ds.select(range(2)), load_from_cache_file=False)  # loads the models
    trained = 0.0

    def watch(stage: Any, step: Callable[[], Any]) -> Any:
        nonlocal trained
        start = time.process_time()
        done = step()
        if not hasattr(stage, "batch_size"):  # a training, and no stage
            trained += time.process_time() - start
        return done

    start, wall = time.process_time(), time.perf_counter()
    new = expand(system(ds, watch=watch, load_from_cache_file=False))
    cpu, wall = time.process_time() - start, time.perf_counter() - wall
    return Outcome(list(new), None, cpu, trained, wall)


def run_peer(name: str, propose: Callable[[Sequence[Row]], list[list[Any]]], ds: Any) -> Outcome:
    """Run a peer, and judge its candidates as RACE and CrossAug do."""
    from hfcf.core.candidates import undecided
    from hfcf.core.stage import Reject
    from hfcf.core.task import task_of
    from hfcf.systems._shared.judge import JudgeCandidates
    from hfcf.systems.crossaug import OFFLINE

    task = task_of(ds.features).name
    judged_by = {key: OFFLINE[key] for key in ("verifier", "judges", "max_length")} if task == "verification" else {}
    judge = JudgeCandidates(system=name, task=task, **judged_by)

    def work(rows: list[Row]) -> tuple[int, list[Row]]:
        made = propose(rows)
        left = sum(undecided(candidate) for of_row in made for candidate in of_row)
        judged = judge.batch([{**row, "candidates": of_row} for row, of_row in zip(rows, made, strict=True)])
        return left, [new for row in judged if not isinstance(row, Reject) for new in row["counterfactuals"]]

    work(ds.select(range(1)).to_list())  # loads the models
    start, wall = time.process_time(), time.perf_counter()
    proposed, accepted = work(ds.to_list())
    return Outcome(accepted, proposed, time.process_time() - start, 0.0, time.perf_counter() - wall)


def methods(quick: bool) -> list[Method]:
    """List the methods; TextAttack where it is installed."""
    from rewriters import polyjuice, prompted, textattack, textattack_folder

    search = {"num_beams": 10, "max_new_tokens": 32} if quick else {}
    training = {"min_steps": 0} if quick else {}
    attack = Method("TextAttack, PWWS", "verification", lambda ds: run_peer("textattack", textattack, ds), (10, 1))
    return [
        Method("RACE", "verification", lambda ds: run_system("race", ds, **search), (40, 10)),
        Method("CrossAug", "verification", lambda ds: run_system("crossaug", ds), (80, 20)),
        Method("Polyjuice's recipe, masked LM", "verification", lambda ds: run_peer("polyjuice", polyjuice, ds), (24, 4)),
        *([attack] if textattack_folder() else []),
        Method("SmolLM2, prompted", "verification", lambda ds: run_peer("prompted", prompted, ds), (8, 1)),
        Method("CCG", "relation", lambda ds: run_system("ccg", ds, **training), (36, 12)),
        Method("SmolLM2, prompted", "relation", lambda ds: run_peer("prompted", prompted, ds), (4, 1)),
    ]


def load_rows(quick: bool) -> tuple[dict[str, Any], str]:
    """Load the rows of each task, in an order that does not depend on how many are read, and say where they are from."""
    from datasets import concatenate_datasets

    import hfcf
    from hfcf.core import recipe
    from hfcf.core.task import get_task

    data = os.environ.get("HFCF_DATA")
    if quick or not data:
        claims = hfcf.load("hover", data_dir=recipe.folder() / "demo", split="train")
        return {
            "verification": claims,
            "relation": hfcf.load("relations", data_dir=recipe.folder() / "demo_relations", split="train", on_error="reject"),
        }, "the demos' rows"
    columns = list(get_task("verification").features)
    parts = [
        hfcf.load("feverous", data_dir=Path(data, "feverous_programfc"), split="validation").select(range(400)),
        hfcf.load("fever_symmetric", data_dir=Path(data, "fever_symmetric"), split="generated"),
    ]
    claims = concatenate_datasets([part.select_columns(columns) for part in parts]).shuffle(seed=SEED)
    relations = hfcf.load("ccg_semeval", data_dir=Path(data, "ccg_semeval"), split="2shot").shuffle(seed=SEED)
    return {"verification": claims, "relation": relations}, "FEVEROUS and FEVER Symmetric v0.1; SemEval, 2-shot"


def rates(made: Outcome, reading: Reading) -> dict[str, Any]:
    """Return the accepted rows a CPU minute with and without training, and those that are right, without training."""
    minutes = (made.cpu - made.training) / 60
    label, sound = (reading.share(right) for right in (reading.label_right, reading.fully_right))
    rate = len(made.accepted) / minutes
    return {
        "accepted_per_minute": rate,
        "with_training": len(made.accepted) / (made.cpu / 60),
        "label_right": label,
        "fully_right": sound,
        "right_per_minute": None if label is None else rate * label,
        "fully_right_per_minute": None if sound is None else rate * sound,
    }


def describe(method: Method, new: Mapping[str, Any], source: Row) -> Row:
    """Return a line of `--pairs`."""
    return {"key": pair_key(new), "method": method.title, "source": own_columns(source), "new": own_columns(new)}


def cell(value: float | None) -> Any:
    return "–" if value is None else value


@contextmanager
def own_cache() -> Iterator[None]:
    """Use a cache folder with the converted offline models alone: what CCG trains is trained, and not found there."""
    from hfcf.core.paths import cache_dir

    offline = cache_dir() / "offline"
    offline.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, HFCF_CACHE=folder, HFCF_REQUEST_CACHE="off"):
        Path(folder, "offline").symlink_to(offline.resolve())
        yield


def main() -> None:
    """Run the methods one after the other, and print the table."""
    options = read_options(__doc__ or "", pairs="write the drawn rows and their sources there, as JSON lines")
    import torch

    torch.set_num_threads(1)
    gpu, verdicts = torch.cuda.is_available(), load_verdicts(VERDICTS)
    table: list[list[Any]] = []
    figures: dict[str, Any] = {}
    drawn: list[Row] = []
    with own_cache():
        rows, where = load_rows(options.quick)
        for method in methods(options.quick):
            ds = rows[method.task]
            ds = ds.select(range(min(method.rows[options.quick], len(ds))))
            made, sources = method.run(ds), {row["id"]: row for row in ds}
            pairs = draw_pairs(made.accepted, READ)
            reading = count_right(pairs, verdicts)
            measured = rates(made, reading)
            per_gpu = {"accepted_per_gpu_second": len(made.accepted) / made.wall} if gpu else {}
            drawn += [describe(method, row, sources[row["source_id"]]) for row in pairs]
            numbers = {**asdict(made), "accepted": len(made.accepted), "rows": len(ds)}
            figures[f"{method.title}, {method.task}"] = {**numbers, **measured, **per_gpu, "reading": asdict(reading)}
            counts = [len(ds), cell(made.proposed), len(made.accepted), made.cpu, made.training]
            table.append([method.title, method.task, *counts, *map(cell, measured.values()), *per_gpu.values()])
            print(f"{method.title}, {method.task}: {len(made.accepted)} accepted in {made.cpu:.0f} s", flush=True)
    if options.pairs:
        options.pairs.write_text("".join(json.dumps(pair, ensure_ascii=False) + "\n" for pair in drawn), encoding="utf-8")
    columns = [
        "method", "task", "rows", "proposed", "accepted", "CPU s", "training s", "accepted/min", "with training", "label right",
        "fully right", "label right/min", "fully right/min", *(["accepted/GPU s"] if gpu else []),
    ]  # fmt: skip
    show(f"{where}; minutes of the processor", columns, table, options.json, figures)


if __name__ == "__main__":
    main()
