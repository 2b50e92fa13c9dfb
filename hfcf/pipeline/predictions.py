"""Files of predictions: what a model answered to each row, as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset

from hfcf.core.paths import replace_file
from hfcf.core.preflight import check_disk
from hfcf.core.trainer import Evaluation


def answers_of(rows: Dataset, result: Evaluation) -> Iterator[dict[str, Any]]:
    """Yield `id`, `gold` and `predicted` of each row; of a row that was left out `id`, `gold` and the reason in `left_out`."""
    for i, row_id in enumerate(rows["id"]):
        gold = result.gold[i] if len(result.gold) else None
        if i in result.left_out:
            yield {"id": row_id, "gold": gold, "left_out": result.left_out[i]}
        else:
            yield {"id": row_id, "gold": gold, "predicted": result.predicted[i]}


def prediction_lines(title: str, rows: Dataset, result: Evaluation) -> Iterator[dict[str, Any]]:
    """Yield what a file of predictions says of each row, in the order of the rows.

    Every line has `set`, `id` and `gold`, as `hfcf.core.trainer.Evaluation.gold` has it. A row that was left out has the reason in
    `left_out`. Every other row has `prediction`: the label, the answer or the program as the model wrote it. It also has what
    the model gives of the following keys. `probabilities` are by label. `score`, the logarithm of `probability`, and `passage`
    belong to an answer to a question. `label` and `names`, {name in the program: id of the evidence}, belong to a program.
    `written` is the text in which a label was found. `fault` says why there is no answer, or why it can't be read.

    Args:
        title: names the rows.
        rows: all rows.
        result: what the model answered to them.
    """
    details: Sequence[Mapping[str, Any]] = result.details or [{}] * len(rows)
    for answer, more in zip(answers_of(rows, result), details, strict=True):
        if "left_out" in answer:
            yield {"set": title, **answer}
        else:
            yield {"set": title, "id": answer["id"], "gold": answer["gold"], "prediction": answer["predicted"], **more}


def check_target(path: Path, sources: Iterable[str] = (), *, overwrite: bool = False) -> None:
    """Raise `ValueError` where predictions can't be written to a path, before a model is asked.

    Args:
        path: the file.
        sources: that the rows are read from, as `hfcf.pipeline.evaluate.evaluate` takes them: none of them is replaced.
        overwrite: replace a file that is there.
    """
    if path.is_dir():
        raise ValueError(f"--predictions {path} is a folder: name a file in it, such as {path / 'predictions.jsonl'}")
    for source in sources:
        places = {part for text in (source, source.partition("=")[2]) for part in (text, text.rpartition(":")[0]) if part}
        if any(Path(place).is_file() and path.resolve() == Path(place).resolve() for place in places):
            raise ValueError(f"--predictions {path} is the file that the rows are read from: choose another name")
    if path.exists() and not overwrite:
        raise ValueError(f"{path} exists already: choose another name, or add --overwrite (in Python overwrite=True)")
    check_disk([path.absolute().parent])


def write_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON lines to a file, which exists only when it is complete, and replaces an earlier file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as part, part.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
