from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
import torch

from hfcf.core.model import Model
from hfcf.engines.base import usage
from hfcf.engines.ner import TYPES, Ner, clean, stanza_pipeline

TEXTS = [
    "Ada Lovelace was born in London on 10 December 1815.",
    "In 1994 the United Nations sent twenty trucks to Rwanda's capital.",
    "Nothing is named here.",
]


def named(text: str, spans: list[list[object]]) -> list[tuple[str, object]]:
    return [(text[start:end], label) for start, end, label in spans]  # type: ignore[misc]


# --- what both backends share


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("ORG", "ORG"), ("PERSON", "PERSON"), ("PER", "PERSON"), ("DATE", "DATE"), ("GPE", "GPE"), ("CARDINAL", "NUM"),
        ("ORDINAL", "NUM"), ("QUANTITY", "NUM"), ("MONEY", "NUM"), ("PERCENT", "NUM"), ("LOC", None), ("WORK_OF_ART", None),
    ],
)  # fmt: skip
def test_labels_become_the_five_types(label: str, expected: str | None) -> None:
    assert clean("Rome", [(0, 4, label)]) == ([[0, 4, expected]] if expected else [])
    assert expected is None or expected in TYPES


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the United Nations", "United Nations"),
        ("The Hague's", "Hague"),
        ("an Oscar", "Oscar"),
        ("Theo", "Theo"),
        ("Another Act", "Another Act"),
        ("Rwanda's", "Rwanda"),
        ("Rwanda’s", "Rwanda"),
        ("the Beatles'", "Beatles"),
        ("U.S.,", "U.S."),
        ("the 1990s.", "1990s"),
    ],
)
def test_articles_possessives_and_marks_are_no_part_of_a_name(text: str, expected: str) -> None:
    [[start, end, _]] = clean(f"In {text} it", [(3, 3 + len(text), "ORG")])
    assert f"In {text} it"[start:end] == expected


@pytest.mark.parametrize("text", ["the ", "'s", "...", " "])
def test_a_span_without_a_name_is_dropped(text: str) -> None:
    assert clean(text, [(0, len(text), "ORG")]) == []


def test_an_unknown_backend_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"stanza.*spacy"):
        Ner(backend="nltk", model=Model("en"))


def test_a_missing_library_is_an_error_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr("importlib.metadata.version", version)
    with pytest.raises(ImportError, match=r'pip install "\.\[stanza\]"'):
        Ner().run(["Rome"])


# --- spaCy


def test_spacy_finds_the_five_types(spacy_ner: Ner) -> None:
    first, second, third = spacy_ner.run(TEXTS)
    assert named(TEXTS[0], first) == [("Ada Lovelace", "PERSON"), ("London", "GPE"), ("10 December 1815", "DATE")]
    assert named(TEXTS[1], second) == [("1994", "DATE"), ("United Nations", "ORG"), ("twenty", "NUM"), ("Rwanda", "GPE")]
    assert third == []


def test_a_batch_finds_what_single_texts_find(spacy_ner: Ner, no_request_cache: None) -> None:
    assert spacy_ner.run(TEXTS * 2) == [spacy_ner.run([text])[0] for text in TEXTS] * 2


def test_characters_are_counted_as_tokens(spacy_ner: Ner) -> None:
    usage().clear()
    spacy_ner.run([*TEXTS, TEXTS[0]])
    assert (usage()["Ner"].calls, usage()["Ner"].tokens) == (3, sum(map(len, TEXTS)))


# --- Stanza

PEOPLE = ["Ada Lovelace", "Alan Turing", "Marie Curie", "Nina Simone", "John Lennon", "Clara Schumann"]
PLACES = ["London", "Rwanda", "Paris", "Norway", "Chicago", "Japan"]
FIRMS = ["the United Nations", "Acme Corporation", "Harvard University", "the Red Cross", "Siemens AG", "the Globe Theatre"]
DATES = ["in 1815", "on 10 December 1843", "in March 1994", "on 3 April 1968"]
COUNTS = ["twenty", "three", "500", "seven"]


def sentence(i: int) -> list[dict[str, str]]:
    """Words and their tags; every sentence holds the five kinds, each name in every frame."""
    parts = [
        (PEOPLE[i % 6], "PERSON"), ("of", ""), (FIRMS[i // 2 % 6], "ORG"), ("left", ""), (PLACES[i // 3 % 6], "GPE"),
        (DATES[i % 4].split()[0], ""), (DATES[i % 4].split(" ", 1)[1], "DATE"), ("with", ""),
        (COUNTS[i // 4 % 4], "CARDINAL"), ("friends", ""), (".", ""),
    ]  # fmt: skip
    tagged = []
    for text, label in parts:
        words = text.split()
        marks = ["S"] if len(words) == 1 else ["B", *["I"] * (len(words) - 2), "E"]
        tagged += [{"text": word, "ner": f"{mark}-{label}" if label else "O"} for word, mark in zip(words, marks, strict=True)]
    return tagged


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a Stanza tagger of its own, trained in a few seconds, as `Ner` takes it."""
    pytest.importorskip("stanza")
    folder, work = tmp_path_factory.mktemp("stanza"), tmp_path_factory.mktemp("training")
    rows = [sentence(i) for i in range(72)]
    (work / "rows.json").write_text(json.dumps(rows))
    words = sorted({word["text"].lower() for row in rows for word in row})
    vectors = [[(hash_of(word) >> (4 * k)) % 16 / 8 - 1 for k in range(10)] for word in words]
    lines = [" ".join([word, *(f"{value:.3f}" for value in vector)]) for word, vector in zip(words, vectors, strict=True)]
    (work / "vectors.txt").write_text("\n".join([f"{len(words)} 10", *lines]) + "\n")
    python = [sys.executable, "-W", "ignore", "-m"]
    commands = [
        [*python, "stanza.models.common.convert_pretrain", folder / "vectors.pt", work / "vectors.txt", "-1"],
        [
            *python, "stanza.models.ner_tagger", "--mode", "train", "--train_file", work / "rows.json", "--eval_file",
            work / "rows.json", "--save_dir", folder, "--save_name", "ner.pt", "--shorthand", "en_tiny",
            "--wordvec_pretrain_file", folder / "vectors.pt", "--char_hidden_dim", "16", "--char_emb_dim", "8", "--hidden_dim",
            "32", "--word_emb_dim", "16", "--batch_size", "16", "--max_steps", "120", "--eval_interval", "60", "--cpu",
        ],
    ]  # fmt: skip
    for command in commands:
        done = subprocess.run(list(map(str, command)), cwd=work, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
    stub = {"lang_name": "English", "packages": {"default": {}}, "default_processors": {}, "default_dependencies": {}}
    (folder / "resources.json").write_text(json.dumps({"en": stub}))
    arguments = {"tokenize_pretokenized": True, "ner_model_path": "ner.pt", "ner_pretrain_path": "vectors.pt"}
    (folder / "stanza.json").write_text(json.dumps(arguments))
    return folder


def hash_of(word: str) -> int:
    return int(hashlib.sha256(word.encode()).hexdigest(), 16)


@pytest.fixture
def stanza_ner(trained: Path) -> Ner:
    return Ner(backend="stanza", model=Model(str(trained)))


@pytest.mark.slow
def test_a_trained_stanza_model_finds_the_five_types(stanza_ner: Ner) -> None:
    rows = [sentence(i) for i in (0, 25, 50)]
    texts = [" ".join(word["text"] for word in row) for row in rows]
    found = stanza_ner.run(texts)
    first = " ".join([PEOPLE[0], "of", FIRMS[0], "left", PLACES[0], DATES[0], "with", COUNTS[0], "friends", "."])
    assert texts[0] == first
    assert named(texts[0], found[0]) == [
        ("Ada Lovelace", "PERSON"), ("United Nations", "ORG"), ("London", "GPE"), ("1815", "DATE"), ("twenty", "NUM"),
    ]  # fmt: skip
    assert {label for spans in found for _, _, label in spans} == set(TYPES)
    assert all(len(spans) == 5 for spans in found)


@pytest.mark.slow
def test_a_batch_of_stanza_finds_what_single_texts_find(stanza_ner: Ner, no_request_cache: None) -> None:
    texts = [" ".join(word["text"] for word in sentence(i)) for i in range(0, 40, 7)]
    assert stanza_ner.run(texts) == [stanza_ner.run([text])[0] for text in texts]


@pytest.mark.slow
def test_a_stanza_model_that_was_trained_again_misses_the_cache(stanza_ner: Ner, trained: Path) -> None:
    before = stanza_ner.settings()
    file = trained / "stanza.json"
    content = file.read_text()
    file.write_text(content + " ")
    assert stanza_ner.settings() != before
    file.write_text(content)
    assert stanza_ner.settings() == before


def test_stanza_without_a_network_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    stanza = pytest.importorskip("stanza")
    asked: list[Any] = []

    def pipeline(**kwargs: Any) -> str:
        asked.append(kwargs.get("download_method", "online"))
        if asked[-1] == "online":
            raise ConnectionError("HTTPSConnectionPool(host='raw.githubusercontent.com', port=443): Max retries exceeded")
        if kwargs["lang"] == "xx":
            raise FileNotFoundError("no resources.json")
        return "a pipeline"

    monkeypatch.setattr(stanza, "Pipeline", pipeline)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    assert stanza_pipeline("en", "tokenize,ner", torch.device("cpu")) == "a pipeline"
    assert asked == ["online", None], "models that were downloaded before"
    with pytest.raises(ValueError, match=r"Stanza's models of 'xx' .*stanza\.download\('xx'\)") as error:
        stanza_pipeline("xx", "tokenize,ner", torch.device("cpu"))
    assert "HTTPSConnectionPool" not in str(error.value)
    asked.clear()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert stanza_pipeline("en", "tokenize,ner", torch.device("cpu")) == "a pipeline"
    assert asked == [None], "no request in offline mode"


def test_a_pipeline_of_one_s_own_keeps_what_finds_entities(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    pipeline = spacy.blank("en")
    pipeline.add_pipe("entity_ruler").add_patterns([{"label": "PERSON", "pattern": "Ann"}])
    pipeline.to_disk(tmp_path / "ruler")
    assert Ner(backend="spacy", model=Model(str(tmp_path / "ruler"))).run(["Ann is here."]) == [[[0, 3, "PERSON"]]]
