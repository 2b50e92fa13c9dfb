from __future__ import annotations

from pathlib import Path

from datasets import Dataset

from hfcf import corpora
from hfcf.core.contamination import OWN_FILES, load_seen, row_hashes, save_seen, seen_rows
from hfcf.core.model import SEEN, Model, folder_hash
from hfcf.core.pairs import pair
from hfcf.corpora.custom.source import OwnRows


def made(*rows: tuple[str, str, str]) -> Dataset:
    """Rows of (group, claim, evidence)."""
    return Dataset.from_list(
        [
            {"corpus": "a", "group_id": group, "claim": claim, "evidence": [{"title": "", "text": text}]}
            for group, claim, text in rows
        ]
    )


def test_a_model_says_which_rows_it_was_trained_on(tmp_path: Path) -> None:
    save_seen(tmp_path, made(("1", "Rome is old.", "It -LRB- Rome -RRB- was founded early .")), Model("offline:minilm"))
    rows = made(
        ("1", "Other claim.", "Other text."),  # its group
        ("2", "ROME is old", "Other text."),  # its claim
        ("3", "Other claim.", "It (Rome) was founded early."),  # its evidence
        ("4", "Other claim.", "Other text."),
        ("5", "It -LRB- Rome -RRB- was founded early .", ""),  # its evidence as a claim is another text
    )
    assert seen_rows(rows, Model(str(tmp_path))) == [True, True, True, False, False]
    assert seen_rows(rows, Model("offline:minilm", adapter=str(tmp_path))) == [True, True, True, False, False]


def test_what_the_first_weights_had_seen_is_kept(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir(), second.mkdir()
    save_seen(first, made(("1", "Rome is old.", "x")), Model("offline:minilm"))
    save_seen(second, made(("2", "Paris is old.", "y")), Model("offline:minilm", adapter=str(first)))
    assert seen_rows(made(("8", "Rome is old.", "z"), ("9", "Bonn is old.", "z")), Model(str(second))) == [True, False]


def test_a_model_without_the_file_says_nothing(tmp_path: Path) -> None:
    assert load_seen(Model(str(tmp_path))) is None
    assert seen_rows(made(("1", "Rome is old.", "x")), Model(str(tmp_path))) is None


def test_the_file_leaves_the_identity_of_the_weights(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    before = folder_hash(str(tmp_path))
    save_seen(tmp_path, made(("1", "Rome is old.", "x")), Model(str(tmp_path)))
    assert (tmp_path / SEEN).exists()
    assert folder_hash(str(tmp_path)) == before


def test_empty_texts_are_no_keys() -> None:
    one, other = row_hashes(made(("1", "A claim.", ""), ("2", "Another.", "")))
    assert not one & other


def test_of_an_adapter_without_the_file_nothing_is_known(tmp_path: Path) -> None:
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    base.mkdir(), adapter.mkdir()
    save_seen(base, made(("1", "Rome is old.", "x")), Model("offline:minilm"))
    assert load_seen(Model(str(base))) is not None
    assert load_seen(Model(str(base), adapter=str(adapter))) is None


def test_of_pairs_both_sides_count(tmp_path: Path) -> None:
    old = (
        made(("1", "Rome is old.", "x"), ("2", "Bonn is old.", "y"))
        .add_column("id", ["1", "2"])
        .add_column("label", ["SUPPORTS"] * 2)
    )
    new = (
        made(("8", "Rome is new.", "z"), ("9", "Bonn is new.", "z"))
        .add_column("id", ["8", "9"])
        .add_column("label", ["REFUTES"] * 2)
    )
    pairs = pair(new.add_column("source_id", ["1", "2"]), old)
    save_seen(tmp_path, made(("5", "Rome is old.", "v")), Model("offline:minilm"))
    assert seen_rows(new, Model(str(tmp_path))) == [False, False]
    assert seen_rows(pairs, Model(str(tmp_path))) == [True, False]


def test_own_files_that_number_their_rows_have_nothing_in_common(tmp_path: Path) -> None:
    def numbered(corpus: str, group: str, claim: str) -> Dataset:
        return Dataset.from_list([{"id": "1", "corpus": corpus, "group_id": group, "claim": claim, "evidence": []}])

    for corpus, group, known in (("jsonl", "1", False), ("jsonl", "case-1", True), ("fever", "1", True)):
        save_seen(tmp_path, numbered(corpus, group, "Rome is old."), Model("offline:minilm"))
        assert seen_rows(numbered(corpus, group, "Bonn is old."), Model(str(tmp_path))) == [known]


def test_every_corpus_of_own_files_is_named() -> None:
    own = {name for name in corpora.names() if corpora.builder_class(name).INFO.release == "yours"}
    assert {*own, OwnRows.INFO.name} == set(OWN_FILES)
