"""`hfcf.augment`: new texts from texts alone, without labels or evidence."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import pandas
from datasets import Dataset

from hfcf.core.expand import expand, rejected
from hfcf.core.system import System
from hfcf.core.task import get_task
from hfcf.systems import system_class, systems

_TASK = "classification"


def augment(texts: str | list[str], system: System | str = "eda", *, n: int = 1, preset: str = "offline", **settings: Any) -> Any:
    """Write new texts from one text or several, by a system that needs no label.

    Such a system means to write nothing that would deserve another label; nothing checks that it does not.

    Args:
        texts: a text, or a list of texts.
        system: a system, or its name: "eda", "synonym", "masked_lm", "paraphrase" or "back_translation".
        n: how many new texts to write from each, at most: draws may repeat, and a text may not change in so many ways.
        preset: of a system that is named: "hub", "llm", "paper" or "offline", small models from the package registry; not every
            system has all four.
        settings: settings of the system, such as `seed`.

    Returns:
        A list of new texts, all different; for a list of texts a list of such lists. Lines on stderr say why a text gave none,
        and how many texts gave fewer than `n`.

    Raises:
        ValueError: `n` is less than 1; a text is null or no text; or the system changes labels, or needs more than a text.

    >>> augment("The doctor began to speak rapidly.", system="synonym")
    ['The doctor started to speak quickly.']
    """
    if isinstance(texts, Mapping | pandas.DataFrame):
        raise ValueError(f"texts is a {type(texts).__name__}: give the texts of one of its columns, as in rows['text']")
    if texts is None:
        raise ValueError("texts is null: give a text, or a list of texts")
    if not isinstance(n, int) or n < 1:
        raise ValueError(f"n must be a whole number of at least 1, got {n!r}")
    cls = type(system) if isinstance(system, System) else system_class(system)
    _check_keeps_label(cls)
    settings = {**settings, "task": _TASK, **({cls.count_setting: n} if cls.count_setting else {})}
    writer = system.replace(**settings) if isinstance(system, System) else cls.preset(preset, **settings)
    sources, copies = [texts] if isinstance(texts, str) else list(texts), 1 if cls.count_setting else n
    for i, text in enumerate(sources):
        if not isinstance(text, str):
            null = pandas.api.types.is_scalar(text) and pandas.isna(text)
            raise ValueError(f"text {i} is {'null' if null else f'{text!r}, no text'}: leave it out, or give its text")
    empty = {**get_task(_TASK).empty_row, "corpus": "own", "split": "train"}
    # A row's id decides its draws, so that each copy of a text gets different draws.
    rows = [{**empty, "id": f"{i}:{k}", "group_id": f"{i}", "text": text} for i, text in enumerate(sources) for k in range(copies)]
    results: list[dict[str, None]] = [{} for _ in sources]
    if rows:
        ds = writer(Dataset.from_list(rows, features=get_task(_TASK).features))
        for row in expand(ds):
            results[int(row["group_id"])][row["text"]] = None
        _report_fewer(cls.name, n, [len(new) for new in results])
        _report_none(cls.name, [i for i, new in enumerate(results) if not new], rejected(ds, system=cls.name))
    return list(results[0]) if isinstance(texts, str) else [list(new) for new in results]


def _check_keeps_label(cls: type[System]) -> None:
    if not cls.flips and _TASK in cls.works_on():
        return
    why = "changes labels" if cls.flips else f"works on {' and '.join(cls.works_on())} rows"
    fitting = [name for name, other in ((name, system_class(name)) for name in systems()) if not other.flips and not other.task]
    raise ValueError(
        f"{cls.name} {why}, and augment has texts alone: give one of {', '.join(fitting)}; or rows with their labels, to "
        f"{cls.__name__}(…)(hfcf.from_dataset(rows))"
    )


def _report_fewer(name: str, n: int, counts: list[int]) -> None:
    if few := sum(0 < count < n for count in counts):
        print(f"hfcf.augment: {name} made fewer than {n} new texts of {few} of {len(counts)} texts", file=sys.stderr)


def _report_none(name: str, empty: list[int], rejections: Dataset) -> None:
    reasons = {int(row["group_id"]): row["reason"] for row in rejections if row["level"] == "row"}
    for i in empty:
        print(f"hfcf.augment: {name} made none of text {i}: {reasons[i]}", file=sys.stderr)
