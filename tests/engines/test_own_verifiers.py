"""Verifiers of a user's own: the same answers as the same weights under our names, or a refusal that says what to type."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from own_models import ROWS, save
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from hfcf.core.model import INPUTS_KEY, Model
from hfcf.engines.attribution import Attribution
from hfcf.engines.classifier import Classifier, choose
from hfcf.engines.classifier_spec import check_classifier, read_spec
from hfcf.engines.cure import Cure
from hfcf.engines.verifier_inputs import encode_spans, parse_inputs
from hfcf.tasks.verification import LABELS, TASK
from hfcf.text.evidence import join

SUPPORTS, REFUTES, NOT_ENOUGH_INFO = LABELS
VOCABULARIES = {  # names of each class in the order of the model's outputs, and the output of ours that each is
    "ours, another order": (["REFUTES", "NOT ENOUGH INFO", "SUPPORTS"], {}),
    "entailment": (["contradiction", "neutral", "entailment"], {}),
    "ENTAILMENT": (["ENTAILMENT", "NEUTRAL", "CONTRADICTION"], {}),
    "supported": (["Supported", "Not_Enough_Information", "Refuted"], {}),
    "true and false": (["false", "true", "NEI"], {}),
    "LABEL_n": (["LABEL_0", "LABEL_1", "LABEL_2"], {"LABEL_0": "REFUTES", "LABEL_1": "SUPPORTS", "LABEL_2": "NEI"}),
    "unknown": (["Pants on fire", "Accurate", "Unproven"], {"0": "refuted", "1": "SUPPORTS", "2": "NOT ENOUGH INFO"}),
}
MEANING = {
    "contradiction": REFUTES, "refuted": REFUTES, "false": REFUTES, "neutral": NOT_ENOUGH_INFO, "nei": NOT_ENOUGH_INFO,
    "notenoughinformation": NOT_ENOUGH_INFO, "entailment": SUPPORTS, "supported": SUPPORTS, "true": SUPPORTS,
    **{label.lower(): label for label in LABELS},
}  # fmt: skip
PAIRS = [[row["claim"], join(row["evidence"])[0]] for row in ROWS]

Saved = Callable[..., str]


pytestmark = pytest.mark.usefixtures("on_cpu")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """Store a model once: `stored(architecture, names, order)`."""
    folders: dict[str, str] = {}

    def store(architecture: str, names: Any, order: Any) -> str:
        key = json.dumps([architecture, list(names), list(order)])
        if key not in folders:
            folders[key] = save(tmp_path_factory.mktemp("own"), architecture, names, order)
        return folders[key]

    return store


def meanings(names: list[str], labels: dict[str, str]) -> list[str]:
    given = {**{str(i): labels[str(i)] for i in range(len(names)) if str(i) in labels}, **labels}
    texts = [given.get(name, given.get(str(i), name)) for i, name in enumerate(names)]
    return [MEANING[text.replace("_", "").lower() if "_" in text else text.lower()] for text in texts]


def plain(folder: str, order: tuple[int, int], pairs: Any) -> list[list[float]]:
    """What the network says of each pair alone, without this library."""
    network, tokenizer = AutoModelForSequenceClassification.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        return [
            network(**tokenizer(pair[order[0]], pair[order[1]], return_tensors="pt")).logits.softmax(-1)[0].tolist()
            for pair in pairs
        ]


# --- the matrix: the same weights under another's names


ARCHITECTURES = ("bert", "cross-encoder", "bart", "gpt2", "llama")
# Every vocabulary and every architecture with both numbers of classes and both orders of the texts.
CELLS = [
    (vocabulary, 2 + (i + j) % 2, ARCHITECTURES[(i + 2 * j) % 5], ("claim-evidence", "evidence-claim")[(i // 2 + j) % 2])
    for i, vocabulary in enumerate(VOCABULARIES)
    for j in range(2)
]
CELLS.append(("LABEL_n", 2, "bart", "claim-evidence"))  # whose classes Transformers does not store


@pytest.mark.parametrize(("vocabulary", "ways", "architecture", "inputs"), CELLS)
def test_the_same_weights_answer_the_same_under_any_names(
    vocabulary: str, ways: int, architecture: str, inputs: str, stored: Saved
) -> None:
    names, labels = VOCABULARIES[vocabulary]
    means = meanings(names, labels)
    kept = [i for i, label in enumerate(means) if label in LABELS[:ways]]
    names, means = [names[i] for i in kept], [means[i] for i in kept]
    if labels:  # numbers of outputs move with the classes that are left out
        labels = dict(zip(names, means, strict=True))
    own = stored(architecture, names, [LABELS.index(label) for label in means])
    same = stored(architecture, LABELS[:ways], range(ways))
    if (vocabulary, ways, architecture) == ("LABEL_n", 2, "bart"):
        # Transformers doesn't store the names that it gives itself, and reads a BART without names as one of three classes.
        with pytest.raises(ValueError, match="LABEL_2"):
            TASK.judge(ROWS, Model(own, labels=labels, inputs=inputs), 128)
        return
    order = (0, 1) if inputs == "claim-evidence" else (1, 0)
    expected = [dict(zip(LABELS, row, strict=False)) for row in plain(same, order, PAIRS)]
    answers = TASK.judge(ROWS, Model(own, labels=labels or None, inputs=inputs), 128)
    assert len({choose(answer, LABELS) for answer in answers if answer}) > 1, "its verdicts differ"
    for answer, right in zip(answers, expected, strict=True):
        assert answer == pytest.approx(right, abs=2e-4)
    # Nothing that is not said is taken for granted.
    if labels:
        with pytest.raises(ValueError, match="labels="):
            TASK.judge(ROWS, Model(own, inputs=inputs), 128)
    if vocabulary in ("supported", "true and false", "LABEL_n", "unknown"):
        with pytest.raises(ValueError, match="inputs="):
            TASK.judge(ROWS, Model(own, labels=labels or None), 128)


def test_scores_do_not_depend_on_names(stored: Saved) -> None:
    from datasets import Dataset

    from hfcf.training.verifier import TRAINER

    rows = Dataset.from_list(ROWS)
    names = ["contradiction", "neutral", "entailment"]
    own = Model(stored("bert", names, [1, 2, 0]), inputs="claim-evidence")
    same = Model(stored("bert", LABELS, range(3)))
    for ways in (2, 3):
        score = TRAINER.evaluate(rows, same, max_length=128, ways=ways).scores
        assert TRAINER.evaluate(rows, own, max_length=128, ways=ways).scores == score
    assert TRAINER.predict(rows, own, max_length=128, labels=LABELS) == TRAINER.predict(rows, same, max_length=128, labels=LABELS)


def test_two_classes_of_one_label_add_up(stored: Saved) -> None:
    folder = stored("bert", ["yes", "no", "maybe"], [0, 1, 2])
    merged = Model(folder, labels={"yes": "SUPPORTS", "no": "REFUTES", "maybe": "REFUTES"}, inputs="claim-evidence")
    apart = Classifier(model=Model(stored("bert", LABELS, range(3))), max_length=128).run(PAIRS)
    answers = Classifier(model=merged, max_length=128).run(PAIRS)
    for answer, one in zip(answers, apart, strict=True):
        assert answer == pytest.approx({SUPPORTS: one[SUPPORTS], REFUTES: one[REFUTES] + one[NOT_ENOUGH_INFO]}, abs=3e-5)
    scores = Attribution(model=merged, max_length=128).run([[*pair, REFUTES] for pair in PAIRS])
    assert all(any(score for _, _, score in row) for row in scores)


# --- what is refused, and what it says


@pytest.mark.parametrize(
    ("names", "settings", "written"),
    [
        (["entailment", "not_entailment"], {}, '"not_entailment": "?"'),
        (["LABEL_0", "LABEL_1"], {}, 'labels={"LABEL_0": "?", "LABEL_1": "?"}, inputs="?")'),
        (["LABEL_0", "LABEL_1"], {"labels": {"LABEL_0": "SUPPORTS"}}, 'labels={"LABEL_0": "SUPPORTS", "LABEL_1": "?"}'),
        (["LABEL_0", "LABEL_1"], {"labels": {"LABEL_7": "SUPPORTS"}}, "'LABEL_7'"),
        (["LABEL_0", "LABEL_1"], {"labels": {"0": "maybe", "1": "REFUTES"}}, "'maybe'"),
        (["entailment", "neutral"], {}, "REFUTES"),
        (["true", "false"], {}, 'inputs="?"'),
        (["true", "false"], {"inputs": "{claim} {premise}"}, "'{claim} {premise}'"),
    ],
)
def test_a_refusal_says_what_to_type(names: list[str], settings: dict[str, Any], written: str, stored: Saved) -> None:
    model = Model(stored("bert", names, range(len(names))), **settings)
    for ask in (lambda: check_classifier(model), lambda: Classifier(model=model, max_length=64).run(PAIRS[:1])):
        with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is checked below
            ask()
        assert written in str(error.value)


def test_one_score_is_no_verdict(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one output"):
        check_classifier(Model(save(tmp_path, "cross-encoder", ["LABEL_0"], [0])))


def test_classes_that_do_not_exclude_each_other_are_refused(tmp_path: Path) -> None:
    folder = save(tmp_path, "bert", LABELS, range(3), problem_type="multi_label_classification")
    with pytest.raises(ValueError, match="answers each of its classes on its own"):
        check_classifier(Model(folder))


def test_a_model_without_a_head_is_refused(tiny_model: Callable[[str], str]) -> None:
    with pytest.raises(ValueError, match="BertForMaskedLM"):
        check_classifier(Model(tiny_model("mlm"), labels={"0": "SUPPORTS", "1": "REFUTES"}, inputs="claim-evidence"))


def test_no_weights_are_read_to_check(tmp_path: Path) -> None:
    folder = Path(save(tmp_path, "bert", ["LABEL_0", "LABEL_1"], [0, 1]))
    (folder / "model.safetensors").unlink()
    check_classifier(Model(str(folder), labels={"0": "REFUTES", "1": "SUPPORTS"}, inputs="evidence-claim"))
    check_classifier(Model("llm:any"))
    with pytest.raises(ValueError, match="labels="):
        check_classifier(Model(str(folder)))


def test_an_answer_of_other_labels_has_no_verdict() -> None:
    with pytest.raises(ValueError, match=r"entailment, neutral.*SUPPORTS, REFUTES"):
        choose({"entailment": 0.7, "neutral": 0.3}, LABELS)


# --- which form is read


def test_where_the_order_comes_from(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    nli = Path(save(tmp_path / "nli", "bert", ["contradiction", "neutral", "entailment"], range(3)))
    assert read_spec(Model(str(nli))).inputs == parse_inputs("evidence-claim")
    ours = Model(save(tmp_path / "ours", "bert", LABELS, range(3)))
    assert read_spec(ours).inputs == parse_inputs("claim-evidence")
    assert caplog.text.count("`inputs`") == 2, "a guess is logged"
    caplog.clear()
    assert read_spec(Model(str(nli), inputs="claim-evidence")).inputs == parse_inputs("claim-evidence")
    config = json.loads((nli / "config.json").read_text())
    (nli / "config.json").write_text(json.dumps({**config, INPUTS_KEY: "claim-evidence"}))
    assert read_spec(Model(str(nli))).inputs == parse_inputs("claim-evidence")
    assert not caplog.text


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ("{claim} [SEP] {evidence}", "[CLS] {0} [SEP] {1} [SEP]"),
        ("claim: {claim} evidence: {evidence} verdict", "[CLS] claim: {0} evidence: {1} verdict [SEP]"),
    ],
)
def test_one_text_is_read_as_it_is_written(inputs: str, text: str, stored: Saved) -> None:
    folder = stored("bert", LABELS, range(3))
    network, tokenizer = AutoModelForSequenceClassification.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    answers = Classifier(model=Model(folder, inputs=inputs), max_length=128).run(PAIRS)
    for pair, answer in zip(PAIRS, answers, strict=True):
        written = text.replace("{0}", pair[0]).replace("{1}", pair[1])
        batch = tokenizer(written, add_special_tokens=False, return_tensors="pt")
        with torch.no_grad():
            right = network(**batch).logits.softmax(-1)[0].tolist()
        assert answer == pytest.approx(dict(zip(LABELS, right, strict=True)), abs=1e-4)


@pytest.mark.parametrize("inputs", ["claim-evidence", "evidence-claim", "{evidence} [SEP] {claim}", "a {claim} b {evidence} c"])
def test_the_evidence_is_cut_and_never_the_claim(inputs: str, stored: Saved) -> None:
    tokenizer = AutoTokenizer.from_pretrained(stored("bert", LABELS, range(3)))
    claim, evidence = "the bridge was built", "river Paris " * 60
    for length in (16, 24, 40):
        [(features, spans)] = encode_spans(tokenizer, [[claim, evidence]], length, parse_inputs(inputs))
        pieces = tokenizer.convert_ids_to_tokens(features["input_ids"])
        assert len(pieces) == length
        assert [piece for piece in pieces if piece in ("bridge", "was", "built")] == ["bridge", "was", "built"]
        read = [evidence[span[0] : span[1]] for span in spans if span is not None]
        assert read
        assert "".join(read) == "".join(evidence.split())[: len("".join(read))]
        words = [piece.removeprefix("##") for piece, span in zip(pieces, spans, strict=True) if span is not None]
        assert words == read


# --- what explains a verdict


@pytest.mark.parametrize("architecture", ["bert", "gpt2", "bart"])
@pytest.mark.parametrize("inputs", ["claim-evidence", "evidence-claim", "{evidence} so {claim}"])
def test_the_same_words_explain_the_same_verdict(architecture: str, inputs: str, stored: Saved) -> None:
    names = ["contradiction", "neutral", "entailment"]
    own, same = stored(architecture, names, [1, 2, 0]), stored(architecture, LABELS, range(3))
    requests = [[*pair, label] for pair, label in zip(PAIRS, [SUPPORTS, REFUTES] * 3, strict=True)]
    found = Attribution(model=Model(own, inputs=inputs), max_length=128).run(requests)
    assert found == Attribution(model=Model(same, inputs=inputs), max_length=128).run(requests)
    for (_, text, _), words in zip(requests, found, strict=True):
        assert [text[start:end] for start, end, _ in words] == text.split()
        assert len({score for _, _, score in words}) > 1


def test_both_sides_of_an_encoder_decoder_explain(stored: Saved) -> None:
    """The scores are the gradients by the ids' embeddings on both sides, each at its own place."""
    folder = stored("bart", LABELS, range(3))
    network, tokenizer = AutoModelForSequenceClassification.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    claim, evidence = PAIRS[1]
    batch = tokenizer(claim, evidence, return_tensors="pt", return_offsets_mapping=True)
    offsets, parts = batch.pop("offset_mapping")[0].tolist(), batch.sequence_ids(0)
    held: list[Any] = []
    for side in (network.model.encoder.embed_tokens, network.model.decoder.embed_tokens):
        side.register_forward_hook(lambda _m, _i, out: held.append(out) or out.retain_grad())
    network(**batch).logits[0, 0].backward()
    encoder, decoder = (((state.grad * state).sum(-1))[0].tolist() for state in held)
    pieces = [one + two for one, two in zip(encoder, [*decoder[1:], 0.0], strict=True)]
    [words] = Attribution(model=Model(folder, inputs="claim-evidence"), max_length=128).run([[claim, evidence, SUPPORTS]])
    for start, end, score in words:
        own = [p for p, offset, part in zip(pieces, offsets, parts, strict=True) if part == 1 and start <= offset[0] < end]
        assert score == pytest.approx(abs(sum(own)), abs=1e-4)


@pytest.mark.parametrize("architecture", ["bart", "gpt2"])
def test_gates_are_for_encoders(architecture: str, stored: Saved, tmp_path: Path) -> None:
    engine = Cure(verifier=Model(stored(architecture, LABELS, range(3))), explainer=Model(str(tmp_path)), max_length=64)
    with pytest.raises(ValueError, match="CURE"):
        engine.load(torch.device("cpu"))


# --- padding


@pytest.mark.parametrize("architecture", ["bart", "gpt2", "llama"])
def test_padding_changes_no_answer(architecture: str, stored: Saved, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Classifier(model=Model(stored(architecture, LABELS, range(3)), inputs="evidence-claim"), max_length=128)
    together = engine.run(PAIRS)
    monkeypatch.setenv("HFCF_TOKEN_BUDGET", "1")
    for one, other in zip(together, engine.run(PAIRS), strict=True):
        assert one == pytest.approx(other, abs=1e-4)


# --- the command line, recipes and training


def test_the_command_line_says_labels_and_inputs(stored: Saved, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from datasets import Dataset

    from hfcf.cli.models import evaluate
    from hfcf.training.verifier import TRAINER

    lines = [{"id": str(i), **row} for i, row in enumerate(ROWS)]
    (tmp_path / "validation.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    own = stored("bert", ["LABEL_0", "LABEL_1"], [1, 0])
    ours = Model(stored("bert", LABELS[:2], range(2)), inputs="evidence-claim")
    expected = TRAINER.evaluate(Dataset.from_list(ROWS), ours, max_length=130).scores
    corpus = [f"jsonl={tmp_path}"]
    evaluate(own, corpus, labels=["LABEL_0=REFUTES,LABEL_1=SUPPORTS"], inputs="evidence-claim")
    printed = capsys.readouterr().out
    assert str(expected["accuracy"]) in printed
    assert expected["accuracy"] not in (0, 1)
    with pytest.raises(ValueError, match="write OWN=OURS"):
        evaluate(own, corpus, labels=["LABEL_0"])
    with pytest.raises(ValueError, match=r"--labels 'LABEL_0=[?],LABEL_1=[?]'"):
        evaluate(own, corpus)


def test_a_recipe_says_labels_and_inputs() -> None:
    from hfcf.core.recipe import ModelReference, Recipe, parse_recipe

    class Part(Recipe):
        model: ModelReference

    said = {"name": "me/nli", "labels": {"LABEL_0": "REFUTES", "LABEL_1": "SUPPORTS"}, "inputs": "evidence-claim"}
    expected = Model("me/nli", labels={"LABEL_0": "REFUTES", "LABEL_1": "SUPPORTS"}, inputs="evidence-claim")
    assert parse_recipe(Part, {"model": said}, "r.yaml").model == expected


def test_training_goes_on_from_what_the_classes_mean(stored: Saved, tmp_path: Path) -> None:
    from datasets import Dataset

    from hfcf.training.trainer import Hyperparameters
    from hfcf.training.verifier import train_verifier

    rows = Dataset.from_list([{"id": str(i), **row} for i, row in enumerate(ROWS)])
    folders = {
        "ours": stored("bert", LABELS, range(3)),
        "own": stored("bert", ["contradiction", "neutral", "entailment"], [1, 2, 0]),
    }
    answers = []
    for name, folder in folders.items():
        hp = Hyperparameters(model=Model(folder), max_length=48, epochs=1, batch_size=4, learning_rate=1e-3)
        train_verifier(rows, hp, tmp_path / name)
        answers.append(Classifier(model=Model(str(tmp_path / name)), max_length=48).run(PAIRS))
    for one, other in zip(*answers, strict=True):
        assert one == pytest.approx(other, abs=1e-3)


def test_a_verifier_is_read_as_it_was_trained(tiny_model: Callable[[str], str], tmp_path: Path) -> None:
    from datasets import Dataset

    from hfcf.training.trainer import Hyperparameters, trained_model
    from hfcf.training.verifier import train_verifier

    rows = Dataset.from_list([{"id": str(i), **row} for i, row in enumerate(ROWS)])
    for inputs in (None, "evidence-claim"):
        out = tmp_path / str(inputs)
        hp = Hyperparameters(model=Model(tiny_model("classifier"), inputs=inputs), max_length=48, epochs=1, batch_size=4)
        train_verifier(rows, hp, out)
        for model in (Model(str(out)), trained_model(hp, out)):
            reading = read_spec(model)
            assert (reading.inputs.name, reading.labels) == (inputs or "claim-evidence", LABELS)
