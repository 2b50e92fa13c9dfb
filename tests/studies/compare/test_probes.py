"""What claims give away, worked out by hand; and the section of a table, on tiny random models."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from datasets import Dataset
from made_up import cell

from hfcf.core import recipe as recipes
from hfcf.engines.continuation import Continuation
from hfcf.studies.compare import runner
from hfcf.studies.compare.frame import make_grid
from hfcf.studies.compare.probes import ANY, NONE, by_shortcut, claim_only, shares, shortcuts, shortcuts_table, telling
from hfcf.studies.compare.run import compare
from hfcf.studies.compare.sets import EvaluationSet
from hfcf.tasks.verification import LABELS, REFUTES, SUPPORTS

DEMO = recipes.folder() / "demo"
TWO = LABELS[:2]


def rows(*pairs: tuple[str, str], group: Callable[[int], int] = int) -> Dataset:
    return Dataset.from_list(
        [
            {"id": str(i), "claim": claim, "evidence": [], "label": label, "group_id": str(group(i)), "corpus": "c"}
            for i, (claim, label) in enumerate(pairs)
        ]
    )


def evaluated(name: str, *pairs: tuple[str, str]) -> EvaluationSet:
    return EvaluationSet(name, "challenge", rows(*pairs), {}, 0, None)


def test_shortcuts_are_whole_words_in_any_case() -> None:
    assert shortcuts("Rome WAS\tNot built in a day.") == {"was not", "not"}
    assert shortcuts("He was incapable  of it, yet tomorrow is another day.") == {"incapable of"}
    assert shortcuts("Nothing lonely, whenever a knot is notable.") == set()
    assert shortcuts("It is yet to be only-ever sung.") == {"yet to", "only"}


def test_accuracy_by_shortcut_is_pooled_over_corpora_and_meant_over_whole_seeds() -> None:
    one = evaluated("A", ("He did not sing.", REFUTES), ("He sang.", SUPPORTS), ("He never sang.", SUPPORTS))
    two = evaluated("B", ("She was not there.", REFUTES), ("She can.", REFUTES))
    cells = [
        cell("none", 1, "A", "challenge", "RSS", "RSR"), cell("none", 1, "B", "challenge", "RR", "RS"),
        cell("none", 2, "A", "challenge", "RSS", "SSS"), cell("none", 2, "B", "challenge", "RR", "RR"),
        cell("CrossAug", 1, "A", "challenge", "RSS", "RSS"),
    ]  # fmt: skip
    grid = make_grid(cells, "none", ["none", "CrossAug"], [1, 2], {"A": "challenge", "B": "challenge"})
    found = {(row["claims"], row["label"]): (row["rows"], row["accuracy"]["none"]) for row in by_shortcut(grid, [one, two])}
    assert found == {
        (ANY, REFUTES): (2, 0.75),  # seed 1: both; seed 2: one of two
        (ANY, SUPPORTS): (1, 0.5),
        (NONE, REFUTES): (1, 0.5),
        (NONE, SUPPORTS): (1, 1.0),
        ("did not", REFUTES): (1, 0.5),
        ("was not", REFUTES): (1, 1.0),
        ("not", REFUTES): (2, 0.75),
        ("never", SUPPORTS): (1, 0.5),
    }
    assert all(row["accuracy"]["CrossAug"] is None for row in by_shortcut(grid, [one, two])), "a corpus is missing"
    table = shortcuts_table(grid, by_shortcut(grid, [one, two]))
    assert "| *any of these* | SUPPORTS | 1 | 50.0 | – |" in table
    assert "| did not | REFUTES | 1 | 50.0 | – |" in table


def test_local_mutual_information_by_hand() -> None:
    claims = ["A b", "a B!", "a b", "c d"]
    found = {(one["label"], one["bigram"]): one["lmi"] for one in telling(claims, [REFUTES, REFUTES, SUPPORTS, SUPPORTS])}
    # p(ab, R) = 2/4, p(R | ab) = 2/3, p(R) = 1/2; "a b" is below chance towards SUPPORTS, "c d" towards REFUTES.
    assert found == {
        (REFUTES, "a b"): pytest.approx(0.5 * math.log((2 / 3) / 0.5)),
        (SUPPORTS, "c d"): pytest.approx(0.25 * math.log(1 / 0.5)),
    }
    assert len(telling(["a b c", "d e"], [REFUTES, SUPPORTS], top=1)) == 2
    assert [one["bigram"] for one in telling(["b c", "a b", "d e"], [REFUTES, REFUTES, SUPPORTS])][:2] == ["a b", "b c"], "by text"


def test_what_becomes_of_a_bigram() -> None:
    told = telling(["he did not", "she did not", "it is"], [REFUTES, REFUTES, SUPPORTS], top=1)
    after = rows(("he did not", REFUTES), ("she did not", REFUTES), ("it is", SUPPORTS), ("it did not not", SUPPORTS))
    assert [(one["bigram"], one["rows"], one["share"]) for one in shares(told, after)] == [
        ("did not", 3, pytest.approx(2 / 3)), ("it is", 1, 1.0),
    ]  # fmt: skip
    assert [(one["rows"], one["share"]) for one in shares(told, rows(("nothing of it", SUPPORTS)))] == [(0, None), (0, None)]


def test_a_word_that_tells_is_found_in_other_claims() -> None:
    train = rows(*((f"town{i} did {'not ' * (i % 2)}grow", TWO[i % 2]) for i in range(20)))
    sets = [
        evaluated("same", ("x did not grow", REFUTES), ("x did grow", SUPPORTS)),
        evaluated("other", ("x did not grow", SUPPORTS)),
    ]
    found = claim_only(train, TWO, sets)
    assert (found["rows"], found["majority"], found["cross_validated"]) == (20, 0.5, 1.0)
    assert found["evaluated"] == {sets[0].ids: 1.0, sets[1].ids: 0.0}


def test_counterfactuals_undo_it_and_are_never_on_the_other_side() -> None:
    """Each claim stands once with each label. A model that saw its twin would always be wrong, not at chance."""
    pairs = [(f"town{i} did {'not ' * (i % 2)}grow", TWO[i % 2]) for i in range(20)]
    twins = [(claim, TWO[label == SUPPORTS]) for claim, label in pairs]
    train = rows(*pairs, *twins, group=lambda i: i % 20)
    assert claim_only(train, TWO, [])["cross_validated"] == 0.5


def test_too_little_to_learn_from_is_no_accuracy() -> None:
    sets = [evaluated("one", ("a b", SUPPORTS))]
    found = claim_only(rows(("a b", SUPPORTS), ("c d", SUPPORTS)), TWO, sets)
    assert (found["cross_validated"], found["evaluated"]) == (None, {sets[0].ids: None})
    assert claim_only(rows(("a b", SUPPORTS), ("c d", REFUTES), group=lambda i: 0), TWO, [])["cross_validated"] is None


def test_the_section_of_a_table(tmp_path: Path, tiny_model: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import AutoModel, AutoTokenizer

    said = [{"text": "It is said that nobody came.", "score": -0.1, "finished": True}]
    monkeypatch.setattr(Continuation, "forward", lambda self, loaded, encoded: [said] * len(encoded))
    other, encoder = tmp_path / "other.jsonl", tmp_path / "encoder"
    evidence = [[{"title": "", "text": f"Town {i} lies on river {i}."}] for i in range(6)]
    own = [{"id": str(i), "claim": f"Town {i} did not grow.", "evidence": evidence[i], "label": TWO[i % 2]} for i in range(6)]
    other.write_text("".join(json.dumps(one) + "\n" for one in own), encoding="utf-8")
    AutoModel.from_pretrained(tiny_model("classifier")).save_pretrained(encoder)
    AutoTokenizer.from_pretrained(tiny_model("classifier")).save_pretrained(encoder)
    model = {"generator": tiny_model("t5"), "max_new_tokens": 8}
    content = {
        "compare": "verifiers", "name": "tiny", "preset": "paper", "probes": True, "seeds": [1], "take": 12,
        "train": {"corpus": "hover", "data_dir": str(DEMO), "split": "train"},
        "methods": {"none": None, "CrossAug": {"system": "crossaug", "changes": ["evidence", "claim"], "settings": model}},
        "verifier": {"model": str(encoder), "max_length": 64, "epochs": 1, "learning_rate": 0.001},
        "encoder": str(encoder),
        "evaluate": [{"name": "Other", "setting": "challenge", "corpus": "jsonl", "data_files": str(other), "split": "train"}],
    }  # fmt: skip
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(yaml.safe_dump(content), encoding="utf-8")
    compare(recipe, tmp_path / "out", results=tmp_path / "results")
    table = (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    parts = [
        "## Bias probes",
        "### What claims alone tell",
        "### Accuracy by shortcut word",
        "### Bigrams that tell the label",
        "## How",
    ]
    assert sorted(parts, key=table.index) == parts
    assert "| Trained on the rows of | Rows | Commonest label | Cross-validated | Other |" in table
    assert "| none | 12 |" in table
    assert "| did not | SUPPORTS | 3 |" in table
    assert "| Towards | Bigram | LMI | none | CrossAug |" in table
    assert (tmp_path / "results" / "tiny.jsonl").read_text(encoding="utf-8").count('"table": "probes"') == 2

    monkeypatch.setattr(runner, "make_rows", lambda *a: pytest.fail("finished cells are only read"))
    compare(recipe, tmp_path / "out", results=tmp_path / "results")
    assert (tmp_path / "out" / "table.md").read_text(encoding="utf-8") == table
    recipe.write_text(yaml.safe_dump({**content, "probes": False}), encoding="utf-8")
    compare(recipe, tmp_path / "out", results=tmp_path / "results")
    assert "Bias probes" not in (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
