"""The metrics that ask a model, on tiny random ones and on the offline ones where they are installed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from datasets import ClassLabel, Dataset
from made_rows import EVIDENCE, claim_row, evidence_row, relation, relation_row, verification
from tiny import rbert

from hfcf.core import edits
from hfcf.core.artifacts import save_artifact
from hfcf.core.model import Model
from hfcf.core.recipe import RecipeError
from hfcf.core.stage import StageError
from hfcf.core.task import get_task, revert_edits
from hfcf.engines.ner import Ner
from hfcf.metrics import load
from hfcf.metrics.flip_rate import measure_flip_rate, same_weights
from hfcf.metrics.shared.measure import measure, measure_candidates
from hfcf.metrics.shared.moverscore import MoverScore, fit_idf
from hfcf.metrics.shared.summary import summaries
from hfcf.metrics.shared.texts import changed
from hfcf.tasks.verification import LABELS

Tiny = Callable[[str], str]


@pytest.fixture(autouse=True)
def on_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_DEVICE", "cpu")


@pytest.fixture
def made() -> Dataset:
    return verification(
        claim_row(0, "Rome is a very old city.", "Oslo is a very old city.", "REFUTES"),
        claim_row(1, "Romulus built the city.", "The city was built by Remus in 1994.", "SUPPORTS"),
        evidence_row(2),
    )


def test_fluency_is_the_perplexity_of_what_changed(made: Dataset, tiny_model: Tiny) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = tiny_model("gpt2")
    network, tokenizer = AutoModelForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)

    def perplexity(text: str) -> float:
        ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
        ids = torch.cat([torch.tensor([[tokenizer.eos_token_id]]), ids], 1)  # what goes before: this tokenizer names no other mark
        with torch.no_grad():
            return math.exp(network(ids, labels=ids).loss.item())

    found = measure(made, {"fluency": {"model": folder}})["fluency"][:]
    assert found == pytest.approx([perplexity(changed(row)[1]) for row in made], rel=1e-4)
    assert load("fluency").compute(predictions=[changed(row)[1] for row in made], model=folder)["scores"] == found


def test_similarity_is_moverscore_under_the_sources_idf(made: Dataset, tiny_model: Tiny) -> None:
    model = Model(tiny_model("classifier"))
    sources = [changed(row)[0] for row in made]
    mover = MoverScore(model=model, idf=save_artifact(fit_idf(sources, model)))
    wanted = mover.run([list(changed(row)) for row in made])
    assert len(set(wanted)) == 3
    found = measure(made, {"similarity": {"model": model.name}})
    assert found["similarity"][:] == pytest.approx(wanted, abs=1e-5)
    told = load("similarity").compute(predictions=[changed(row)[1] for row in made], references=sources, model=model.name)
    assert told["scores"] == pytest.approx(wanted, abs=1e-5)
    assert told["similarity"] == pytest.approx(sum(wanted) / 3, abs=1e-5)
    bigrams = measure(made, {"similarity": {"model": model.name, "n_gram": 2}})["similarity"]
    assert max(abs(value - other) for value, other in zip(bigrams, wanted, strict=True)) > 1e-3


def test_equal_texts_are_alike_however_few_there_are(tiny_model: Tiny) -> None:
    given: dict[str, Any] = {"predictions": ["Rome is old."], "references": ["Rome is old."], "model": tiny_model("classifier")}
    assert load("similarity").compute(**given)["similarity"] == pytest.approx(1.0, abs=1e-4)
    new_rows = [claim_row(0, "Rome is a very old city.", text) for text in ("Oslo is a very old city.", "Rome is a very new city.")]
    both = verification(new_rows[0], {**new_rows[1], "id": "1"})
    found = measure(both, {name: {"model": given["model"]} for name in ("similarity", "coherence")})
    assert all(0.3 < score < 1 for score in found["similarity"])
    assert found["similarity"][0] != found["similarity"][1]
    assert all(0.3 < score < 1 for score in found["coherence"])


def test_what_has_no_weight_has_no_score(tiny_model: Tiny) -> None:
    model = tiny_model("classifier")
    given: dict[str, Any] = {"predictions": ["...", "Oslo is new.", ""], "references": ["Rome is old.", "It lies here.", "a"]}
    scores = load("similarity").compute(**given, model=model)["scores"]
    assert [score is None for score in scores] == [True, False, True]
    claims, evidence = ["", "Oslo is new.", "..."], [["Rome is old."], ["It lies here.", "..."], ["Rome is old."]]
    scores = load("coherence").compute(predictions=claims, references=evidence, model=model)["scores"]
    assert [score is None for score in scores] == [True, False, True]
    assert scores[1] > 0.3  # the piece without weight is left out of the mean


def test_candidates_are_measured_by_models_too_and_as_those_kept(made: Dataset, tiny_model: Tiny) -> None:
    candidate = {"claim": "…", "label": "REFUTES", "change": "claim", "scores": [], "edits": made[0]["edits"]}
    source = {**revert_edits(made[0], made[0]["edits"]), "id": "0", "label": "SUPPORTS"}
    rejected = Dataset.from_list([{"level": "candidate", "source": source, "candidate": candidate}])
    classifier = tiny_model("classifier")
    metrics = {
        "fluency": {"model": tiny_model("gpt2")}, "flip_rate": {"verifier": tiny_model("verifier")},
        **{name: {"model": classifier} for name in ("similarity", "coherence")},
        "grammar": {"model": classifier, "acceptable": "SUPPORTS"},
    }  # fmt: skip
    measured = measure(made, metrics)
    before = measure_candidates(measured, rejected, metrics)
    assert len(before) == 4
    for name in metrics:
        assert before[name][3] == measured[name][0] is not None
    told = summaries(measured, before)
    assert all("before" in told[name] for name in metrics)


def test_a_row_whose_edits_do_not_fit_leaves_the_batch_in_place(made: Dataset, tiny_model: Tiny) -> None:
    classifier = tiny_model("classifier")
    ds = Dataset.from_list([dict(made[0]), {**made[1], "claim": "Corrected by hand."}, dict(made[2])], features=made.features)
    metrics = {"fluency": {"model": tiny_model("gpt2")}, "similarity": {"model": classifier}}
    found, alone = measure(ds, metrics), measure(made.select([0, 2]), metrics)
    for name in metrics:
        assert found[name][:] == [alone[name][0], None, alone[name][1]]


def test_coherence_is_the_mean_over_the_pieces_of_evidence(made: Dataset, tiny_model: Tiny) -> None:
    model = Model(tiny_model("classifier"))
    mover = MoverScore(model=model, idf=save_artifact(fit_idf(dict.fromkeys(made["claim"]), model)))
    wanted = [sum(mover.run([[piece["text"], row["claim"]] for piece in row["evidence"]])) / 2 for row in made]
    assert measure(made, {"coherence": {"model": model.name}})["coherence"][:] == pytest.approx(wanted, abs=1e-5)
    references = [[piece["text"] for piece in row["evidence"]] for row in made]
    told = load("coherence").compute(predictions=list(made["claim"]), references=references, model=model.name)
    assert told["scores"] == pytest.approx(wanted, abs=1e-5)


def test_entity_overlap_is_the_share_of_the_sources_entities(spacy_ner: Ner) -> None:
    before = "Barack Obama was born in Hawaii in 1961."
    made = verification(
        claim_row(0, before, "Barack Obama was born in Kenya in 1961."), claim_row(1, "It is old.", "It is new."),
        claim_row(2, before, before.replace("Barack Obama", "Nobody")),
    )  # fmt: skip
    given = {"backend": "spacy", "model": "offline:spacy"}
    found = measure(made, {"entity_overlap": {"ner": given}})["entity_overlap"][:]
    assert found == [pytest.approx(2 / 3, abs=1e-5), None, pytest.approx(2 / 3, abs=1e-5)]
    told = load("entity_overlap").compute(predictions=[before.lower()], references=[before], ner=given)
    assert told["entity_overlap"] is None or told["entity_overlap"] <= 1


def test_flip_rate_is_the_share_that_the_verifier_gives_its_label(made: Dataset, tiny_model: Tiny) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = tiny_model("verifier")
    network, tokenizer = AutoModelForSequenceClassification.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    wanted = []
    for row in made:
        text = " ".join(f"{piece['title']}: {piece['text']}" if piece["title"] else piece["text"] for piece in row["evidence"])
        with torch.no_grad():
            wanted.append(network(**tokenizer(row["claim"], text, return_tensors="pt")).logits.softmax(-1)[0].tolist())
    found = measure(made, {"flip_rate": {"verifier": folder}})
    for candidate, probabilities, label in zip(found["flip_rate"], wanted, made["label"], strict=True):
        assert candidate["predicted"] == LABELS[probabilities.index(max(probabilities))]
        assert candidate["probability"] == pytest.approx(probabilities[LABELS.index(label)], abs=1e-4)
        assert candidate["flipped"] == (candidate["predicted"] == label)
    published = made.cast_column("label", ClassLabel(names=list(LABELS)))
    assert measure(published, {"flip_rate": {"verifier": folder}})["flip_rate"][:] == found["flip_rate"][:]
    with pytest.raises(StageError, match="flip_rate"):
        measure_flip_rate(published, verifier=Model(folder))
    share = sum(verdict["flipped"] for verdict in found["flip_rate"]) / 3
    assert summaries(found)["flip_rate"]["after"]["flipped"]["share"] == pytest.approx(share, abs=1e-5)


def test_the_verifier_that_filtered_is_refused_under_any_name(
    made: Dataset, tiny_model: Tiny, tmp_path_factory: pytest.TempPathFactory
) -> None:
    import shutil

    folder = tiny_model("verifier")
    copy = tmp_path_factory.mktemp("copies") / "renamed"
    shutil.copytree(folder, copy)
    for filtered in (folder, str(copy)):
        with pytest.raises(StageError, match="filtered"):
            measure(made, {"flip_rate": {"verifier": folder, "filtered_by": [filtered]}})
    for verifier in (Model(folder, dtype="float32"), Model(str(copy))):
        assert same_weights(verifier, Model(folder))
    assert not same_weights(Model(folder, adapter="hfcf:verifier"), Model(folder))
    other = tiny_model("classifier")
    assert len(measure(made, {"flip_rate": {"verifier": folder, "filtered_by": [other]}})) == 3


def test_flip_rate_of_relations(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = rbert(tmp_path_factory.mktemp("rbert"))
    made = relation(relation_row(0), {**relation_row(1), "label": "Entity-Origin(e1,e2)"})
    found = measure(made, {"flip_rate": {"verifier": folder}})["flip_rate"]
    assert found[0]["flipped"] is False
    assert found[0]["probability"] == 0.0  # its label is no class of this model
    assert found[1]["flipped"] == (found[1]["predicted"] == "Entity-Origin(e1,e2)")


def test_grammar_is_the_probability_of_the_acceptable_class(made: Dataset, tiny_model: Tiny) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = tiny_model("classifier")
    network, tokenizer = AutoModelForSequenceClassification.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    wanted = []
    for row in made:
        with torch.no_grad():
            wanted.append(network(**tokenizer(changed(row)[1], return_tensors="pt")).logits.softmax(-1)[0, 0].item())
    given = {"model": folder, "acceptable": "SUPPORTS"}
    assert measure(made, {"grammar": given})["grammar"][:] == pytest.approx(wanted, abs=1e-4)
    assert load("grammar").compute(predictions=["Rome is old.", ""], **given)["scores"][1] is None
    with pytest.raises(ValueError, match=r"'LABEL_1'.*SUPPORTS, REFUTES, NOT ENOUGH INFO"):
        measure(made, {"grammar": {"model": folder}})
    with pytest.raises(RecipeError, match=r"metrics: grammar: .*'model'"):
        measure(made, {"grammar": None})


def test_what_a_model_cannot_read_is_null_and_the_others_stay_in_place(made: Dataset, tiny_model: Tiny) -> None:
    unchanged: dict[str, Any] = {**claim_row(7, "", "Rome is old."), "edits": []}
    long = claim_row(8, "Rome is old.", "Rome is old. " * 300)
    ds = verification(made[0], unchanged, long, made[1])
    found = measure(ds, {"fluency": {"model": tiny_model("gpt2")}, "similarity": {"model": tiny_model("classifier")}})
    assert [score is None for score in found["fluency"]] == [False, True, True, False]
    assert [score is None for score in found["similarity"]] == [False, True, False, False]
    assert found["id"][:] == ds["id"][:]


def test_a_row_that_is_no_row_is_not_scored_and_told(made: Dataset, caplog: pytest.LogCaptureFixture) -> None:
    empty = {**claim_row(5, "Rome is old.", " "), "evidence": EVIDENCE, "edits": edits.rewrite("claim", "Rome is old.", " ")}
    found = measure(verification(made[0], empty), {"minimality": None})
    assert found["minimality"][0]["distance"] == 1
    assert found["minimality"][1] is None
    assert "minimality: 1 of 2 rows could not be scored; the first: the claim is empty" in caplog.text
    assert get_task("verification").counterfactual.keys() <= set(found.features)
