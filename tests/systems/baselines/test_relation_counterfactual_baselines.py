"""MICE, AutoCAD and CoCo: which words go, what comes in their place, and what the base model lets through."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny_relation
import torch
from datasets import Dataset, List
from offline_models import installed

import hfcf
from hfcf.core import schema
from hfcf.core.artifacts import save_artifact
from hfcf.core.model import Model
from hfcf.core.stage import Stage, StageError
from hfcf.core.system import System
from hfcf.core.task import apply_edits, get_task
from hfcf.engines.continuation import Continuation
from hfcf.engines.likelihood import Likelihood
from hfcf.engines.parser import Parser
from hfcf.engines.relation_classifier import RelationClassifier
from hfcf.systems.baselines import autocad
from hfcf.systems.baselines._shared.relation_editing import ProposeRelations, editor_terms, read_fitted
from hfcf.systems.baselines.autocad import AutoCAD, FillTerms, unlikelihood
from hfcf.systems.baselines.coco import CoCo, FindPaths, SubstituteTerms, semantic_edges, shortest_path, syntactic_edges
from hfcf.systems.baselines.mice import MICE, EditMinimally
from hfcf.systems.ccg.candidate_checks import CheckRelation
from hfcf.systems.ccg.gradients import WordGradients
from hfcf.systems.ccg.identify import IdentifyCausalTerms
from hfcf.systems.ccg.system import CCG
from hfcf.tasks.relation import candidate, entities, token_edits
from hfcf.training.model_cache import stored_model
from hfcf.training.trainer import Hyperparameters

pytestmark = pytest.mark.usefixtures("no_request_cache")
wordnet = pytest.mark.skipif(not installed("wordnet"), reason="the offline WordNet is not installed")

spacy = pytest.mark.skipif(not installed("spacy"), reason="the offline spaCy pipeline is not installed")

SPACY = Parser(backend="spacy", model=Model("offline:spacy"))
EGGS = "the [eggs] were moved slowly into {buckets} ."


def row(text: str = EGGS, label: str = "to", **columns: Any) -> dict[str, Any]:
    return tiny_relation.row(text, label, status=None, candidates=None, **columns)


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[str, list[str]]], list[str]]:
    """The editor writes these texts for each relation; returned is a list of the prompts it gets."""
    asked: list[str] = []

    def speak(texts: Mapping[str, list[str]]) -> list[str]:
        def run(self: Continuation, requests: list[str]) -> list[Any]:
            asked.extend(requests)
            found = [next(its for relation, its in texts.items() if f"({relation})" in prompt) for prompt in requests]
            return [[{"text": text, "score": -float(n), "finished": True} for n, text in enumerate(its)] for its in found]

        monkeypatch.setattr(Continuation, "run", run)
        return asked

    return speak


@pytest.fixture
def thinks(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """The base model gives a sentence the probabilities that `judge` has of its text; returned are the texts it reads."""
    read: list[str] = []

    def think(judge: Callable[[str], dict[str, float] | None]) -> list[str]:
        def run(self: RelationClassifier, requests: list[Any]) -> list[Any]:
            read.extend(" ".join(request[0]) for request in requests)
            return [judge(" ".join(request[0])) for request in requests]

        monkeypatch.setattr(RelationClassifier, "run", run)
        return read

    return think


@pytest.fixture
def weighs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients: the longer a word the higher."""

    def run(self: WordGradients, requests: list[Any]) -> list[Any]:
        assert all(label is None for *_, label in requests)  # MICE's are of the model's own prediction
        return [[len(token) / 10 for token in tokens] for tokens, *_ in requests]

    monkeypatch.setattr(WordGradients, "run", run)


# --- every other relation


def test_every_other_relation_is_tried_but_other() -> None:
    stage = ProposeRelations().with_fitted(save_artifact({"relations": ["from", "of", "to"]}))
    assert stage(row(new_relations=None))["new_relations"] == ["from", "of"]
    assert stage(row(label="Other", new_relations=None))["status"]["reason"] == "the relation is Other"
    alone = ProposeRelations().with_fitted(save_artifact({"relations": ["to"]}))
    assert alone(row(new_relations=None))["status"]["reason"] == "the training rows have no other relation"
    with pytest.raises(StageError, match="propose_relations"):
        ProposeRelations()(row(new_relations=None))


@pytest.mark.parametrize("system", [MICE, AutoCAD, CoCo])
def test_the_base_model_is_ccgs_indicator(system: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = []

    def train(rows: Dataset, hp: Hyperparameters, out: Path, **_: Any) -> None:
        trained.append(len(rows))
        out.mkdir()

    monkeypatch.setattr("hfcf.training.relation.train_relation", train)
    ds = Dataset.from_list([{**row(), "id": "1"}, {**row(f"{EGGS} Now .", label="Other"), "id": "2"}]).remove_columns(
        ["status", "candidates"]
    )
    hp = Hyperparameters(model=Model(str(Path(__file__).parent)))
    for folds, expected in ((1, [2]), (2, [2, 1, 1])):  # with folds, too, it is CCG's, and none is trained again
        indicator = CCG(classifier=hp, min_steps=7, folds=folds).identify_causal_terms.fit(ds).fitted
        assert indicator
        assert base_models(system(classifier=hp, min_steps=7, folds=folds), ds) == {indicator}
        assert base_models(system(classifier=hp, min_steps=7, folds=folds, indicator=Model("mine")), ds) == {None}
        assert trained == expected
    with pytest.raises(ValueError, match=r"folds .*0"):
        system(folds=0)


def base_models(system: System, ds: Dataset) -> set[str | None]:
    """The fitted files of the base model in the stages that ask it; None where it is given."""
    found: set[str | None] = set()
    for stage in system.stages:
        if isinstance(stage, IdentifyCausalTerms | CheckRelation):
            found.add(stage.fit(ds).fitted)
        elif isinstance(stage, EditMinimally):
            sha = replace(stage, editor=Model("mine")).fit(ds).fitted
            found.add(read_fitted(sha)["base"] if sha else None)
    return found


def test_cards_name_the_base_model_that_confirms_a_counterfactual() -> None:
    assert MICE().verifiers() == ("the base model that was trained on these rows", [])
    assert MICE(folds=2).verifiers() == ("the base model that was trained on the other folds of these rows", [])
    assert CoCo(indicator="mine").verifiers() == ("the base model, the indicator named above,", [Model("mine")])
    assert AutoCAD(consistency=False).verifiers() is CCG(indicator="mine").verifiers() is None
    assert CCG(judge_folds=3).verifiers() == ("indicators that had no part in making it", [])


@pytest.mark.parametrize("system", [MICE, AutoCAD, CoCo])
def test_what_the_offline_preset_gives_ccg_the_baselines_have_too(system: Any) -> None:
    ours, ccg = system.preset("offline"), CCG.preset("offline")
    for name in ("folds", "classifier", "min_steps", "editor_training", "closed"):
        assert getattr(ours, name, None) in (getattr(ccg, name), None)
    assert system.preset("paper").folds == CCG.preset("paper").folds == 1


class OfFolds:
    """Row "a" has the model "first", row "b" the model "second"."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fitted = [Model("first"), Model("second")], {"a": 0, "b": 1}
        monkeypatch.setattr("hfcf.systems.ccg.indicator._fitted", {"sha": fitted}.__getitem__)


@pytest.mark.parametrize("system", [MICE, AutoCAD, CoCo])
def test_the_filter_asks_the_base_model_that_has_not_seen_the_row(system: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    OfFolds(monkeypatch)
    asked: dict[str, list[str]] = {}

    def run(self: RelationClassifier, requests: list[Any]) -> list[Any]:
        asked[self.model.name] = [" ".join(tokens) for tokens, *_ in requests]
        return [{"of": 0.9, "to": 0.1} if self.model.name == "second" else {"of": 0.2, "to": 0.8} for _ in requests]

    monkeypatch.setattr(RelationClassifier, "run", run)
    rows = [{**row(), "id": name} for name in ("a", "b", "c")]
    for item in rows:
        item["candidates"] = [candidate(item, "of", token_edits(item["tokens"], [3], f"sunk-{item['id']}"))]
    check = system().check_relation.with_fitted("sha")
    a, b, c = (check(row) for row in rows)
    assert asked == {
        "first": ["the eggs were sunk-a slowly into buckets ."],
        "second": ["the eggs were sunk-b slowly into buckets ."],
    }
    assert a["candidates"][0]["status"]["reason"] == "the indicator says to"
    assert b["candidates"][0]["status"] is None
    assert c["status"]["reason"].startswith("no candidate is left of 1: no indicator was trained for this row")
    # Without the filter, or with another judge, it asks none; unfitted it does not let all pass.
    for settings in ({"consistency": False}, {"verifier": Model("mine")}):
        assert system(**settings).check_relation(rows[0])["candidates"][0]["status"] is None
    with pytest.raises(StageError, match="check_relation"):
        system().check_relation(rows[0])


def test_mice_searches_with_the_base_model_that_has_not_seen_the_row(
    says: Any, weighs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    OfFolds(monkeypatch)
    says({"of": ["dropped"]})
    asked: list[tuple[str, str]] = []

    def run(self: RelationClassifier, requests: list[Any]) -> list[Any]:
        asked.extend((self.model.name, " ".join(tokens)) for tokens, *_ in requests)
        return [{"of": 0.9, "to": 0.1} for _ in requests]

    monkeypatch.setattr(RelationClassifier, "run", run)
    stage = MICE(editor=Model("offline:t5"), num_beams=1, num_candidates=1).edit_minimally
    stage = stage.with_fitted(save_artifact({"base": "sha"}))
    for name in ("a", "b"):
        assert stage({**row(new_relations=["of"]), "id": name})["candidates"][0]["status"] is None
    assert asked == [(model, "the eggs were moved dropped into buckets .") for model in ("first", "second")]
    unseen = stage({**row(new_relations=["of"]), "id": "c"})
    assert unseen["status"]["reason"] == "there is no new relation that could be tried"


def test_nothing_is_learned_from_rows_of_the_relation_other() -> None:
    rows = [{**row(label=label), "causal_terms": [3], "term_places": ["VBN ROOT both"]} for label in ("to", "Other", "of")]
    made = [{key: value for key, value in row.items() if key != "candidates"} for row in rows]
    features = {**get_task("relation").features, "causal_terms": List(schema.INT), "term_places": List(schema.TEXT)}
    ds = Dataset.from_list([{name: row.get(name, "x") for name in features} for row in made], features=schema.Features(features))
    settings: dict[str, Any] = {"editor": Model("mine"), "closed": True}
    for system in (MICE(indicator=Model("i"), **settings), AutoCAD(indicator=Model("i"), **settings), CoCo(indicator=Model("i"))):
        assert learned(system.propose_relations.fit(ds))["relations"] == ["of", "to"]
        writing = system.stages[2]
        known = learned(writing.fit(ds))
        assert set(known.get("terms", known.get("instances"))) == {"of", "to"}
        with pytest.raises(StageError, match=rf"{writing.name}\.fit.*column 'causal_terms'.*map {system.name}\.\w+"):
            writing.fit(ds.remove_columns(["causal_terms"]))


def learned(stage: Stage) -> Mapping[str, Any]:
    return read_fitted(stage.fitted or "")


@wordnet
def test_terms_are_read_of_every_hypothesis_once(says: Any) -> None:
    asked = says({"of": ["sunk in", "sunk  in", "", "buckets", "laid, in buckets", "of of", "sunk in buckets"], "on": ["on"]})
    stage = FillTerms(editor=Model("offline:t5"))
    pairs = [(row(), "of"), (row(), "on"), (row(), "of")]
    assert editor_terms(stage, pairs)[0] == editor_terms(stage, pairs)[2] == [("sunk in", 0.0), ("laid , in", -4.0)]
    assert len(asked) == 4  # two prompts, two calls


@wordnet
@pytest.mark.parametrize("stage", [FillTerms, EditMinimally])
def test_a_closed_editor_ranks_the_terms_of_the_training_rows(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: Likelihood, requests: list[Any]) -> list[float | None]:
        return [{"lost in": -3.0, "sunk in": -1.0, "was sunk": None, "fell": -2.0}[text] for _, text in requests]

    monkeypatch.setattr(Likelihood, "run", run)
    terms = {"of": {"forward": {"lost in": 2, "sunk in": 1, "was sunk": 1, "fell": 1}, "backward": {"far": 1}}, "on": {}}
    fitted = save_artifact({"relations": ["of", "on", "to"], "terms": terms, "editor": None})
    given = {"indicator": Model("i")} if stage is EditMinimally else {}
    closed = stage(editor=Model("offline:t5"), closed=True, num_candidates=2, **given).with_fitted(fitted)
    assert editor_terms(closed, [(row(), "of"), (row(), "on")]) == [[("sunk in", -1.0), ("fell", -2.0)], []]
    with pytest.raises(StageError, match="not fitted"):
        closed.with_fitted(None).check_fitted()


@pytest.mark.parametrize("system", [MICE, AutoCAD, CoCo])
def test_the_base_model_is_no_endpoint(system: Any) -> None:
    with pytest.raises(ValueError, match="indicator='llm:m'"):
        system(indicator="llm:m")


@pytest.mark.parametrize("system", [MICE, AutoCAD])
def test_an_adapter_is_refused_at_once(system: Any) -> None:
    with pytest.raises(ValueError, match=r"editor_training: tune='lora'.*adapter"):
        system(editor_training=Hyperparameters(model=Model("mine"), tune="lora"))


# --- MICE


def test_the_fewest_words_that_flip_go(says: Any, thinks: Any, weighs: None) -> None:
    says({"of": ["dropped", "sunk", "lost"]})
    answers = {  # moved slowly into → at first "slowly" goes, then "moved", too
        "the eggs were moved dropped into buckets .": {"of": 0.3, "to": 0.7},
        "the eggs were moved sunk into buckets .": {"of": 0.6, "to": 0.4},
        "the eggs were moved lost into buckets .": {"of": 0.8, "to": 0.2},
    }
    read = thinks(lambda text: answers.get(text, {"of": 0.9, "to": 0.1}))
    stage = EditMinimally(indicator=Model("i"), editor=Model("offline:t5"), num_beams=3, num_candidates=3)
    found = stage(row(new_relations=["of"]))["candidates"]
    assert [new["text"] for new in found] == ["the eggs were moved lost into buckets ."]
    assert set(read) == set(answers)  # more words are not tried


def test_more_words_go_where_few_do_not_flip_and_the_filter_has_the_last_word(says: Any, thinks: Any, weighs: None) -> None:
    says({"of": ["dropped"], "on": ["slowly"]})
    thinks(lambda text: {"of": 0.9, "on": 0.0, "to": 0.1} if "moved" not in text else {"of": 0.2, "on": 0.0, "to": 0.8})
    system = MICE(indicator=Model("i"), editor=Model("offline:t5"), num_beams=1, num_candidates=1)
    source = row(new_relations=["of", "on"])
    stage = system.edit_minimally
    of, on = stage(source)["candidates"]
    assert of["text"] == "the eggs were dropped into buckets ."
    assert apply_edits(source, of["edits"])["tokens"] == of["text"].split()
    assert on["text"] == "the eggs were slowly into buckets ."  # "slowly" for "slowly" is no edit
    columns = {"group_id": "g", "corpus": "c", "split": "train", "counterfactuals": None}
    strange = system.check_relation({**source, **columns, "candidates": [{**on, "label": "by"}, of]})
    assert [(new["status"] or {}).get("reason") for new in strange["candidates"]] == ["the indicator does not know by", None]
    checked = system.check_relation({**source, **columns, "candidates": [of, on]})
    assert [(new["status"] or {}).get("reason") for new in checked["candidates"]] == [None, "the indicator says of"]
    judged = system.judge_candidates({**source, **columns, "candidates": checked["candidates"]})
    assert [made["label"] for made in judged["counterfactuals"]] == ["of"]


def test_shares_of_words_are_sets_that_grow() -> None:
    weights, allowed = [0.2, 0.9, 0.3, 0.4, 0.8, 0.1, 0.5], [1, 2, 3, 4, 5, 6]
    assert EditMinimally(share=1.0).masks(weights, allowed) == [[1, 4], [1, 4, 6], [1, 3, 4, 6], [1, 2, 3, 4, 5, 6]]
    assert EditMinimally().masks(weights, [3]) == [[3]]
    with pytest.raises(ValueError, match=r"share.*1"):
        EditMinimally(share=1.2)


def test_an_unread_sentence_and_a_silent_editor_lose_nothing(says: Any, thinks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    says({"of": []})
    thinks(lambda text: None)
    monkeypatch.setattr(WordGradients, "run", lambda self, asked: [None, *[[0.1] * len(request[0]) for request in asked[1:]]])
    stage = EditMinimally(indicator=Model("i"), editor=Model("offline:t5"))
    first, second = row(new_relations=["of"]), row(new_relations=["of"])
    found = stage({name: [first[name], second[name]] for name in first})
    assert [status["reason"] for status in found["status"]] == [
        "there is no new relation that could be tried",
        "no candidate is left of 1: the editor wrote no other term (1)",
    ]


# --- AutoCAD


def test_the_editors_first_other_term_is_taken(says: Any) -> None:
    says({"of": ["Moved into", "sunk by", "lost"], "on": ["moved into"]})
    stage = FillTerms(editor=Model("offline:t5"), num_beams=3, num_candidates=3)
    of, on = stage(row(causal_terms=[3, 5], new_relations=["of", "on"]))["candidates"]
    assert (of["text"], of["scores"]) == ("the eggs were sunk by slowly buckets .", [{"name": "editor", "value": -1.0}])
    assert on["status"]["reason"] == "the editor wrote no other term"


def test_unlikelihood_is_of_the_tokens_of_wrong_rows() -> None:
    logits = torch.tensor([[[2.0, 0.0, 1.0], [0.0, 1.0, 0.0]], [[1.0, 1.0, 0.0], [3.0, 0.0, 0.0]]], requires_grad=True)
    labels = torch.tensor([[0, 2], [1, 2]])  # 2 ends a text
    output = type("Output", (), {"logits": logits})
    p = logits.detach().softmax(-1)
    likely = -(p[0, 0, 0].log() + p[0, 1, 2].log()) / 2
    unlikely = -(1 - p[1, 0, 1]).log()
    loss = unlikelihood(0.5, shifted=False, end=2)
    assert loss.of(output, {"labels": labels, "wrong": torch.tensor([0, 1])}).item() == pytest.approx(
        (likely + unlikely / 2).item()
    )
    assert loss.of(output, {"labels": labels, "wrong": torch.tensor([0, 0])}).item() == pytest.approx(
        torch.nn.functional.cross_entropy(logits.detach().flatten(0, 1), labels.flatten()).item()
    )
    shifted = unlikelihood(1.0, shifted=True, end=None)
    only = shifted.of(output, {"labels": torch.tensor([[-100, 1], [-100, -100]]), "wrong": torch.tensor([1, 0])})
    assert only.item() == pytest.approx(-(1 - p[0, 0, 1]).log().item())


def test_unlikelihood_stays_finite() -> None:
    logits = torch.tensor([[[90.0, 0.0]]], requires_grad=True)
    output, batch = type("Output", (), {"logits": logits}), {"labels": torch.tensor([[0]]), "wrong": torch.tensor([1])}
    value = unlikelihood(1.0, shifted=False, end=None).of(output, batch)
    value.backward()
    assert torch.isfinite(value)
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()


@wordnet
@pytest.mark.parametrize("kind", ["t5", "gpt2"])
def test_a_term_is_unlearned_under_another_relation(kind: str, tiny_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [("the [film] was made in the {city}", "of", [3]), ("the [band] of the {state}", "on", [2])]
    rows = [row(text, label, causal_terms=places) for text, label, places in texts]
    hp = Hyperparameters(model=Model(tiny_model(kind)), max_length=64, batch_size=4, learning_rate=1e-2, epochs=40)
    said: dict[float, list[float]] = {}
    real = autocad.unlikelihood
    for alpha in (0.0, 4.0):
        losses: list[float] = []

        def watched(alpha: float, losses: list[float] = losses, **settings: Any) -> Any:
            loss, other = real(alpha, **settings), real(1.0, **settings)

            def of(output: Any, batch: Any) -> Any:
                wrong = {**batch, "labels": batch["labels"].masked_fill(~batch["wrong"].bool()[:, None], -100)}
                losses.append(other.of(output, wrong).item())
                return loss.of(output, batch)

            return type(loss)(of=of, columns=loss.columns)

        monkeypatch.setattr(autocad, "unlikelihood", watched)
        digest = autocad.train_contrastive_editor(rows, hp, alpha=alpha)
        assert stored_model(digest) != Model("")
        said[alpha] = losses
    # The term under the wrong relation: with the objective less likely at the end than without.
    assert sum(said[4.0][-3:]) < sum(said[0.0][-3:])
    assert autocad.train_contrastive_editor(rows, hp, alpha=4.0) == digest


def test_wrong_relations_are_drawn_for_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def note(kind: str, made: Any, hp: Hyperparameters, train: Any) -> str:
        asked.append(made)
        return "digest"

    monkeypatch.setattr(autocad, "train_once", note)
    rows = [{**row(label=label, causal_terms=[3, 5]), "id": label} for label in ("of", "on", "to")]
    autocad.train_contrastive_editor(rows, Hyperparameters(model=Model("offline:t5")), negatives=2)
    (made,) = asked
    assert made["wrong"] == [0] * 3 + [1] * 6
    assert set(made["target"]) == {"moved into"}
    assert made["source"][:3] == [f"eggs ({label}) <extra_id_0> buckets" for label in ("of", "on", "to")]
    assert sorted(made["source"][3:]) == sorted(made["source"][:3] * 2)


# --- CoCo: graphs


def parsed(text: str, *words: tuple[int, str, str]) -> tuple[dict[str, Any], list[str]]:
    """A parse: (head, dependency, tag) of each word; its lemma is the word, but of forms of "be"."""
    heads, deps, tags = (list(column) for column in zip(*words, strict=True))
    tokens = text.split()
    lemmas = ["be" if token in ("is", "are", "was", "were") else token for token in tokens]
    return {"heads": heads, "deps": deps, "tags": tags, "lemmas": lemmas}, tokens


PASSIVE = parsed(
    "damage was caused by storms", (2, "nsubjpass", "NN"), (2, "auxpass", "VBD"), (-1, "ROOT", "VBN"), (2, "agent", "IN"),
    (3, "pobj", "NNS"),
)  # fmt: skip
PASSIVE_UD = parsed(
    "damage was caused by storms", (2, "nsubj:pass", "NN"), (2, "aux:pass", "VBD"), (-1, "root", "VBN"), (4, "case", "IN"),
    (2, "obl:agent", "NNS"),
)  # fmt: skip
MOVED_UD = parsed(
    "eggs moved into the buckets", (1, "nsubj", "NNS"), (-1, "root", "VBD"), (4, "case", "IN"), (4, "det", "DT"), (1, "obl", "NNS")
)  # fmt: skip
ARE_UD = parsed(
    "rules are under discussion", (3, "nsubj", "NNS"), (3, "cop", "VBP"), (3, "case", "IN"), (-1, "root", "NN")
)  # fmt: skip
PARTS = parsed(
    "hills are parts of earth", (1, "nsubj", "NNS"), (-1, "ROOT", "VBP"), (1, "attr", "NNS"), (2, "prep", "IN"), (3, "pobj", "NN")
)  # fmt: skip
RELATIVE = parsed(
    "boxes that are in cellars", (-1, "ROOT", "NNS"), (2, "nsubj", "WDT"), (0, "relcl", "VBP"), (2, "prep", "IN"),
    (3, "pobj", "NNS"),
)  # fmt: skip
CONTROL = parsed(
    "men want to send signals", (1, "nsubj", "NNS"), (-1, "ROOT", "VBP"), (3, "aux", "TO"), (1, "xcomp", "VB"), (3, "dobj", "NNS")
)  # fmt: skip


@pytest.mark.parametrize(
    ("sentence", "tree", "graph"),
    [
        (PASSIVE, [2, 3], [2]), (PASSIVE_UD, [2], [2]), (MOVED_UD, [1], [1, 2]), (ARE_UD, [], [2]), (PARTS, [1, 2, 3], [1, 2, 3]),
        (RELATIVE, [2, 3], [3]), (CONTROL, [1, 3], [3]),
    ],
)  # fmt: skip
def test_paths_in_both_graphs(sentence: tuple[dict[str, Any], list[str]], tree: list[int], graph: list[int]) -> None:
    parse, tokens = sentence
    ends = (0, 1), (len(tokens) - 1, len(tokens))
    assert shortest_path(syntactic_edges(parse), *ends) == shortest_path(syntactic_edges(parse), *reversed(ends)) == tree
    assert (
        shortest_path(semantic_edges(parse, tokens), *ends)
        == shortest_path(semantic_edges(parse, tokens), *reversed(ends))
        == graph
    )


def test_a_path_leaves_entities_out_and_is_the_first_of_the_shortest() -> None:
    diamond = {(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (0, 5), (5, 6), (4, 6)}
    assert shortest_path(diamond, (0, 1), (4, 5)) == [1, 3]
    assert shortest_path(diamond, (0, 2), (4, 5)) == [3]
    assert shortest_path(diamond, (4, 5), (0, 1)) == [1, 3]
    assert shortest_path({(0, 1), (2, 3)}, (0, 1), (3, 4)) is None
    assert shortest_path(set(), (0, 1), (1, 2)) is None


@pytest.mark.parametrize("words", [1, 2, 7])
def test_any_tree_has_a_path(words: int) -> None:
    # Loops of words that stand for one another end, too.
    parse = {
        "heads": [max(0, i - 1) if i else -1 for i in range(words)], "deps": ["relcl"] * words, "tags": ["VB"] * words,
        "lemmas": ["be"] * words,
    }  # fmt: skip
    assert isinstance(semantic_edges(parse, ["is"] * words), set)
    assert len(syntactic_edges(parse)) == words - 1


@spacy
def test_the_released_paths_are_taken_where_they_are() -> None:
    columns: dict[str, Any] = dict.fromkeys(["causal_terms", "term_places"])
    found = FindPaths(parser=SPACY)(row(EGGS, **{**columns, "syntactic_terms": [1, 4], "semantic_terms": [3]}))
    assert found["causal_terms"] == [3, 4]  # 1 is an entity's
    assert [place.split()[-1] for place in found["term_places"]] == ["semantic", "syntactic"]
    parsed = FindPaths(parser=SPACY)(row(EGGS, **columns))
    assert parsed["causal_terms"] == [3, 5]
    assert [place.split()[-1] for place in parsed["term_places"]] == ["both", "both"]
    apart = FindPaths(parser=SPACY)(row("[eggs] {buckets}", **columns))
    assert apart["status"]["reason"] == "no word is on a path between the entities"


# --- CoCo: substitution


def known(*instances: tuple[str, str, int]) -> str:
    made = [{"words": words.split(), "places": places.split(", "), "count": n} for words, places, n in instances]
    return save_artifact({"instances": {"of": made}})


def substituted(sha: str, **columns: Any) -> dict[str, Any]:
    places = {"causal_terms": [3, 5], "term_places": ["VBN ROOT both", "IN prep both"], "new_relations": ["of"]}
    (found,) = SubstituteTerms().with_fitted(sha)(row(EGGS, **{**places, **columns}))["candidates"]
    return dict(found)


def test_words_are_replaced_by_those_that_correspond() -> None:
    same = "VBN ROOT both, IN prep both"
    once, twice = ("hidden under", same, 1), ("placed below", same, 2)
    far = ("lay on", "VBD ROOT both, IN prep both", 9)
    assert substituted(known(once, far))["text"] == "the eggs were hidden slowly under buckets ."
    assert substituted(known(once, twice))["text"] == "the eggs were placed slowly below buckets ."
    assert substituted(known(once, ("buried in", same, 1)))["text"] == "the eggs were buried slowly in buckets ."
    half = substituted(known(("moved under", same, 1)))
    assert [(edit["start"], edit["before"], edit["after"]) for edit in half["edits"]] == [(5, "into", "under")]


@pytest.mark.parametrize(
    "instance",
    [
        ("in", "IN prep both", 1), ("very far", "RB advmod both, RB advmod both", 1),
        ("Moved into", "VBN ROOT both, IN prep both", 1), ("lay on", "VBD acl both, IN prep both", 1),
        ("hidden under", "VBN ROOT both, IN prep semantic", 1),
    ],
)  # fmt: skip
def test_what_does_not_correspond_is_rejected(instance: tuple[str, str, int]) -> None:
    found = substituted(known(instance))
    assert found["status"]["reason"] == "no instance of the new relation has other words in the same places of its graphs"
    assert found["edits"] == []


@spacy
def test_coco_from_rows_to_counterfactuals(thinks: Any) -> None:
    texts = [("the [eggs] were moved into {buckets}", "to"), ("the [shoes] were made from {leather}", "of"), (EGGS, "Other")]
    made = [
        {**tiny_relation.row(text, label), "group_id": f"{i}", "corpus": "c", "split": "train"}
        for i, (text, label) in enumerate(texts)
    ]
    ds = Dataset.from_list(made, features=get_task("relation").features)
    thinks(lambda text: {"of": 0.9, "to": 0.1} if "from" in text else {"of": 0.4, "to": 0.6})
    out = CoCo(parser=SPACY, indicator=Model("mine"))(ds)
    found = hfcf.expand(out)
    assert {(new["label"], " ".join(new["tokens"])) for new in found} == {
        ("of", "the eggs were made from buckets"), ("to", "the shoes were moved into leather"),
    }  # fmt: skip
    sources = {row["id"]: row for row in ds}
    for new in found:
        assert entities(new) == entities(sources[new["source_id"]])
    thinks(lambda text: {"of": 0.5, "to": 0.4, "Other": 0.6})
    nothing = CoCo(parser=SPACY, indicator=Model("mine"))(ds)
    assert len(hfcf.expand(nothing)) == 0  # a comparison's cell prints "–"
    assert len(hfcf.expand(CoCo(parser=SPACY, consistency=False)(ds))) == 2
