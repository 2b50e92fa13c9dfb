"""The relation corpora: their layouts, samples, what goes wrong with their files, and the real ones."""

from __future__ import annotations

import functools
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest
import sound_rows
from datasets import Dataset

import hfcf
from hfcf.core import recipe
from hfcf.core.task import get_task
from hfcf.corpora.base import CorpusError
from hfcf.corpora.ccg_semeval import SAMPLES, sample_of
from hfcf.corpora.formats.tokens import tokenise
from hfcf.pipeline import run as runner
from hfcf.pipeline.build_corpus import main
from hfcf.pipeline.recipes import RowsRecipe
from hfcf.training.data import load_rows

FIXTURES = Path(__file__).parents[1] / "fixtures" / "corpora"
DATA = os.environ.get("HFCF_DATA")
real = pytest.mark.skipif(not DATA, reason="HFCF_DATA, the folder of the real release files, is not set")


def load(name: str, split: str | None = None, folder: str | None = None, **options: Any) -> Any:
    return hfcf.load(name, data_dir=FIXTURES / (folder or name), split=split, **options)


def words(row: dict[str, Any], name: str) -> str:
    return " ".join(row["tokens"][row[name]["start"] : row[name]["end"]])


def pairs(ds: datasets.Dataset) -> list[tuple[str, str, str]]:
    return [(words(row, "head"), row["label"], words(row, "tail")) for row in ds]


# --- tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("They can't, won't and it's O'Neil's.", "They ca n't , wo n't and it 's O'Neil 's ."),
        ("A self-portrait -- of 1,000.5 kg... and 1/2!", "A self-portrait -- of 1,000.5 kg ... and 1/2 !"),
        ("Mr. Roy (a.k.a. Bo) left the U.S. at 10:30.", "Mr. Roy ( a.k.a. Bo ) left the U.S. at 10:30 ."),
        ("See https://a.org/b?c=1, or mail x.y@b.co.uk.", "See https://a.org/b?c=1 , or mail x.y@b.co.uk ."),
        ("AT&T’s cafe\u0301 “costs” $5 and 20% of the 1990s.", "AT&T ’s cafe\u0301 “ costs ” $ 5 and 20 % of the 1990s ."),
        ("the students' \u00a0\t房子😀", "the students ' 房子 😀"),
        ("", ""),
    ],
)
def test_words_and_marks(text: str, expected: str) -> None:
    places = tokenise(text)
    assert " ".join(text[start:end] for start, end in places) == expected
    covered = {i for start, end in places for i in range(start, end)}
    assert all(i in covered or character.isspace() for i, character in enumerate(text))


def test_an_entitys_boundary_ends_a_token() -> None:
    text = "thesteel-mill's"
    assert [text[start:end] for start, end in tokenise(text, cuts=[3, 8])] == ["the", "steel", "-", "mill", "'s"]


# --- SemEval


def test_semeval() -> None:
    splits = load("semeval")
    assert {split: part["id"] for split, part in splits.items()} == {"train": ["1", "2", "3"], "test": ["8001", "8002"]}
    ds = splits["train"]
    assert list(ds.features) == [*get_task("relation").features, "text", "offsets", "comment"]
    for part in splits.values():
        sound_rows.check_places(part.to_list())
        assert part["group_id"] == part["id"]
    assert pairs(ds) == [
        ("miller", "Instrument-Agency(e2,e1)", "flour"),
        ("doves", "Other", "moles"),
        ("Smoke", "Cause-Effect(e2,e1)", "kitchen fire"),
    ]
    assert ds[0]["text"] == 'The miller\'s wife said "no" and put the flour into sacks.'
    assert ds[0]["head"] == {"start": 1, "end": 2, "type": ""}
    assert ds[0]["comment"] == "made up"
    # Only entities separate what the release writes without a space.
    assert ds[1]["tokens"][3:6] == ["doves", "and", "moles"]
    assert splits["test"]["comment"] == ["lines end in CR LF", ""]
    assert splits["test"][1]["tokens"] == ["The", "baker", "bakes", "bread"]


def test_semeval_in_the_releases_folders(tmp_path: Path) -> None:
    for folder, file in (("training", "TRAIN_FILE.TXT"), ("testing_keys", "TEST_FILE_FULL.TXT")):
        (tmp_path / f"SemEval2010_task8_{folder}").mkdir()
        shutil.copy(FIXTURES / "semeval" / file, tmp_path / f"SemEval2010_task8_{folder}" / file)
    assert {split: len(part) for split, part in hfcf.load("semeval", data_dir=tmp_path).items()} == {"train": 3, "test": 2}


def test_a_lost_blank_line_loses_no_row(copied: Callable[[str], Path]) -> None:
    folder = copied("semeval")
    path = folder / "TRAIN_FILE.TXT"
    path.write_text(path.read_text().replace("made up\n\n", "made up\n"))
    assert hfcf.load("semeval", data_dir=folder, split="train").to_list() == load("semeval", "train").to_list()


# --- CCG's SemEval


def test_ccg_semeval_reads_both_forms() -> None:
    splits = load("ccg_semeval")
    assert {split: len(part) for split, part in splits.items()} == {"train": 4, "validation": 1, "test": 2}
    for part in splits.values():
        sound_rows.check_places(part.to_list())
        assert part["group_id"] == part["id"]
    train, validation = splits["train"], splits["validation"]
    assert pairs(train)[3] == ("door handle", "Component-Whole(e1,e2)", "car")
    assert train[2]["tokens"][3:6] == ["-LRB-", "very", "-RRB-"]
    assert train["semeval_id"] == [None] * 4
    # The .json is read where it is there, because it has more.
    assert validation["semeval_id"] == ["10"]
    assert splits["test"]["semeval_id"] == ["8001", "8004"]
    assert (validation[0]["syntactic_terms"], validation[0]["semantic_terms"], validation[0]["mixed_terms"]) == ([], [3], [2, 3])


def test_the_two_forms_have_the_same_rows_under_the_same_ids(copied: Callable[[str], Path]) -> None:
    folder = copied("ccg_semeval")
    parsed = hfcf.load("ccg_semeval", data_dir=folder, split="10pct")
    (folder / "0.1" / "train-0.1.json").unlink()
    tagged = hfcf.load("ccg_semeval", data_dir=folder, split="10pct")
    shared = [*get_task("relation").features, "text", "offsets"]
    assert tagged.select_columns(shared).to_list() == parsed.select_columns(shared).to_list()
    assert parsed["semantic_terms"] == [[2], None]
    assert tagged["semantic_terms"] == [None, None]
    assert parsed["id"] == load("ccg_semeval", "train")["id"][2:0:-1]


def load_recipe(content: dict[str, Any]) -> Dataset:
    """The rows that a recipe names."""
    return runner.load_rows(recipe.parse_recipe(RowsRecipe, content, "the recipe"))


@pytest.mark.parametrize("spelling", ["10pct", "10%", "0.1", ".1", "10 %", 0.1])
def test_a_sample_in_a_splits_place(spelling: Any) -> None:
    ds = load("ccg_semeval", spelling)
    assert len(ds) == 2
    assert set(ds["split"]) == {"train"}
    assert load("ccg_semeval", "train", sample=str(spelling)).to_list() == ds.to_list()
    assert load_recipe({"corpus": "ccg_semeval", "data_dir": FIXTURES / "ccg_semeval", "split": spelling}).to_list() == ds.to_list()
    rows = load_rows([{"corpus": "ccg_semeval", "data_dir": FIXTURES / "ccg_semeval", "split": spelling}], training=True)
    assert rows["id"] == ds["id"]


def test_samples() -> None:
    assert [load("ccg_semeval", split)["id"] for split in ("2-shot", "2shot")] == [load("ccg_semeval", "train")["id"][:3]] * 2
    splits = load("ccg_semeval", sample="2-shot")
    assert {split: len(part) for split, part in splits.items()} == {"train": 3, "validation": 1, "test": 2}
    assert len(load("ccg_semeval", "2shot[:1]+validation")) == 2
    assert load("ccg_semeval", "dev", sample="10%")["id"] == load("ccg_semeval", "validation")["id"]
    assert load("ccg_semeval", "train", sample="original")["id"] == load("ccg_semeval", "train")["id"]
    assert {sample_of(sample) or sample for sample in SAMPLES} == set(SAMPLES)
    with pytest.raises(CorpusError, match=r"'20pct'.*original, 1pct, 3pct"):
        load("ccg_semeval", "20%")
    with pytest.raises(CorpusError, match=r"'4shot'.*4-shot/train-4-shot\.json.*: 10pct, 2shot"):
        load("ccg_semeval", "4-shot")
    with pytest.raises(ValueError, match=r"sample '2shot'.*'10pct'"):
        load("ccg_semeval", "10pct+2shot")
    with pytest.raises(ValueError, match="sample= names '10%'"):
        load("ccg_semeval", "2shot", sample="10%")
    with pytest.raises(TypeError, match=r"semeval.*option 'sample'"):
        load("semeval", "train", sample="10%")


def test_samples_files_by_name() -> None:
    folder = FIXTURES / "ccg_semeval"
    named = hfcf.load("ccg_semeval", data_files=folder / "0.1" / "train-0.1.tsv", split="train")
    assert named["id"] == load("ccg_semeval", "10pct")["id"]
    mapped = hfcf.load("ccg_semeval", data_files={"train": folder / "2-shot/train-2-shot.tsv", "dev": folder / "original/dev.tsv"})
    assert {split: len(part) for split, part in mapped.items()} == {"train": 3, "validation": 1}
    above = hfcf.load("re_attack", data_files={"test": folder / "original" / "test.tsv"}, split="test")
    assert above["id"] == load("ccg_semeval", "test")["id"]


# --- RE-Attack


def test_re_attack() -> None:
    ds = load("re_attack", "test")
    sound_rows.check_places(ds.to_list())
    assert list(ds.features) == [*get_task("relation").features, "text", "offsets"]
    assert ds["id"][2] == f"{ds['id'][0]}-2"  # The same row again is a row.
    assert pairs(ds)[1] == ("storm", "Cause-Effect(e1,e2)", "flood")  # e1 is the head wherever it stands.
    assert load("re_attack", "test", folder="re_attack/re-attack").to_list() == ds.to_list()


# --- DyGIE's JSON


def test_scierc() -> None:
    splits = load("scierc")
    ds = splits["train"]
    sound_rows.check_places(ds.to_list())
    assert ds["id"] == ["MADE_1-0-0", "MADE_1-1-0", "MADE_1-1-1"]
    assert ds["group_id"] == ["MADE_1"] * 3
    assert pairs(ds) == [
        ("small parsers", "USED-FOR", "translation"), ("taggers", "COMPARE", "They"), ("taggers", "CONJUNCTION", "rules"),
    ]  # fmt: skip
    assert ds[0]["head"] == {"start": 2, "end": 4, "type": "Method"}
    assert ds[1]["tail"] == {"start": 0, "end": 1, "type": "Generic"}
    assert splits["validation"][0]["tail"]["type"] == ""  # The file has no type for it.
    above = hfcf.load("scierc", data_dir=FIXTURES, split="train")
    assert above.to_list() == ds.to_list()


def test_lists_that_are_not_parallel_reject_their_document_alone(copied: Callable[[str], Path]) -> None:
    path = copied("scierc") / "train.json"
    first = json.loads(path.read_text().splitlines()[0])
    path.write_text("\n".join(map(json.dumps, [{**first, "relations": [[]]}, {**first, "doc_key": "MADE_9"}])))
    ds = hfcf.load("scierc", data_dir=path.parent, split="train", on_error="reject")
    assert [row["status"] is None for row in ds] == [False, True, True, True]
    for fact in ("'relations'", "1 lists", "3 sentences"):
        assert fact in ds[0]["status"]["reason"]


@pytest.mark.parametrize("place", [{"text": "a"}, None, [2]])
def test_an_entity_without_a_place_takes_no_relation_with_it(copied: Callable[[str], Path], place: Any) -> None:
    path = copied("scierc") / "train.json"
    first = json.loads(path.read_text().splitlines()[0])
    types = [[span["type"] for span in (row["head"], row["tail"])] for row in load("scierc", "train")]
    first["ner"][0].append([place, 3, "METHOD"])
    path.write_text(json.dumps(first) + "\n")
    ds = hfcf.load("scierc", data_dir=path.parent, split="train", on_error="reject")
    assert [[span["type"] for span in (row["head"], row["tail"])] for row in ds] == types[: len(ds)]
    assert ds["status"] == [None] * len(ds)


def test_ace_in_dygies_form() -> None:
    splits = load("ace2005", folder="ace2005_dygie")
    assert {split: pairs(part) for split, part in splits.items()} == {
        "nw": [("bank", "ORG-AFF", "Hale")],
        "wl": [("Hale", "ORG-AFF", "bank")],
    }
    assert [part["subtype"] for part in splits.values()] == [[None], ["Employment"]]
    assert splits["wl"][0]["head"] == {"start": 0, "end": 1, "type": "PER"}
    assert splits["wl"]["split"] == ["wl"]


# --- ACE's release


def test_ace_release(caplog: pytest.LogCaptureFixture) -> None:
    splits = load("ace2005")
    assert list(splits) == ["bc", "nw"]
    bc = splits["bc"]
    sound_rows.check_places(bc.to_list())
    assert list(bc.features) == [*get_task("relation").features, "text", "offsets", "subtype"]
    assert pairs(bc) == [
        ("Hale", "ORG-AFF", "Yes ! Mary Mills"), ("AT&T", "ART", "office"), ("office", "PART-WHOLE", "Lyon"),
        ("mayor", "GEN-AFF", "Nice"), ("sister", "PHYS", "Paris"), ("Roy", "PER-SOC", "sister"),
        ("Mary", "ORG-AFF", "Yes ! Mary Mills"), ("brother", "PHYS", "Oslo"),
    ]  # fmt: skip
    # No sentence ends inside an entity. The offset of what follows &amp; counts its five characters; the text has one.
    assert bc[1]["text"] == "Mrs. Hale, of the firm Yes! Mary Mills, flew to AT&T's main office in Lyon."
    assert bc[1]["head"]["type"] == "ORG"
    # One entity inside another: both stand where they are.
    assert (bc[6]["head"], bc[6]["tail"]) == ({"start": 8, "end": 9, "type": "PER"}, {"start": 6, "end": 10, "type": "ORG"})
    # A sentence goes on at a line's end, and stops at a blank line or a turn.
    assert bc[4]["text"] == "Roy's sister stayed in Paris"
    assert bc[0]["id"] == "MADE_BC_1-R1-1"
    assert set(bc["group_id"]) == {"MADE_BC_1"}
    assert bc[4]["subtype"] == "Located"
    assert "2 relation mentions whose arguments are not in one sentence of the TEXT element were left out" in bc.info.description
    assert "2 relation mentions without two entity mentions were left out" in bc.info.description
    assert "left out" in caplog.text
    # Where there is no timex2norm, an earlier stage's files are read; Arg-1 is the head, though it stands last.
    assert pairs(splits["nw"]) == [("Roy", "PHYS", "Oslo")]


def test_ace_with_crlf_is_the_same(copied: Callable[[str], Path]) -> None:
    folder = copied("ace2005")
    path = folder / "data/English/bc/timex2norm/MADE_BC_1.sgm"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert hfcf.load("ace2005", data_dir=folder, split="bc").to_list() == load("ace2005", "bc").to_list()


@pytest.mark.parametrize("both", [False, True])
def test_ace_with_escapes_in_capitals_is_the_same(copied: Callable[[str], Path], both: bool) -> None:
    """The release has &AMP; where its source had it so; the annotation quotes the text as it stands there, escaped once more."""
    folder = copied("ace2005")
    for path in (folder / "data/English/bc").rglob("MADE_BC_1.*"):
        raw = path.read_text()
        if path.suffix == ".sgm":
            path.write_text(raw.replace("AT&amp;T", "AT&AMP;T"))
        elif both:
            path.write_text(raw.replace("AT&amp;T", "AT&amp;AMP;T"))
    assert hfcf.load("ace2005", data_dir=folder, split="bc").to_list() == load("ace2005", "bc").to_list()


@pytest.mark.parametrize(
    ("suffix", "old", "new", "named", "left"),
    [
        (".sgm", "AT&amp;T", "AT&amp;E", "E2-1", 7),
        (".apf.xml", "</document>", "", "is not XML", 0),
        (".apf.xml", None, None, "MADE_BC_1.apf.xml", 0),
    ],
)
def test_a_bad_file_of_ace(
    copied: Callable[[str], Path], suffix: str, old: str | None, new: str | None, named: str, left: int
) -> None:
    folder = copied("ace2005")
    path = folder / f"data/English/bc/timex2norm/MADE_BC_1{suffix}"
    if old is None:
        path.unlink()
    else:
        path.write_text(path.read_text().replace(old, str(new), 1))
    with pytest.raises(CorpusError) as error:
        hfcf.load("ace2005", data_dir=folder, split="bc")
    assert named in str(error.value)
    ds = hfcf.load("ace2005", data_dir=folder, split="bc", on_error="reject")
    assert len([row for row in ds if row["status"] is None]) == left
    assert [named in row["status"]["reason"] for row in ds if row["status"]] == [True]


def test_ace_reads_a_changed_annotation_again(copied: Callable[[str], Path]) -> None:
    folder = copied("ace2005")
    assert hfcf.load("ace2005", data_dir=folder, split="nw")["label"] == ["PHYS"]
    path = folder / "data/English/nw/adj/MADE_NW_1.apf.xml"
    path.write_text(path.read_text().replace('TYPE="PHYS"', 'TYPE="ART"'))
    assert hfcf.load("ace2005", data_dir=folder, split="nw")["label"] == ["ART"]


def test_ace_says_what_it_looked_for(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"bc\.json.*<domain>/timex2norm/\*\.sgm with their \.apf\.xml"):
        hfcf.load("ace2005", data_dir=tmp_path)


# --- every one


def test_the_command_builds_a_sample(tmp_path: Path) -> None:
    folder = str(FIXTURES / "ccg_semeval")
    main("ccg_semeval", ["--data-dir", folder, "--out", str(tmp_path / "a"), "--split", "10%"])
    main("ccg_semeval", ["--data-dir", folder, "--out", str(tmp_path / "b"), "--sample", "10pct"])
    one = datasets.load_dataset(str(tmp_path / "a"), cache_dir=str(tmp_path / "hub"))
    two = datasets.load_dataset(str(tmp_path / "b"), cache_dir=str(tmp_path / "hub"))
    assert list(one) == ["train"]
    assert list(two) == ["train", "validation", "test"]
    assert one["train"].to_list() == two["train"].to_list()


# --- real files


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Any]:
    """`release("semeval", FOLDER)` is the whole of a real corpus, read once."""

    @functools.cache
    def read(name: str, folder: str) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HFCF_CACHE", str(tmp_path_factory.mktemp(name)))
            return hfcf.load(name, data_dir=Path(str(DATA)) / folder)

    return read


@real
def test_real_samples_are_parts_of_train(release: Callable[[str, str], Any]) -> None:
    folder = Path(str(DATA)) / "ccg_semeval" / "semeval"
    train = set(release("ccg_semeval", "ccg_semeval")["train"]["id"])
    sizes = {
        "1pct": 72, "3pct": 216, "5pct": 360, "10pct": 720,
        "2shot": 36, "4shot": 72, "8shot": 144, "16shot": 288, "32shot": 575,
    }  # fmt: skip
    for sample, size in sizes.items():
        ds = hfcf.load("ccg_semeval", data_dir=folder, split=sample)
        assert len(ds) == size
        assert set(ds["id"]) <= train
        sound_rows.check_places(ds.to_list())


@real
def test_real_rows_of_ccg_are_those_of_semeval(release: Callable[[str, str], Any]) -> None:
    """`semeval_id` names the row that has the same words, and our tokens are nearly the release's."""
    originals = {row["id"]: row for part in release("semeval", "semeval2010_task8").values() for row in part.to_list()}
    splits = release("ccg_semeval", "ccg_semeval")
    rows = [row for split in ("validation", "test") for row in splits[split].to_list() if row["semeval_id"] in originals]
    assert len(rows) > 1490
    named = {"-LRB-": "(", "-RRB-": ")", "``": '"', "''": '"', "`": "'"}
    equal = 0
    for row in rows:
        original = originals[row["semeval_id"]]
        assert row["label"] == original["label"]
        tokens, ours = [named.get(token, token) for token in row["tokens"]], original["tokens"]
        equal += tokens == ours and all(words(row, name) == words(original, name) for name in ("head", "tail"))
    assert equal / len(rows) > 0.95
