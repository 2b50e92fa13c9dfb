"""Windows of 100 words and the paragraphs that they were cut from: which rows repeat each other in part."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset

from hfcf.core.contamination import load_seen, row_hashes, save_seen, seen_rows, whole_texts_alone
from hfcf.core.model import SEEN, Model
from hfcf.core.pairs import pair
from hfcf.core.passages import PassageIndex, hash_runs
from hfcf.core.task import get_task
from hfcf.studies.compare.contamination import MethodModel, overlap_table
from hfcf.training.data import drop_overlap, drop_related, unrelated

TASK = get_task("qa")


def text(seed: int, words: int = 180) -> str:
    draw = random.Random(seed)
    return " ".join("".join(draw.choices("abcdefghij", k=5)) for _ in range(words))


def row(name: str, context: str) -> dict[str, Any]:
    answers = {"text": [context[:5]], "answer_start": [0]}
    own = {"id": name, "title": "", "context": context, "question": f"who {name}", "answers": answers, "group_id": name}
    return {**own, "corpus": "made", "split": "test"}


def rows(**contexts: str) -> Dataset:
    return Dataset.from_list([row(name, context) for name, context in contexts.items()], features=TASK.features)


def part(context: str, start: int, end: int) -> str:
    return " ".join(context.split()[start:end])


PARAGRAPH = text(1)
WINDOWS = {
    "inside": part(PARAGRAPH, 40, 140),
    "marks": part(PARAGRAPH, 40, 140).upper().replace(" ", ", "),
    "most": part(PARAGRAPH, 0, 75) + " " + text(2, 25),
    "little": part(PARAGRAPH, 0, 30) + " " + text(3, 70),
    "other": text(4, 100),
    "longer": text(5, 100) + " " + PARAGRAPH + " " + text(6, 100),
}
REPEATED = ["inside", "marks", "most", "longer"]


def test_a_window_of_a_paragraph_is_found_either_way() -> None:
    index = PassageIndex([PARAGRAPH, PARAGRAPH, text(7)])
    assert [name for name, window in WINDOWS.items() if index.repeats(window)] == REPEATED
    assert [name for name, window in WINDOWS.items() if PassageIndex([window]).repeats(PARAGRAPH)] == REPEATED


def test_a_quotation_and_a_short_text_are_compared_whole() -> None:
    assert not PassageIndex([PARAGRAPH]).repeats(part(PARAGRAPH, 10, 18))
    assert not PassageIndex([]).repeats(PARAGRAPH)
    assert not len(hash_runs("Seven words are not enough for one"))


def test_the_n_grams_that_are_kept_are_few() -> None:
    assert 1 / 8 < len(hash_runs(text(8, 4000))) / 4000 < 1 / 2.5


def test_training_leaves_out_windows_of_what_is_scored() -> None:
    kept, dropped = drop_overlap(rows(**WINDOWS), rows(scored=PARAGRAPH))
    assert (kept["id"][:], dropped) == (["little", "other"], 4)
    assert drop_related(rows(scored=PARAGRAPH, apart=text(9)), rows(**WINDOWS))["id"][:] == ["apart"]
    assert unrelated(rows(scored=PARAGRAPH), kept) == [0], "what is left never makes a scored row related"


def test_of_pairs_either_side_counts() -> None:
    new = rows(new=text(10)).add_column("source_id", ["old"])
    pairs = pair(new, rows(old=PARAGRAPH))
    assert unrelated(pairs, rows(x=WINDOWS["inside"])) == []
    assert unrelated(pairs, rows(x=WINDOWS["other"])) == [0]


def test_a_model_knows_windows_of_what_it_was_trained_on(tmp_path: Path) -> None:
    save_seen(tmp_path, rows(trained=PARAGRAPH, more=text(11)), Model("offline:minilm"))
    seen = seen_rows(rows(**WINDOWS), Model(str(tmp_path)))
    assert seen is not None
    # "longer" is trained text for 180 of its 380 words, which is not half of it.
    assert [name for name, own in zip(WINDOWS, seen, strict=True) if own] == ["inside", "marks", "most"]


def test_a_record_without_n_grams_says_so_and_so_do_models_that_start_from_it(tmp_path: Path) -> None:
    """The shipped adapters were trained before n-grams were stored: their record holds whole texts alone."""
    old, new, later = (tmp_path / name for name in ("old", "new", "later"))
    for folder in (old, new, later):
        folder.mkdir()
    trained = rows(trained=PARAGRAPH)
    np.save(old / SEEN, np.array(sorted(*map(sorted, row_hashes(trained))), dtype=np.uint64), allow_pickle=False)
    assert seen_rows(rows(**WINDOWS), Model(str(old))) == [False] * len(WINDOWS)
    assert seen_rows(trained, Model(str(old))) == [True]
    save_seen(new, trained, Model("offline:minilm"))
    save_seen(later, rows(more=text(11)), Model(str(old)))
    assert [whole_texts_alone(Model(str(folder))) for folder in (old, new, later, tmp_path)] == [True, False, True, False]
    models = [MethodModel(name, ("a",), load_seen(Model(str(tmp_path / name)))) for name in ("old", "new")]
    assert "Compared by whole texts alone" in (noted := overlap_table([], models, passages=True))
    assert noted.endswith("parts of their passages: old.")
    assert "whole texts" not in overlap_table([], models)


def test_other_tasks_have_no_passages() -> None:
    claims = [{"id": "1", "claim": "c", "evidence": [{"title": "", "text": PARAGRAPH}], "group_id": "1", "corpus": "a"}]
    other = [{**claims[0], "id": "2", "claim": "d", "group_id": "2", "evidence": [{"title": "", "text": WINDOWS["inside"]}]}]
    assert drop_overlap(Dataset.from_list(claims), Dataset.from_list(other))[1] == 0
