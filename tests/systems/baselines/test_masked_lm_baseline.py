from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from offline_models import installed

import hfcf
from hfcf.core import edits, offline
from hfcf.core.model import Model
from hfcf.core.task import get_task
from hfcf.systems import system_class
from hfcf.systems.baselines.masked_lm import MaskedLM, filled_edits, maskable, masked_spans
from hfcf.tasks.verification import LABELS

pytestmark = [
    pytest.mark.usefixtures("on_cpu"),
    pytest.mark.skipif(not installed("wordnet"), reason=f"WordNet is not installed: {offline.INSTALL}"),
]

Tiny = Callable[[str], str]

CLAIMS = [
    "The film was directed by an American director in 1994.",
    "Ridley Scott never wrote the two songs of that album.",
    "The river is the longest in the country, and a city stands on it.",
    "Rome fell.",
    "It wasn't well-known to writers before 2006.",
]


def rows(claims: list[str], labels: tuple[str, ...] = LABELS) -> Dataset:
    made = [
        {
            "id": f"row-{i}", "claim": claim, "label": labels[i % len(labels)], "group_id": str(i), "corpus": "made",
            "split": "train", "evidence": [{"title": "Title", "text": f"Piece of evidence {i}."}],
        }
        for i, claim in enumerate(claims)
    ]  # fmt: skip
    return Dataset.from_list(made, features=get_task("verification").features)


@pytest.fixture
def system(tiny_model: Tiny) -> MaskedLM:
    return MaskedLM(model=Model(tiny_model("mlm")))


def masked(claim: str) -> list[str]:
    return [claim[start:end] for start, end in maskable(claim)]


def test_words_alone_are_masked() -> None:
    assert masked(CLAIMS[0]) == ["film", "directed", "director"]
    assert masked(CLAIMS[1]) == ["wrote", "songs", "album"]
    assert masked(CLAIMS[4]) == ["writers"]
    assert masked("He did not win 3rd place at the World's Fair; no café could, nor did x2.") == ["win", "place", "café"]
    assert masked("It would, may, might and must be the eleventh of millions; dozens of cafe\u0301s ought to.") == []
    assert masked("the film's cafe\u0301 owner") == ["film", "owner"]


@pytest.mark.parametrize(("share", "number"), [(0.0, 1), (0.1, 1), (0.2, 2), (0.3, 3), (1.0, 3)])
def test_the_share_is_of_all_words_and_one_at_least(share: float, number: int) -> None:
    found = masked_spans(CLAIMS[0], random.Random(1), share=share)
    assert len(found) == number
    assert found == sorted(found)
    assert set(found) <= set(maskable(CLAIMS[0]))


def test_every_word_has_its_turn() -> None:
    drawn = Counter(span for seed in range(300) for span in masked_spans(CLAIMS[0], random.Random(seed), share=0.1))
    assert drawn.keys() == set(maskable(CLAIMS[0]))
    assert min(drawn.values()) > 80


def draw(fills: list[list[Any]], claim: str = "It is an old film.", word: str = "old", top: int = 10) -> Counter[str | None]:
    start = claim.index(word)
    found: Counter[str | None] = Counter()
    for seed in range(400):
        made = filled_edits(claim, [(start, start + len(word))], [fills], random.Random(seed), top=top)
        found[made[0]["after"] if made else None] += 1
    return found


def test_fills_are_drawn_in_proportion_to_their_probability() -> None:
    found = draw([["early", 0.6], ["old", 0.5], ["odd", 0.2], ["ill", 0.0]])
    assert found.keys() == {"early", "odd"}
    assert 2 < found["early"] / found["odd"] < 4.5


def test_the_word_itself_names_negations_and_numbers_are_never_drawn() -> None:
    fills = [["two", 0.3], ["old", 0.3], ["London", 0.2], ["not", 0.1], ["third", 0.05], ["small", 0.01]]
    assert draw(fills, "It is the old film.").keys() == {"small"}
    assert draw(fills[:-1], "It is the old film.").keys() == {None}


def test_names_in_lower_case_are_never_drawn() -> None:
    names = ["york", "canada", "philippines", "james", "december", "wales", "americans", "xyzzyx", "might"]
    fills: list[list[Any]] = [*([name, 0.1] for name in names), ["small", 0.01]]
    assert draw(fills, "It is the old film.").keys() == {"small"}


def test_long_claims_take_no_longer_in_proportion() -> None:
    claim = "The film is older than a book. " * 650
    assert len(claim) > 20_000
    filled_edits("An old film.", [(3, 6)], [[["early", 1.0]]], random.Random(1))  # the files are open
    begun = time.process_time()
    spans = masked_spans(claim, random.Random(1), share=1.0)
    made = filled_edits(claim, spans, [[["movie", 0.5], ["large", 0.5]]] * len(spans), random.Random(1))
    assert len(made) == len(spans) > 1000
    assert time.process_time() - begun < 0.8


def test_the_article_before_a_word_decides_what_goes_with_it() -> None:
    fills = [["new", 0.5], ["early", 0.3], ["French", 0.2], ["short", 0.2]]
    assert draw(fills).keys() == {"early"}
    assert draw(fills, "A real film.", "real").keys() == {"new", "short"}


def test_the_first_that_fit_are_drawn_from() -> None:
    assert draw([["two", 0.3], ["big", 0.2], ["new", 0.1], ["bad", 0.1]], "It is the old film.", top=2).keys() == {"big", "new"}


def test_each_row_gets_one_claim_with_its_label_and_exact_edits(system: MaskedLM) -> None:
    ds = system(rows(CLAIMS))
    assert [row["status"]["accepted"] for row in ds] == [True, True, True, True, True]
    made = hfcf.expand(ds)
    assert made["label"] == ds["label"]
    assert [row["id"] for row in made] == [f"row-{i}:masked_lm:claim" for i in range(5)]
    assert set(made["system"]) == {"masked_lm"}
    for source, row in zip(ds, made, strict=True):
        assert edits.replace_text(source["claim"], row["edits"]) == row["claim"]
        assert row["evidence"] == source["evidence"]
        allowed = {source["claim"][a:b] for a, b in maskable(source["claim"])}
        for edit in row["edits"]:
            assert edit["before"] in allowed
            assert edit["after"].islower()
            assert edit["after"] != edit["before"]
        assert re.findall(r"\d+|\b[A-Z]\w*", row["claim"]) == re.findall(r"\d+|\b[A-Z]\w*", source["claim"])


def test_draws_differ_by_row_and_by_seed(system: MaskedLM) -> None:
    ds = hfcf.prepare(rows(CLAIMS * 2), system)
    drawn = ds.map(system.rewrite_masked_lm, batched=True)["candidates"][:]
    assert drawn[0] != drawn[5]
    assert drawn[0][0]["claim"] != CLAIMS[0]
    assert ds.map(system.replace(seed=14).rewrite_masked_lm, batched=True)["candidates"][:] != drawn


def test_a_row_with_nothing_to_mask_is_rejected_with_the_reason(system: MaskedLM) -> None:
    ds = system(rows(["Rome Was Never BIG.", "Not one of 12.", "The film is old."]))
    reasons = [row["status"]["reason"] for row in ds]
    assert reasons[:2] == ["no word of the claim may be masked"] * 2
    assert [row["status"]["accepted"] for row in ds] == [False, False, True]


def test_a_verifier_rejects_what_it_judges_otherwise(system: MaskedLM, tiny_model: Tiny) -> None:
    checked = MaskedLM(model=system.model, verifier=Model(tiny_model("verifier")))
    ds = checked(rows(CLAIMS * 6))
    reasons = {row["candidates"][0]["status"]["reason"] for row in ds}
    assert any(reason and reason.startswith("the verifier says") for reason in reasons)
    assert all(row["candidates"][0]["scores"] for row in ds)


def test_settings_and_names() -> None:
    assert system_class("masked_lm") is MaskedLM
    system = MaskedLM.preset("offline")
    assert (system.name, system.model.name, system.flips) == ("masked_lm", "hfcf:mlm", False)
    assert MaskedLM().model.name == "bert-base-uncased"
    assert [stage.name for stage in system.stages] == list(MaskedLM.parts) == ["rewrite_masked_lm", "judge_candidates"]
    with pytest.raises(ValueError, match="share must be at most 1"):
        MaskedLM(share=1.5)
    with pytest.raises(ValueError, match="top must be at least 1, got 0"):
        MaskedLM(top=0)


def test_the_offline_model_rewrites_real_claims(data: Path) -> None:
    ds = hfcf.load("fever", data_dir=data / "fever_rte" / "RTE-Fever" / "processed", split="validation[:15]")
    made = MaskedLM.preset("offline")(ds)
    kept = [row for row in made if row["status"]["accepted"]]
    assert len(kept) > 12
    assert all(row["counterfactuals"][0]["label"] == row["label"] for row in kept)
    assert all(row["counterfactuals"][0]["claim"] != row["claim"] for row in kept)
