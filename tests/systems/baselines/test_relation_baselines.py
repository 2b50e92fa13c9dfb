"""The baselines of relations: entities are never touched, relations kept (or, by the LLM, changed), and nothing is lost."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from bad_server import Reply, Start, say, starter
from datasets import Dataset
from offline_models import installed
from scripted_continuation import answer, script_models

import hfcf
from hfcf.core import offline
from hfcf.core.model import Model
from hfcf.core.system import System
from hfcf.core.task import apply_edits, get_task, revert_edits
from hfcf.corpora.semeval import DIRECTED
from hfcf.pipeline.run import make_system
from hfcf.prompts.counterfactuals import SEMEVAL
from hfcf.systems import system_class
from hfcf.systems.baselines.back_translation import BackTranslation
from hfcf.systems.baselines.llm import LLM, RewriteLlm
from hfcf.systems.baselines.masked_lm import MaskedLM, masked_spans
from hfcf.systems.baselines.synonym import Synonym, synonym_edits
from hfcf.tasks import rewriting
from hfcf.tasks.relation import entities, roles

wordnet = pytest.mark.skipif(not installed("wordnet"), reason=f"WordNet is not installed: {offline.INSTALL}")

SENTENCE = rewriting.SentenceRewriting()
# Entities in brackets, the head with a star.
SENTENCES = [
    ("The large [*eggs] were quickly moved into old metal [buckets] near the house .", "Entity-Destination(e1,e2)"),
    ("A small [film] about the city was made by a young [*director of plays] last year .", "Product-Producer(e1,e2)"),
    ("He drank from the [*coffee] [cup] and talked to his friend about the weather .", "Content-Container(e1,e2)"),
    ("[*Writers] ca n't finish books without a [quiet room] .", "Other"),
    ("[*Storms] cause [floods]", "Cause-Effect(e1,e2)"),
]


def row(marked: str, label: str, number: int = 0) -> dict[str, Any]:
    tokens: list[str] = []
    spans: dict[str, dict[str, Any]] = {}
    name, start = "", 0
    for word in marked.split():
        if word.startswith("["):
            name, start = ("head" if word.startswith("[*") else "tail"), len(tokens)
        tokens.append(word.strip("[*]"))
        if word.endswith("]"):
            spans[name] = {"start": start, "end": len(tokens), "type": None}
    common = {"id": f"row-{number}", "group_id": f"row-{number}", "corpus": "made", "split": "train"}
    return {**common, "tokens": tokens, **spans, "label": label}


def rows(*sentences: tuple[str, str]) -> Dataset:
    made = [row(marked, label, i) for i, (marked, label) in enumerate(sentences or SENTENCES)]
    return Dataset.from_list(made, features=get_task("relation").features)


def check_kept(source: dict[str, Any], made: dict[str, Any]) -> None:
    """What holds for every counterfactual row: its entities are the source's, and its edits lead there and back."""
    assert entities(made) == entities(source)
    assert made["tokens"] != source["tokens"]
    fields = ("tokens", "head", "tail")
    assert apply_edits(source, made["edits"]) == {name: made[name] for name in fields}
    assert revert_edits(made, made["edits"]) == {name: source[name] for name in fields}


# --- a row as a text, and a text as a row


def test_edits_of_a_text_become_edits_of_its_tokens() -> None:
    source = row("A half-dark , [*dark] dark-ish [room] is dark", "a")
    text = SENTENCE.text(source)
    found = [
        {"field": "claim", "piece": -1, "start": i, "end": i + 4, "before": "dark", "after": "very dim"}
        for i in range(len(text))
        if text.startswith("dark", i) and i not in SENTENCE.protected(source)
    ]
    made = apply_edits(source, rewriting.token_edits(source["tokens"], found))
    assert " ".join(made["tokens"]) == "A half-very dim , dark very dim-ish room is very dim"
    assert (made["head"]["start"], made["tail"]["start"]) == (4, 7)


def test_two_edits_of_one_token_are_one() -> None:
    source = row("[*x] black/white [y]", "a")
    found = [
        {"field": "claim", "piece": -1, "start": start, "end": start + 5, "before": before, "after": after}
        for start, before, after in ((2, "black", "dark"), (8, "white", "pale"))
    ]
    assert rewriting.token_edits(source["tokens"], found) == [
        {"field": "tokens", "piece": -1, "start": 1, "end": 2, "before": "black/white", "after": "dark/pale"}
    ]


def test_a_sentence_written_anew_keeps_its_entities() -> None:
    source = row("The [*key] is moved into a [big chest] .", "a")
    made = SENTENCE.rewritten(source, "Surely, the Key comes from that big  chest's lid!", "b", "stage")
    assert made["status"] is None
    assert made["text"] == "Surely , the key comes from that big chest 's lid !"
    assert made["label"] == "b"
    check_kept(source, apply_edits(source, made["edits"]) | {"edits": made["edits"]})


def test_any_words_around_the_entities_are_reached_by_edits() -> None:
    rng = random.Random(1)

    def some() -> list[str]:
        return [rng.choice("abcd") for _ in range(rng.randrange(4))]

    for number in range(400):
        first, second = (["X"], ["Y", "Z"]) if number % 2 else (["Y", "Z"], ["X"])
        old, new = ([*some(), *first, *some(), *second, *some()] for _ in range(2))
        spans = {"X": old.index("X"), "Y": old.index("Y")}
        source = {
            "tokens": old, "head": {"start": spans["X"], "end": spans["X"] + 1},
            "tail": {"start": spans["Y"], "end": spans["Y"] + 2}, "label": "a",
        }  # fmt: skip
        made = SENTENCE.rewritten(source, " ".join(new), "b", "stage")
        if new == old:
            assert made["status"]["reason"] == "repeats the source's sentence"
        else:
            check_kept(source, apply_edits(source, made["edits"]) | {"edits": made["edits"]})
            assert apply_edits(source, made["edits"])["tokens"] == new


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("There is a chest .", "has the head 'key' 0 times in its sentence, not once"),
        ("The key is in a chest of the chest .", "has the tail 'chest' 2 times in its sentence, not once"),
        ("A chest has the key .", "has the two entities in the other order"),
        ("the KEY is in a chest", "repeats the source's sentence"),
        ("", "the new sentence is empty"),
        ("key \x07 chest", "the new sentence holds the control character U+0007 at position 4"),
    ],
)
def test_a_sentence_that_is_no_row_is_rejected(said: str, reason: str) -> None:
    made = SENTENCE.rewritten(row("The [*key] is in a [chest] .", "a"), said, "b", "stage")
    assert made["status"] == {"accepted": False, "stage": "stage", "reason": reason}
    assert made["label"] == "b"


def test_entities_that_share_words_are_told() -> None:
    source = {**row("The [*key] is in a [chest] .", "a"), "tail": {"start": 1, "end": 4}}
    made = SENTENCE.rewritten(source, "key is in", "b", "stage")
    assert made["status"]["reason"] == "one entity lies inside the other"


def test_tokens_are_cut_as_in_corpora() -> None:
    assert rewriting.split("He can't say \"U.S.\" dogs' names...", ["U.S."])[:5] == ["He", "ca", "n't", "say", '"']
    assert rewriting.split("don't", ["don't"]) == ["don't"]
    assert rewriting.split("(don't)", ["don't"]) == ["(", "don't", ")"]
    assert rewriting.split("... -- $5, a-b", []) == ["...", "--", "$", "5", ",", "a-b"]


# A row in the Penn Treebank's spelling, and one with brackets of its own.
TREEBANK = "He `` moved '' the [*key -LRB- old -RRB-] into a [chest] -LRB- 5 -RRB- ."


@pytest.mark.parametrize(
    ("said", "made"),
    [
        ('He "put" the key (old) into a chest (5).', "He `` put '' the key -LRB- old -RRB- into a chest -LRB- 5 -RRB- ."),
        ("He “put” the key (old) into a chest [5].", "He `` put '' the key -LRB- old -RRB- into a chest -LSB- 5 -RSB- ."),
        ('"Put" the "key (old)" into a chest', "`` Put '' the `` key -LRB- old -RRB- '' into a chest"),
        ("the key -LRB- old -RRB- into a `` chest ''", "the key -LRB- old -RRB- into a `` chest ''"),
    ],
)
def test_brackets_and_quotes_come_back_as_the_row_has_them(said: str, made: str) -> None:
    source = row(TREEBANK, "a")
    assert " ".join(rewriting.plain(source["tokens"])) == 'He " moved " the key ( old ) into a chest ( 5 ) .'
    found = SENTENCE.rewritten(source, said, "b", "stage")
    assert (found["status"], found["text"]) == (None, made)
    check_kept(source, apply_edits(source, found["edits"]) | {"edits": found["edits"]})


def test_marks_that_the_row_has_as_people_write_them_stay() -> None:
    source = row("A 5 '' [*key] ( \" big \" ) into a [chest]", "a")
    found = SENTENCE.rewritten(source, 'The 5 " key ( " big " ) into a [chest]', "b", "stage")
    assert found["text"] == 'The 5 " key ( " big " ) into a [ chest ]'
    inches = SENTENCE.rewritten(row("A 5 '' [*key] into a [chest]", "a"), 'The 5 " key into a chest', "b", "stage")
    assert [(edit["before"], edit["after"]) for edit in inches["edits"]] == [("A", "The")]


# --- words in their place


@wordnet
def test_neither_entities_nor_halves_of_contractions_are_edited() -> None:
    found: dict[int, set[str]] = {}
    sources = list(rows())
    for i, source in enumerate(sources):
        text, kept = SENTENCE.text(source), SENTENCE.protected(source)
        for seed in range(40):
            for edit in synonym_edits(text, random.Random(seed), share=1.0, protected=kept):
                found.setdefault(i, set()).add(edit["before"])
            spans = masked_spans(text, random.Random(seed), share=1.0, protected=kept)
            assert not any(place in kept for span in spans for place in range(*span))
    assert found[0] == {"large", "quickly", "moved", "old", "metal", "near", "house"}
    assert "director" not in found[1]
    assert "plays" not in found[1]
    assert found[3] == {"finish", "books"}


@pytest.fixture(params=["synonym", "masked_lm"])
def keeping(request: pytest.FixtureRequest, tiny_model: Callable[[str], str], no_request_cache: None) -> System:
    if not installed("wordnet"):
        pytest.skip(f"WordNet is not installed: {offline.INSTALL}")
    return Synonym(task="relation") if request.param == "synonym" else MaskedLM(task="relation", model=Model(tiny_model("mlm")))


def test_each_row_once_more_with_its_relation(keeping: System) -> None:
    ds = keeping(rows())
    made = hfcf.expand(ds)
    assert len(made) == 5
    assert made["label"] == [label for _, label in SENTENCES]
    assert made["id"] == [f"row-{i}:{keeping.name}:relation" for i in range(5)]
    for source, row in zip(ds, made, strict=True):
        check_kept(source, row)
    # 30 % of the first one's thirteen words; a full stop is none.
    assert len(made[0]["edits"]) == 4


def test_rows_that_leave_nothing_to_edit_are_rejected(keeping: System) -> None:
    ds = keeping(rows(("[*Old storms] or [big floods]", "Other"), ("The [*x] is the [y] of 2 Romes", "Other"), SENTENCES[0]))
    assert [row["status"]["accepted"] for row in ds] == [False, False, True]
    assert "no word outside the entities" in ds[0]["status"]["reason"]
    assert ds[0]["candidates"] == []


def test_nested_entities_are_no_trouble_for_words_outside(keeping: System) -> None:
    source = row("the old [*tall] trees and [houses] burned quickly", "a")
    source |= {"head": {"start": 1, "end": 6, "type": None}, "tail": {"start": 3, "end": 4, "type": None}}
    ds = Dataset.from_list([source], features=get_task("relation").features)
    check_kept(source, hfcf.expand(keeping(ds))[0])


@wordnet
def test_the_share_is_of_all_words() -> None:
    # Fifteen words; of them twelve stand outside the entities, and seven can be replaced.
    source = row("Many [*eggs] , large and small , were quickly moved into old metal [buckets] near the house .", "a")
    for share, number in ((0.0, 1), (0.2, 3), (0.3, 5)):
        stage = Synonym(task="relation", share=share).rewrite_synonym
        assert len(stage.row(source)["candidates"][0]["edits"]) == number


def real_rows(folder: Path) -> Dataset:
    """The first forty of the 1 % sample of SemEval, as its authors' tokens have them."""
    found = json.loads((folder / "ccg_semeval" / "semeval" / "0.01" / "train-0.01.json").read_text(encoding="utf-8"))[:40]
    made = [
        {
            "id": row["id"], "tokens": row["token"], "head": {"start": row["subj_start"], "end": row["subj_end"] + 1, "type": None},
            "tail": {"start": row["obj_start"], "end": row["obj_end"] + 1, "type": None}, "label": row["relation"],
            "group_id": row["id"], "corpus": "ccg_semeval", "split": "train",
        }
        for row in found
    ]  # fmt: skip
    return Dataset.from_list(made, features=get_task("relation").features)


@wordnet
def test_real_sentences_all_come_out(data: Path) -> None:
    ds = real_rows(data)
    for system in (Synonym(), MaskedLM.preset("offline")):
        made = hfcf.expand(system(ds))
        assert made["source_id"] == ds["id"]
        assert made["label"] == ds["label"]
        assert "Other" in set(made["label"])
        for source, row in zip(ds, made, strict=True):
            check_kept(source, row)


# --- there and back


def translator(**settings: Any) -> BackTranslation:
    models = {"forward": Model("there"), "backward": Model("back")}
    return BackTranslation.preset("paper", task="relation", **models, **settings)


CHEST = ("The [*key] is moved into a [chest] .", "Entity-Destination(e1,e2)")

FATES: dict[str, tuple[Any, str | None]] = {
    "good": ([answer("A key was put in the chest.")], None),
    "lost": ([answer("A button was put in the chest.")], "has the head 'key' 0 times in its sentence, not once"),
    "twice": ([answer("A key, a key in the chest.")], "has the head 'key' 2 times in its sentence, not once"),
    "swapped": ([answer("The chest was given a key.")], "has the two entities in the other order"),
    "repeated": ([answer("The key is moved into a chest.")], "repeats the source's sentence"),
    "empty": ([answer(" ")], "the new sentence is empty"),
}


@pytest.mark.parametrize("fate", FATES)
def test_back_translation_keeps_both_entities_or_is_rejected(fate: str, monkeypatch: pytest.MonkeyPatch) -> None:
    back, reason = FATES[fate]
    asked = script_models(monkeypatch, there=lambda text: [answer("钥匙")], back=lambda text: back)
    system = translator()
    done = system(rows(CHEST))
    assert asked == [("there", ">>cmn_Hans<< The key is moved into a chest ."), ("back", "钥匙")]
    status = done[0]["status"]
    if reason is not None:
        assert (status["accepted"], status["stage"]) == (False, "rewrite_back_translation")
        assert reason in status["reason"]
        return
    made = hfcf.expand(done)[0]
    assert " ".join(made["tokens"]) == "A key was put in the chest ."
    assert made["label"] == CHEST[1]
    assert [(edit["before"], edit["after"]) for edit in made["edits"]] == [("The", "A"), ("is moved into a", "was put in the")]
    assert made["scores"] == [{"name": "log-probability", "value": -0.25}]
    check_kept(done[0], made)


def test_translators_read_brackets_and_quotes_as_people_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = script_models(
        monkeypatch, there=lambda text: [answer("x")], back=lambda text: [answer('He "put" the key (old) into a chest (5).')]
    )
    done = translator(forward_prompt="{}")(rows((TREEBANK, "a")))
    assert asked[0] == ("there", 'He " moved " the key ( old ) into a chest ( 5 ) .')
    made = hfcf.expand(done)[0]
    assert [(edit["before"], edit["after"]) for edit in made["edits"]] == [("moved", "put")]
    check_kept(done[0], made)


def test_a_sentence_without_a_translation_shifts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    there = iter([[answer("eins")], None, [], [answer("drei")]])
    script_models(monkeypatch, there=lambda text: next(there), back=lambda text: [answer(f"A key ( {text} ) in the chest")])
    done = translator(forward_prompt="{}")(rows(*[CHEST] * 4))
    assert [row["status"]["accepted"] for row in done] == [True, False, False, True]
    assert "the sentence is longer than the model reads" in done[1]["status"]["reason"]
    assert done[2]["status"]["reason"] == "the translation into the other language is empty"
    assert [row["tokens"][3] for row in hfcf.expand(done)] == ["eins", "drei"]


@pytest.mark.usefixtures("no_request_cache")
def test_real_translators_run(tiny_model: Callable[[str], str]) -> None:
    system = BackTranslation(
        task="relation", forward=Model(tiny_model("bart")), backward=Model(tiny_model("t5")), num_beams=2, max_new_tokens=8,
    )  # fmt: skip
    done = system(rows())
    assert all(row["status"]["accepted"] is bool(row["counterfactuals"]) for row in done)
    assert all(row["status"]["reason"] for row in done if not row["status"]["accepted"])


# --- a prompt


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    with starter(monkeypatch) as begin:
        yield begin


GOOD = {"old": "moved into", "relation": "entity-origin", "new": "taken from"}


def language_model() -> LLM:
    return LLM.preset("paper", task="relation", model="m")


def told(**changes: Any) -> Reply:
    return say(json.dumps({**GOOD, **changes}))


def test_the_model_chooses_a_relation_and_writes_its_sentence(start: Start) -> None:
    server = start(lambda n, asked: told())
    done = language_model()(rows(CHEST, (CHEST[0], "Other"), (CHEST[0], "PHYS")))
    made = hfcf.expand(done)
    assert made["label"] == ["Entity-Origin(e1,e2)"]
    assert " ".join(made["tokens"][0]) == "The key is taken from a chest ."
    assert made["id"] == ["row-0:llm:relation"]
    assert [(edit["before"], edit["after"]) for edit in made["edits"][0]] == [("moved into", "taken from")]
    check_kept(done[0], made[0])
    assert [row["status"]["reason"] for row in done][1:] == [
        "the relation Other has no counterfactual",
        "the relation 'PHYS' is not in the setting `relations`: name the corpus's there",
    ]
    assert len(server.asked) == 1
    assert "Candidate relations: message-topic, topic-message, " in server.asked[0]["messages"][0]["content"]
    assert server.asked[0]["messages"][-1]["content"].endswith("Relation: entity-destination")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (told(relation="entity-destination"), "the language model: 3 attempts and no valid answer"),
        (told(old="put"), "the language model: 3 attempts and no valid answer"),
        (told(old="The key is moved"), "the language model: 3 attempts and no valid answer"),
        (told(new="moved  INTO"), "changes nothing"),
        (told(new=" "), "puts nothing in"),
        (told(new="taken with a key from"), "has the head 'key' 2 times"),
        (told(new="moved to the"), "has two articles in a row: the a"),
        (told(relation="no-such"), "the language model: 3 attempts and no valid answer"),
        (say("No."), "the language model: 3 attempts and no valid answer"),
    ],
)
def test_answers_of_no_use_reject_their_row_alone(start: Start, reply: Reply, reason: str) -> None:
    def behave(_: int, asked: dict[str, Any]) -> Reply:
        return told() if "Sentence: The old key" in asked["messages"][-1]["content"] else reply

    start(behave)
    old = CHEST[0].replace("[*key]", "old [*key]")
    done = language_model()(rows(CHEST, (old, CHEST[1])))
    assert (done[0]["status"]["accepted"], done[0]["status"]["stage"]) == (False, "rewrite_llm")
    assert reason in done[0]["status"]["reason"]
    assert done[1]["status"]["accepted"] is True


def test_the_model_reads_brackets_and_quotes_as_people_write_them(start: Start) -> None:
    server = start(lambda n, asked: told(old="into", new="from ("))
    done = language_model()(rows((TREEBANK, CHEST[1])))
    text = server.asked[0]["messages"][-1]["content"]
    assert 'Sentence: He " moved " the key ( old ) into a chest ( 5 ) .' in text
    assert "First entity: key ( old )\n" in text
    assert "-LRB-" not in text
    made = hfcf.expand(done)[0]
    assert [(edit["before"], edit["after"]) for edit in made["edits"]] == [("into", "from -LRB-")]
    check_kept(done[0], made)


def test_relations_of_another_corpus(start: Start) -> None:
    server = start(lambda n, asked: told(relation="part-whole"))
    system = make_system("llm", settings={"model": "m", "relations": ["PHYS", "PART-WHOLE"]}, task="relation")
    made = hfcf.expand(system(rows((CHEST[0], "PHYS"))))
    assert made["label"] == ["PART-WHOLE"]
    assert "Candidate relations: phys, part-whole\n" in server.asked[0]["messages"][0]["content"]


def test_settings_of_the_prompted_system() -> None:
    assert set(SEMEVAL) == set(DIRECTED), "the paper's order, the corpus's labels"
    assert len(SEMEVAL) == len(set(map(roles, SEMEVAL))) == 18
    assert {roles(label) for label in SEMEVAL} >= {"agency-instrument", "effect-cause", "content-container"}
    assert LLM.flips
    for cls in (partial(LLM, task="relation"), partial(RewriteLlm, task="relation")):
        for relations in (("a",), ("a", "A"), ("Cause-Effect(e2,e1)", "Effect-Cause(e1,e2)")):
            with pytest.raises(ValueError, match="relations"):
                cls(model="m", relations=relations)
        with pytest.raises(ValueError, match="worked examples"):
            cls(model="m", shots=4)


def test_presets_differ_by_task() -> None:
    for name in ("synonym", "masked_lm", "back_translation", "llm"):
        cls = system_class(name)
        system = cls.preset("paper", task="relation")
        assert (system.name, system.task) == (name, "relation")
        assert [stage.name for stage in system.stages] == list(cls.parts) == [f"rewrite_{name}", "judge_candidates"]
        json.dumps(system.settings)
        assert cls.flips is (name == "llm")
        assert system.judge_candidates.max_length == 128
        assert cls.preset("paper").judge_candidates.max_length == 130
    chinese = BackTranslation.preset("paper", task="relation")
    assert (chinese.forward.name, chinese.forward_prompt) == ("Helsinki-NLP/opus-mt-en-zh", ">>cmn_Hans<< {}")
    assert BackTranslation.preset("paper", task="relation", forward="mine").forward.name == "mine"
    asked = LLM.preset("paper", task="relation")
    assert (asked.model.name, asked.max_tokens) == ("llm:gpt-3.5-turbo", 512)


def test_the_rows_of_a_recipe_say_which_preset() -> None:
    assert make_system("back_translation", task="relation") == BackTranslation.preset("paper", task="relation")
    assert make_system("back_translation", task="verification") == BackTranslation.preset("paper")
    assert make_system("back_translation", settings={"task": "relation"}) == BackTranslation.preset("paper", task="relation")


@wordnet
def test_draws_are_those_of_the_stored_comparisons() -> None:
    source = row(*SENTENCES[0])
    stage = Synonym(task="relation").rewrite_synonym
    text = SENTENCE.text(source)
    made = synonym_edits(text, random.Random("13:rewrite_relation_synonym:row-0"), protected=SENTENCE.protected(source))
    assert stage.row(source)["candidates"][0]["edits"] == rewriting.token_edits(source["tokens"], made)
