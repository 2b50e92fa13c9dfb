"""Controlled editing: which hypothesis is taken, what becomes of the sentence, and how the editor comes to be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from offline_models import installed
from tiny_relation import row as sentence
from transformers import AutoTokenizer

from hfcf.core.artifacts import save_artifact
from hfcf.core.model import Model
from hfcf.core.stage import StageError
from hfcf.core.task import apply_edits, revert_edits
from hfcf.engines.continuation import Continuation
from hfcf.engines.likelihood import Likelihood
from hfcf.systems.ccg import editor as editors
from hfcf.systems.ccg.edit_relation import EditRelation
from hfcf.systems.ccg.terms import term
from hfcf.tasks.relation import entities
from hfcf.training import model_cache
from hfcf.training.trainer import Hyperparameters

pytestmark = pytest.mark.skipif(not installed("wordnet"), reason="the offline WordNet is not installed")

_TERMS = {
    "to": {"moved into": 3, "into": 1},
    "from": {"taken from": 2, "from": 5, "the": 9},
    "in": {"inside": 2, "into": 1},
    "of": {"made of": 1, "from": 1},
    "by": {"by": 4},
    "for": {"inside": 1},
}
TERMS = {relation: {"forward": terms} for relation, terms in _TERMS.items()}


def row(text: str = "the [eggs] were moved slowly into {old buckets} .", *places: int, **columns: Any) -> dict[str, Any]:
    made = sentence(text, "to", status=None, candidates=None, new_relations=["from", "in", "of", "by", "for"])
    return {**made, "causal_terms": list(places or (3, 5)), **columns}


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """`says("a", "b")`: the editor's hypotheses to every prompt are these; what it returns is a list of the prompts."""
    asked: list[str] = []

    def speak(*texts: str) -> list[str]:
        answer = [{"text": text, "score": -float(n), "finished": True} for n, text in enumerate(texts)]

        def run(self: Continuation, requests: list[str]) -> list[Any]:
            asked.extend(requests)
            return [answer for _ in requests]

        monkeypatch.setattr(Continuation, "run", run)
        return asked

    return speak


@pytest.fixture
def stage(tiny_model: Callable[[str], str]) -> EditRelation:
    return EditRelation(editor=Model(tiny_model("t5"))).with_fitted(save_artifact({"terms": TERMS, "editor": None}))


def test_the_first_hypothesis_that_is_a_term_of_the_new_relation_replaces_the_old_terms(says: Any, stage: EditRelation) -> None:
    asked = says("xyzzy", "The", "moved into", "was takes from the", "taken from")
    source = row()
    made = stage(source)
    (candidate,) = made["candidates"]
    assert candidate["text"] == "the eggs were was takes from the slowly old buckets ."
    assert (candidate["label"], candidate["status"], candidate["scores"]) == ("from", None, [{"name": "editor", "value": -3.0}])
    edited = apply_edits(source, candidate["edits"])
    assert entities(edited) == entities(source) == ("eggs", "old buckets")
    assert revert_edits(edited, candidate["edits"]) == {name: source[name] for name in ("tokens", "head", "tail")}
    assert asked == ["eggs (from) <mask> old buckets"]
    assert made["status"] is None


@pytest.mark.parametrize(
    ("texts", "term", "reason"),
    [
        (["xyzzy", "thing"], "xyzzy", "the editor wrote no causal term of the new relation"),
        # "the" is a term of the relation in the table, and says nothing.
        (["the", "was"], "the", "the editor wrote no causal term of the new relation"),
        # "from" is one of "of" too, which was retrieved as the third.
        (["thing", "from"], "from", "the term is one of another relation of the entities too"),
    ],
)
def test_without_such_a_hypothesis_the_row_is_rejected(
    texts: list[str], term: str, reason: str, says: Any, stage: EditRelation
) -> None:
    says(*texts)
    made = stage(row())
    (candidate,) = made["candidates"]
    assert candidate["status"] == {"accepted": False, "stage": "edit_relation", "reason": reason}
    assert candidate["text"] == f"the eggs were {term} slowly old buckets ."
    assert made["status"] == {
        "accepted": False, "stage": "edit_relation", "reason": f"no candidate is left of 1: {reason} (1)"
    }  # fmt: skip


def test_a_term_of_the_old_relation_is_none(says: Any, stage: EditRelation) -> None:
    says("into")
    made = stage(row(new_relations=["in"]))  # both "in" and "to" have it
    assert "another relation" in made["candidates"][0]["status"]["reason"]


def test_only_the_first_four_retrieved_relations_are_told_from(says: Any, stage: EditRelation) -> None:
    says("inside")
    assert stage(row(new_relations=["in", "from", "of", "by", "for"]))["candidates"][0]["status"] is None
    assert stage(row(new_relations=["in", "from", "of", "for", "by"]))["candidates"][0]["status"]["accepted"] is False


def test_a_term_that_the_row_has_already_is_none(says: Any, stage: EditRelation) -> None:
    says("by")
    made = stage(row("[eggs] by {hens}", 1, label="unheard", new_relations=["by"]))
    assert made["status"]["accepted"] is False


def test_each_of_the_first_k_relations_has_a_candidate(says: Any, stage: EditRelation) -> None:
    says("inside", "made of")
    made = replace(stage, top_k=3).with_fitted(stage.fitted)(row(new_relations=["from", "in", "of"]))
    assert [new["label"] for new in made["candidates"]] == ["from", "in", "of"]
    assert [new["status"] is None for new in made["candidates"]] == [False, True, True]
    assert made["status"] is None


def test_nothing_written_is_told(says: Any, stage: EditRelation, monkeypatch: pytest.MonkeyPatch) -> None:
    says()
    assert stage(row())["candidates"][0]["status"]["reason"] == "the editor wrote no term"
    monkeypatch.setattr(Continuation, "run", lambda self, requests: [None for _ in requests])
    assert stage(row())["candidates"][0]["status"]["reason"] == "the entities are longer than the editor reads"


def test_the_answer_ends_at_the_second_entity(says: Any, stage: EditRelation, tiny_model: Callable[[str], str]) -> None:
    asked = says("old buckets from", "taken from old buckets . sentence3 : eggs")
    gpt = EditRelation(editor=Model(tiny_model("gpt2"))).with_fitted(stage.fitted)
    assert gpt(row())["candidates"][0]["text"] == "the eggs were taken from slowly old buckets ."
    assert asked == ["sentence1: eggs (from) <mask> old buckets sentence2: eggs (from)"]


def test_a_repeated_term_keeps_its_best_place(says: Any, stage: EditRelation) -> None:
    says("taken from", "from", "taken  from")
    (candidate,) = stage(row(new_relations=["from"]))["candidates"]
    assert candidate["text"] == "the eggs were taken from slowly old buckets ."
    assert candidate["scores"] == [{"name": "editor", "value": 0.0}]


def test_a_term_with_a_word_twice_in_a_row_is_none(says: Any, stage: EditRelation) -> None:
    stage = stage.with_fitted(save_artifact({"terms": {"of": {"forward": {"of of": 9, "of": 1}}}, "editor": None}))
    says("of of", "of")
    assert stage(row(new_relations=["of"]))["candidates"][0]["text"] == "the eggs were of slowly old buckets ."
    says("of of", "Of of")
    assert stage(row(new_relations=["of"]))["candidates"][0]["status"]["reason"] == "the editor wrote no term"


def test_the_order_of_the_entities_is_told_from_the_other(says: Any, stage: EditRelation) -> None:
    asked = says("from", "away from")
    both = {"PART-WHOLE": {"forward": {"away from": 1}, "backward": {"from": 1}}}
    stage = stage.with_fitted(save_artifact({"terms": both, "editor": None}))
    head = row("[eggs] into {buckets}", 1, new_relations=["PART-WHOLE"])
    tail = row("{eggs} into [buckets]", 1, new_relations=["PART-WHOLE"])
    assert [stage(source)["candidates"][0]["text"] for source in (head, tail)] == [
        "eggs away from buckets",
        "eggs from buckets",
    ]
    assert asked == ["eggs (part-whole) <mask> buckets"] * 2
    plain = EditRelation(use_editor=False).with_fitted(stage.fitted)
    assert [plain(source)["candidates"][0]["text"] for source in (head, tail)] == [
        "eggs away from buckets",
        "eggs from buckets",
    ]


@pytest.mark.parametrize("relation", ["Cause-Effect(e1,e2)", "Cause-Effect(e2,e1)"])
def test_roles_stand_in_the_order_of_the_sentence(relation: str, stage: EditRelation, tiny_model: Callable[[str], str]) -> None:
    head, tail = row("[storms] into {floods}", 1), row("{storms} into [floods]", 1)
    direct = "cause-effect" if relation.endswith("(e1,e2)") else "effect-cause"
    turned = "-".join(reversed(direct.split("-")))
    assert stage.editor is not None
    assert editors.prompt_text(head, relation, stage.editor) == f"storms ({direct}) <mask> floods"
    assert editors.prompt_text(tail, relation, stage.editor) == f"storms ({turned}) <mask> floods"
    gpt = Model(tiny_model("gpt2"))
    assert editors.target_text(tail, "into", gpt) == editors.target_text(head, "into", gpt) == "into floods"
    assert editors.cut_term("from floods.", tail) == "from"


def test_a_head_behind_the_tail_stays_there(says: Any, stage: EditRelation) -> None:
    says("taken from")
    terms = {"from": {"backward": {"take from": 1}}}
    stage = stage.with_fitted(save_artifact({"terms": terms, "editor": None}))
    made = stage(row("{buckets} into which [eggs] were moved", 1, 2, 5))
    edited = apply_edits(row("{buckets} into which [eggs] were moved"), made["candidates"][0]["edits"])
    assert edited["tokens"] == ["buckets", "taken", "from", "eggs", "were"]
    assert entities(edited) == ("eggs", "buckets")


def test_without_editor_the_commonest_term_is_taken(says: Any, stage: EditRelation) -> None:
    asked = says("never")
    plain = EditRelation(use_editor=False).with_fitted(stage.fitted)
    assert plain(row(new_relations=["of"]))["candidates"][0]["text"] == "the eggs were from slowly old buckets ."
    assert plain(row(new_relations=["unheard"]))["candidates"][0]["status"]["reason"] == "the new relation has no causal term"
    same = plain(row("[eggs] by {hens}", 1, new_relations=["by"]))
    assert same["candidates"][0]["status"]["reason"] == "the term stays the same"
    assert asked == []


def test_rows_without_terms_or_relations_are_rejected(says: Any, stage: EditRelation) -> None:
    says("taken from")
    rows = [row(), row(causal_terms=[]), row(new_relations=[]), row()]
    made = stage({name: [row[name] for row in rows] for name in rows[0]})
    assert [status and status["reason"] for status in made["status"]] == [
        None, "there are no causal terms", "there is no new relation", None
    ]  # fmt: skip
    assert [len(found) for found in made["candidates"]] == [1, 0, 0, 1]


def test_what_is_missing_is_named(stage: EditRelation) -> None:
    with pytest.raises(StageError, match=r"not fitted.*system = system\.fit"):
        EditRelation()(row())
    with pytest.raises(StageError, match=r"'causal_terms'.*null.*ccg\.identify_causal_terms"):
        stage(row(causal_terms=None))
    with pytest.raises(StageError, match=r"'new_relations'.*null.*ccg\.expand_relation"):
        stage(row(new_relations=None))
    with pytest.raises(StageError, match=r"none.*fitted"):
        EditRelation().with_fitted(stage.fitted)(row())
    with pytest.raises(FileNotFoundError, match=r"ccg\.fit"):
        EditRelation().with_fitted("0" * 64)(row())
    for settings, facts in (({"num_beams": 5}, r"num_candidates.*5.*10"), ({"top_k": 0}, r"top_k.*1.*0")):
        with pytest.raises(ValueError, match=facts):
            EditRelation(**settings)  # type: ignore[arg-type]


# --- training

ROWS = [
    sentence("[film] was directed by {he}", "to", causal_terms=[2]),
    sentence("[band] was born in {city}", "from", causal_terms=[2]),
    sentence("[city] was released in {band}", "of", causal_terms=[2]),
]


def trained(kind: str, rows: list[dict[str, Any]], tiny_model: Callable[[str], str], tmp_path: Path) -> Model:
    source = Path(tiny_model(kind))
    if kind == "gpt2":  # its tokenizer ends every text, which GPT-2's does not
        from tokenizers.processors import TemplateProcessing
        from transformers import AutoModelForCausalLM

        tokenizer = AutoTokenizer.from_pretrained(source)
        tokenizer.backend_tokenizer.post_processor = TemplateProcessing("$A", special_tokens=[])
        AutoModelForCausalLM.from_pretrained(source).save_pretrained(tmp_path / "gpt2")
        tokenizer.save_pretrained(tmp_path / "gpt2")
        source = tmp_path / "gpt2"
    hp = Hyperparameters(model=Model(str(source)), max_length=64, batch_size=3, learning_rate=1e-2, epochs=60)
    return model_cache.stored_model(editors.train_editor(rows, hp))


# So small a decoder learns to end a text after the second entity, but not to tell three relations apart.
@pytest.mark.parametrize(("kind", "rows"), [("t5", ROWS), ("gpt2", ROWS[2:])])
def test_a_trained_editor_writes_what_the_relation_had(
    kind: str, rows: list[dict[str, Any]], tiny_model: Callable[[str], str], tmp_path: Path
) -> None:
    model = trained(kind, rows, tiny_model, tmp_path)
    engine = Continuation(model=model, num_beams=2, max_new_tokens=6)
    answers = engine.run([editors.prompt_text(row, row["label"], model) for row in rows])
    told = [editors.cut_term(answer[0]["text"], row) for answer, row in zip(answers, rows, strict=True)]
    assert told == [term(row) for row in rows]
    assert (kind == "gpt2") == answers[0][0]["text"].endswith(entities(rows[0])[1])


def test_equal_rows_are_trained_on_once(tiny_model: Callable[[str], str], cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def train(pairs: Any, hp: Hyperparameters, out: Path, **_: Any) -> None:
        seen.append((list(pairs["target"]), hp.seed))
        out.mkdir(parents=True)

    monkeypatch.setattr(editors, "train_texts", train)
    hp = Hyperparameters(model=Model(tiny_model("t5")))
    first = editors.train_editor(ROWS, hp)
    assert editors.train_editor(ROWS, hp) == first
    assert len(seen) == 1
    others = [editors.train_editor(ROWS[:2], hp), editors.train_editor(ROWS, Hyperparameters(model=hp.model, seed=14))]
    assert len({first, *others}) == 3
    assert seen[1:] == [(["directed", "born"], 13), (["directed", "born", "released"], 14)]
    assert {path.name for path in (cache / "fitted").iterdir()} == {first, *others}


def test_pairs_that_are_too_long_are_left_out_and_counted(
    tiny_model: Callable[[str], str], cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[list[str]] = []

    def train(pairs: Any, hp: Hyperparameters, out: Path, **_: Any) -> None:
        seen.append(list(pairs["target"]))
        out.mkdir(parents=True)

    monkeypatch.setattr(editors, "train_texts", train)
    long = sentence(f"[film] {'made in ' * 20}{{city}}", "to", causal_terms=list(range(1, 41)))
    wide = sentence(f"[{'old ' * 60}film] in {{city}}", "to", causal_terms=[61])
    for kind in ("t5", "gpt2"):
        hp = Hyperparameters(model=Model(tiny_model(kind)), max_length=48)
        caplog.clear()
        editors.train_editor([long, *ROWS, wide], hp)
        assert seen.pop() == [editors.target_text(row, term(row), hp.model) for row in ROWS]
        assert "2 of the editor's 5 training pairs are left out" in caplog.text
        with pytest.raises(ValueError, match=r"2 pairs.*editor_training\.max_length.*max_new_tokens"):
            editors.train_editor([long, wide], hp)
    assert seen == []


def test_a_training_that_fails_leaves_nothing(
    tiny_model: Callable[[str], str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def train(pairs: Any, hp: Hyperparameters, out: Path, **_: Any) -> None:
        out.mkdir(parents=True)
        raise RuntimeError("out of memory")

    monkeypatch.setattr(editors, "train_texts", train)
    with pytest.raises(RuntimeError, match="out of memory"):
        editors.train_editor(ROWS, Hyperparameters(model=Model(tiny_model("t5"))))
    assert list((cache / "fitted").iterdir()) == []
    with pytest.raises(FileNotFoundError, match="fit"):
        model_cache.stored_model("0" * 64)


def test_a_closed_editor_ranks_the_known_terms(tiny_model: Callable[[str], str], no_request_cache: None) -> None:
    model = Model(tiny_model("t5"))
    stage = EditRelation(editor=model, closed=True, top_k=5).with_fitted(save_artifact({"terms": TERMS, "editor": None}))
    made = stage(row())["candidates"]
    # Of "from" two terms are left, as "the" is none; "into" is the old relation's, "inside" and "from" are others' too.
    scores = Likelihood(model=model).run([[editors.prompt_text(row(), "from", model), text] for text in ("taken from", "from")])
    assert made[0]["label"] == "from"
    told = {row["label"]: (row["status"] or {}).get("reason") for row in made}
    assert told["from"] is None
    assert made[0]["scores"] == [{"name": "editor", "value": round(max(scores[0], -1e9), 4)}]
    assert "taken from" in made[0]["text"]
    assert told["by"] is None
    assert "by" in next(row["text"] for row in made if row["label"] == "by").split()
    assert told["for"] is not None


def test_a_closed_editor_says_why_there_is_no_term(tiny_model: Callable[[str], str], no_request_cache: None) -> None:
    stage = EditRelation(editor=Model(tiny_model("t5")), closed=True)
    stage = stage.with_fitted(save_artifact({"terms": TERMS, "editor": None}))
    for relation, reason in (("nowhere", "the new relation has no causal term"), ("for", "one of another relation")):
        found = stage(row(new_relations=[relation, "in"]))
        assert found["status"]["accepted"] is False
        assert reason in found["candidates"][0]["status"]["reason"]
