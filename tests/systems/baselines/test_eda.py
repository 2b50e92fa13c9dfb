from __future__ import annotations

import pickle
import random
import re
from collections import Counter
from functools import cache
from typing import Any

import pytest
from datasets import Dataset
from offline_models import installed

import hfcf
from hfcf.core import offline
from hfcf.core.stage import StageError
from hfcf.engines.wordnet import wordnet
from hfcf.systems.baselines import eda as module
from hfcf.systems.baselines._shared.word_edits import STOP_WORDS
from hfcf.systems.baselines.eda import EDA, RewriteEda, eda
from hfcf.tasks.verification import LABELS, REFUTES

pytestmark = pytest.mark.skipif(not installed("wordnet"), reason=f"WordNet is not installed: {offline.INSTALL}")

CLAIM = "The film's director, born in 1970, quickly wrote a large book about well-known Norwegian rivers and old churches."


# --- the authors' algorithm, as slow and literal as it can be


def slow_words(text: str) -> list[str]:
    text = text.replace("’", "").replace("'", "").lower()
    return "".join(c if c in "abcdefghijklmnopqrstuvwxyz" else " " for c in text).split()


@cache
def slow_synonyms(word: str) -> list[str]:
    net, found = wordnet(), set()
    for synset in net.synsets(word):
        for name in net.names(synset):
            name = name.replace("_", " ").replace("-", " ").lower()
            found.add("".join(c for c in name if c in " abcdefghijklmnopqrstuvwxyz"))
    return sorted(name for name in found - {word} if name.strip())


def slow_operations(text: str, rng: random.Random, alpha: float, number: int) -> list[tuple[str, list[str]]]:
    """Everything is made, shuffled, and mostly thrown away."""
    words, made = slow_words(text), []
    n, each = max(1, int(alpha * len(words))), int(number / 4) + 1
    for _ in range(each):
        new, done = list(words), 0
        unlike = sorted({word for word in words if word not in STOP_WORDS})
        rng.shuffle(unlike)
        for word in unlike:
            if synonyms := slow_synonyms(word):
                synonym = rng.choice(synonyms)
                new = [synonym if old == word else old for old in new]
                done += 1
            if done >= n:
                break
        made.append(("replace", " ".join(new).split()))
    for _ in range(each):
        new = list(words)
        for _ in range(n):
            tries = 0
            while True:
                synonyms = slow_synonyms(rng.choice(new))
                tries += 1
                if tries >= 10:
                    break
                if synonyms:
                    new.insert(rng.randint(0, len(new) - 1), rng.choice(synonyms))
                    break
        made.append(("insert", " ".join(new).split()))
    for _ in range(each):
        new = list(words)
        for _ in range(n):
            i = j = rng.randint(0, len(new) - 1)
            tries = 0
            while i == j:
                j = rng.randint(0, len(new) - 1)
                tries += 1
                if tries > 3:
                    break
            else:
                new[i], new[j] = new[j], new[i]
        made.append(("swap", new))
    for _ in range(each):
        kept = [word for word in words if rng.uniform(0, 1) > alpha]
        made.append(("delete", words if len(words) == 1 else kept or [rng.choice(words)]))
    rng.shuffle(made)
    return made[:number]


def kind(words: list[str], new: list[str]) -> tuple[str, int]:
    """What seems to have been done to `words`, and by how many words the number has grown."""
    grown = len(new) - len(words)
    if sorted(new) == sorted(words):
        return ("same" if new == words else "swap"), 0
    if grown < 0:
        return "delete", grown
    rest = iter(new)
    return ("insert" if all(word in rest for word in words) else "replace"), min(grown, 3)


@pytest.mark.parametrize(("alpha", "number"), [(0.1, 1), (0.1, 9), (0.3, 4)])
@pytest.mark.parametrize("claim", [CLAIM, "Is the dog a dog?"])
def test_draws_are_distributed_as_the_authors(claim: str, alpha: float, number: int) -> None:
    """Shares of what was done, and by how many words the claim grew or shrank; 6,000 draws have a standard error below 0.7 %."""
    words, rng, slow = slow_words(claim), random.Random(1), random.Random(2)
    ours, theirs, left, lost = Counter[Any](), Counter[Any](), Counter[int](), Counter[int]()
    for _ in range(6000 // number):
        for text in eda(claim, rng, alpha=alpha, num_augmentations=number):
            ours[kind(words, text.split())] += 1
            left[sum((Counter(words) & Counter(text.split())).values())] += 1
        for _, new in slow_operations(claim, slow, alpha, number):
            theirs[kind(words, new)] += 1
            lost[sum((Counter(words) & Counter(new)).values())] += 1
    assert sum(ours.values()) == sum(theirs.values()) >= 5900
    for mine, other in ((ours, theirs), (left, lost)):
        total = sum(other.values())
        assert max(abs(mine[kind] - other[kind]) / total for kind in mine | other) < 0.03, (mine, other)
    assert len(theirs) > 3


@pytest.mark.parametrize("number", [1, 3, 4, 9, 16])
def test_as_many_of_each_operation_as_the_authors_make(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from hfcf.systems.baselines._shared import word_edits

    drawn: Counter[str] = Counter()
    most: Counter[str] = Counter()

    def count(kind: str, words: list[str], *_: Any) -> list[str]:
        counts[kind] += 1
        return words

    monkeypatch.setattr(word_edits, "_edit", count)
    for seed in range(2000):
        counts: Counter[str] = Counter()
        assert len(eda(CLAIM, random.Random(seed), num_augmentations=number)) == number
        drawn += counts
        most |= counts
    assert all(abs(drawn[kind] / (2000 * number) - 0.25) < 0.03 for kind in "sird")
    assert max(most.values()) <= number // 4 + 1


def test_every_occurrence_is_replaced_and_stop_words_stay() -> None:
    for seed in range(300):
        for text in eda("the dog and the dog and the dog", random.Random(seed), num_augmentations=4):
            words = text.split()
            if Counter(words)["the"] == 3 and len(words) >= 8 and "dog" not in words:
                assert Counter(words).most_common(3)[-1][1] >= 2  # three times what stands for "dog"
                return
    raise AssertionError("no claim had its dogs replaced")


@pytest.mark.parametrize("text", ["", " ", "1999", "東京は首都です。", "— !", "'"])
def test_no_letters_no_sentences(text: str) -> None:
    assert eda(text, random.Random(1)) == []


def test_one_word_is_kept() -> None:
    assert all(text for text in eda("xyzzyx", random.Random(1), num_augmentations=16))
    assert set(eda("xyzzyx", random.Random(1), num_augmentations=16)) == {"xyzzyx"}
    assert set(eda("xyzzyx plugh", random.Random(1), alpha=1.0, num_augmentations=16)) <= {
        "xyzzyx", "plugh", "xyzzyx plugh", "plugh xyzzyx",
    }  # fmt: skip


def test_text_is_cleaned() -> None:
    texts = eda("Don’t SHOUT at the Côte-d'Or, 1999!", random.Random(1), num_augmentations=16)
    assert all(re.fullmatch("[a-z]+( [a-z]+)*", text) for text in texts)
    # A swap keeps them all.
    assert any(sorted(text.split()) == ["at", "c", "dont", "dor", "shout", "te", "the"] for text in texts)


@pytest.mark.parametrize(("name", "value"), [("alpha", 0.0), ("alpha", 1.1), ("num_augmentations", 0)])
def test_settings_that_mean_nothing(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"{name} must be .*got {value}"):
        EDA(**{name: value})
    with pytest.raises(ValueError, match=rf"{name} must be .*got {value}"):
        eda(CLAIM, random.Random(1), **{name: value})


# --- the system


@pytest.fixture
def rows(demo: Dataset) -> Dataset:
    found = [dict(row) for row in demo.select(range(12))]
    for i, row in enumerate(found):
        row["label"] = LABELS[i % 3]
    found[5]["claim"] = "東京は日本の首都です。"
    return Dataset.from_list(found, features=demo.features)


def test_every_label_is_augmented_and_kept(rows: Dataset) -> None:
    done = EDA(num_augmentations=4)(rows)
    made = hfcf.expand(done)
    assert set(made["label"]) == set(LABELS)
    labels, evidence = dict(zip(rows["id"], rows["label"], strict=True)), dict(zip(rows["id"], rows["evidence"], strict=True))
    for row in made:
        assert row["label"] == labels[row["source_id"]]
        assert row["evidence"] == evidence[row["source_id"]]
        assert (row["system"], row["change"]) == ("eda", "claim")
    assert len(made) > 30
    status = done[5]["status"]
    assert status == {
        "accepted": False, "stage": "rewrite_eda", "reason": "the claim has none of the letters a–z, and EDA reads no others",
    }  # fmt: skip
    assert done[5]["candidates"] == []
    assert not EDA.flips


def test_what_changed_nothing_is_rejected(rows: Dataset) -> None:
    row = {**rows[0], "claim": "Xyzzyx!"}
    done = EDA()(Dataset.from_list([row], features=rows.features))[0]
    assert done["candidates"][0]["status"]["reason"] == "repeats the source's claim"
    assert done["status"]["reason"] == "no candidate is left of 1: repeats the source's claim (1)"
    with pytest.raises(StageError, match=r"repeats.*claim"):
        EDA(strict=True)(Dataset.from_list([row], features=rows.features))


def test_what_repeats_an_earlier_candidate_is_rejected(rows: Dataset) -> None:
    row = {**rows[0], "claim": "Xyzzyx plugh!"}
    done = EDA(num_augmentations=16)(Dataset.from_list([row], features=rows.features))[0]
    reasons = [new["status"]["reason"] for new in done["candidates"]]
    assert len(reasons) == 16
    assert {"repeats an earlier candidate", "repeats the source's claim"} <= set(reasons)
    claims = [new["claim"] for new in done["counterfactuals"]]
    assert 1 < len(claims) == len(set(claims)) == reasons.count(None)
    made = dict.fromkeys(new["claim"] for new in done["candidates"])
    assert claims == [claim for claim in made if claim != "xyzzyx plugh"]


def test_another_seed_draws_other_claims(rows: Dataset) -> None:
    prepared = hfcf.prepare(rows, EDA())
    drawn, other = (list(prepared.map(EDA(seed=seed).rewrite_eda, batched=True)) for seed in (5, 6))
    assert drawn != other


def test_settings_are_all_that_is_pickled() -> None:
    stage = RewriteEda(alpha=0.2)
    stage.row({"id": "1", "claim": CLAIM, "label": REFUTES})
    assert len(pickle.dumps(stage)) < 300
    assert pickle.loads(pickle.dumps(stage)) == stage


def test_what_a_recipe_needs() -> None:
    system = EDA.preset("offline", alpha=0.2)
    assert system.settings == {
        "seed": 13, "strict": False, "unique": False, "task": "verification", "alpha": 0.2, "num_augmentations": 1,
            "verifier": None, "judges": [],
        "certainty": 0.0, "max_length": 130, "min_kept": None,
    }  # fmt: skip
    assert system.name == "eda"
    assert system.judge_candidates.system == "eda"
    assert module.eda is eda


@pytest.mark.parametrize("seed", range(4))
def test_a_text_of_handles_alone_has_nothing_to_change(seed: int) -> None:
    assert eda("@user @user", random.Random(seed), num_augmentations=4) == []
