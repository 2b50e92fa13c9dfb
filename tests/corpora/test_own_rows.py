"""Rows as users of the Hub have them, through `from_dataset`, a system and `to_dataset`: three lines of a user's code each."""

from __future__ import annotations

import ast
import gzip
import json
import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import near_misses
import pandas as pd
import pytest
from datasets import (
    ClassLabel,
    Dataset,
    DatasetDict,
    Features,
    IterableDataset,
    IterableDatasetDict,
    List,
    Value,
    concatenate_datasets,
    load_dataset,
)
from offline_models import installed

import hfcf
from hfcf.core.model import Model
from hfcf.core.passage_store import Passages
from hfcf.core.task import get_task
from hfcf.corpora.custom.cells import write_question
from hfcf.corpora.custom.columns import LayoutError
from hfcf.corpora.custom.layout import distinct_columns
from hfcf.engines.continuation import Continuation
from hfcf.systems import system_class
from hfcf.tasks.qa import rewrite_all

TEXT, INT = Value("string"), Value("int64")
ROME = "Rome is the capital of Italy."
NLI = [
    (ROME, "Rome is a big city in Italy.", 0),
    ("The old dog sleeps in the house.", "A happy dog sleeps in a small house.", 1),
    ("A man plays a small guitar.", "Nobody plays a large guitar.", 2),
]
NLI_FEATURES = Features(
    {"premise": TEXT, "hypothesis": TEXT, "label": ClassLabel(names=["entailment", "neutral", "contradiction"])}
)


@pytest.fixture
def system() -> Callable[[str], Any]:
    """A system that asks no model."""
    if not installed("wordnet"):
        pytest.skip("WordNet is not installed")
    return lambda task: system_class({"verification": "eda", "relation": "synonym"}[task])()


def nli() -> Dataset:
    """stanfordnlp/snli: classes, and -1 where the annotators did not agree."""
    rows = [*NLI, ("A premise.", "A hypothesis.", -1)]
    return Dataset.from_dict(dict(zip(NLI_FEATURES, map(list, zip(*rows, strict=True)), strict=True)), features=NLI_FEATURES)


def multi_nli() -> Dataset:
    """nyu-mll/multi_nli: an id, a group, parses of both texts, a genre."""
    rows = [
        {
            "promptID": i // 2, "pairID": f"{i}n", "premise": premise, "premise_parse": "(ROOT)", "hypothesis": hypothesis,
            "hypothesis_parse": "(ROOT)", "genre": "travel", "label": label,
        }
        for i, (premise, hypothesis, label) in enumerate(NLI)
    ]  # fmt: skip
    plain = dict.fromkeys(rows[0], TEXT) | {"promptID": INT}
    return Dataset.from_list(rows, features=Features({**plain, "label": NLI_FEATURES["label"]}))


def glue() -> pd.DataFrame:
    """MNLI as a table of sentence1 and sentence2, the labels as texts, the ids as numbers."""
    names = NLI_FEATURES["label"].names
    return pd.DataFrame(
        [{"idx": 10 + i, "sentence1": one, "sentence2": other, "label": names[label]} for i, (one, other, label) in enumerate(NLI)]
    )


def fever() -> Dataset:
    """FEVER with the evidence as one text, as copies with gold evidence have it; numbers as ids."""
    rows = [
        {"id": 75397, "verifiable": "VERIFIABLE", "label": "SUPPORTS", "claim": "Rome is in Italy.", "evidence": ROME},
        {"id": 75398, "verifiable": "VERIFIABLE", "label": "REFUTES", "claim": "Rome is in a small France.", "evidence": ROME},
        {"id": 9, "verifiable": "NOT VERIFIABLE", "label": "NOT ENOUGH INFO", "claim": "Rome is happy.", "evidence": ROME},
    ]
    return Dataset.from_list(rows)


def vitaminc(folder: Any) -> Dataset:
    """tals/vitaminc as Parquet."""
    rows = [
        {
            "unique_id": f"5eb2_{i}", "case_id": "5eb2", "wiki_revision_id": 12 + i, "claim": claim, "evidence": ROME,
            "label": label, "page": "Rome", "revision_type": "real",
        }
        for i, (claim, label) in enumerate([("Rome is in Italy.", "SUPPORTS"), ("Rome is a small town in Gaul.", "REFUTES")])
    ]  # fmt: skip
    Dataset.from_list(rows).to_parquet(folder / "train.parquet")
    return load_dataset("parquet", data_files=str(folder / "train.parquet"), split="train")


def hops() -> list[dict[str, Any]]:
    """A list of dicts: booleans, and evidence as pairs of title and text."""
    jaws = [["Jaws", "Jaws was directed by Steven Spielberg."], ["Steven Spielberg", "He was born in Ohio."]]
    return [
        {"claim": "The director of Jaws was born in big Ohio.", "evidence": jaws, "label": True},
        {"claim": "The director of Jaws was born in France.", "evidence": jaws[:1], "label": False},
    ]


def gold_evidence() -> list[dict[str, Any]]:
    """copenlu/fever_gold_evidence: pieces of title, number of the sentence and text."""
    return [{"claim": "Rome is a big city.", "label": "SUPPORTS", "evidence": [["Rome", "7", ROME]], "original_id": "2"}]


def structs() -> Dataset:
    """Evidence as objects with a key of their own, numbers as labels, and columns of other names."""
    rows = [
        {
            "statement": claim,
            "docs": [{"title": "Rome", "text": ROME, "url": "http://rome"}],
            "verdict": verdict,
            "year": 1994 + verdict,
        }
        for claim, verdict in (("Rome is in Italy.", 1), ("Rome is in a small France.", 0))
    ]
    return Dataset.from_list(rows)


def semeval() -> Dataset:
    """sem_eval_2010_task_8: a tagged sentence, the relation as a class."""
    names = ["Cause-Effect(e1,e2)", "Content-Container(e1,e2)", "Other"]
    sentences = [
        ("The big <e1>eggs</e1> didn't come in a small red <e2>bucket</e2>, from the old house.", 1),
        ("A sudden <e2>fire</e2> was caused by the old <e1>wire</e1>.", 0),
    ]
    features = Features({"sentence": TEXT, "relation": ClassLabel(names=names)})
    return Dataset.from_dict({"sentence": [one for one, _ in sentences], "relation": [n for _, n in sentences]}, features=features)


def tacred() -> list[dict[str, Any]]:
    """TACRED's JSON: ends are inclusive, and there are tags for each token."""
    token = ["Ann", "Smith", "happily", "leads", "the", "big", "company", "Acme", "."]
    common = {"docid": "AFP_1", "subj_type": "PERSON", "obj_type": "ORGANIZATION", "stanford_pos": ["NNP"] * 9, "token": token}
    return [
        {**common, "id": "61b3", "relation": "per:employee_of", "subj_start": 0, "subj_end": 1, "obj_start": 7, "obj_end": 7},
        {**common, "id": "61b4", "relation": "no_relation", "subj_start": 7, "subj_end": 7, "obj_start": 0, "obj_end": 1},
    ]


def open_nre() -> list[dict[str, Any]]:
    """OpenNRE: h and t with exclusive places."""
    token = ["The", "big", "eggs", "came", "in", "an", "old", "bucket"]
    return [
        {
            "token": token,
            "h": {"name": "eggs", "id": "Q1", "pos": [2, 3]},
            "t": {"name": "bucket", "id": "Q2", "pos": [7, 8]},
            "relation": "in",
        }
    ]


def few_rel() -> list[dict[str, Any]]:
    """few_rel: the places of each mention, word by word."""
    return [
        {
            "relation": "P1", "tokens": ["The", "big", "eggs", "came", "in", "an", "old", "iron", "bucket"],
            "head": {"text": "eggs", "type": "Q1", "indices": [[2]]},
            "tail": {"text": "iron bucket", "type": "Q2", "indices": [[7, 8]]},
        }
    ]  # fmt: skip


def placed() -> list[dict[str, Any]]:
    """A text with the places of its entities in characters."""
    return [{"text": "The big eggs came in an old bucket.", "head": [8, 12], "tail": [28, 34], "relation": "in"}]


VERIFICATION: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "NLI with classes": (nli, {}),
    "NLI with ids, groups and parses": (multi_nli, {}),
    "a DataFrame of sentence1 and sentence2": (glue, {}),
    "FEVER with evidence as text": (fever, {}),
    "VitaminC's Parquet": (vitaminc, {}),
    "a list of dicts with booleans": (hops, {}),
    "FEVER with numbered sentences": (gold_evidence, {}),
    "other names and numbers as labels": (
        structs, {"columns": {"claim": "statement", "evidence": "docs"}, "labels": {0: "REFUTES", 1: "SUPPORTS"}}
    ),
    "splits": (lambda: DatasetDict({"train": nli(), "validation": nli().select([0])}), {}),
    "a stream": (lambda: nli().to_iterable_dataset(), {}),
}  # fmt: skip
RELATION: dict[str, Callable[[], Any]] = {
    "SemEval's tags": semeval, "TACRED's JSON": tacred, "OpenNRE's JSON": open_nre, "FewRel": few_rel,
    "places in characters": placed
}  # fmt: skip


@pytest.mark.parametrize("name", VERIFICATION)
def test_a_layout_of_claims_comes_back_as_it_was(name: str, system: Callable[[str], Any], tmp_path: Any) -> None:
    make, said = VERIFICATION[name]
    ds = make(tmp_path) if make is vitaminc else make()
    eda = system("verification")

    rows = hfcf.from_dataset(ds, **said)
    cf = hfcf.expand(eda(rows))
    new = hfcf.to_dataset(cf, like=ds, **said)

    check_round_trip(ds, new)
    check_reading(new, cf, said)


@pytest.mark.parametrize("name", RELATION)
def test_a_layout_of_relations_comes_back_as_it_was(name: str, system: Callable[[str], Any]) -> None:
    ds = RELATION[name]()
    synonym = system("relation")

    said = {"ends": "exclusive"} if name == "places in characters" else {}
    rows = hfcf.from_dataset(ds, **said)
    cf = hfcf.expand(synonym(rows))
    new = hfcf.to_dataset(cf, like=ds, **said)

    check_round_trip(ds, new)
    check_reading(new, cf, said)


def check_round_trip(ds: Any, new: Any) -> None:
    """The new rows have the old ones' form and labels, and join them."""
    if isinstance(ds, DatasetDict):
        for split in ds:
            check_round_trip(ds[split], new[split])
        return
    old = list(ds.to_dict("records") if isinstance(ds, pd.DataFrame) else ds)
    if isinstance(ds, pd.DataFrame):
        assert list(new.columns) == list(ds.columns)
        assert dict(new.dtypes) == dict(ds.dtypes)
        assert len(pd.concat([ds, new])) == len(old) + len(new)
        made = new.to_dict("records")
    elif isinstance(ds, list):
        made = new
    else:
        assert new.features == ds.features
        if isinstance(ds, Dataset):
            assert len(concatenate_datasets([ds, new])) == len(ds) + len(new)
        made = list(new)
    assert made
    for row in made:
        assert list(row) == list(old[0])
        assert row not in old


def check_reading(new: Any, cf: Any, said: dict[str, Any]) -> None:
    """What was written is read as the counterfactuals."""
    if isinstance(new, DatasetDict):
        for split in new:
            check_reading(new[split], cf[split], said)
        return
    rows = hfcf.from_dataset(new, **said)
    names = [name for name in ("claim", "evidence", "tokens", "label") if name in rows.features]
    assert [[row[name] for name in names] for row in rows] == [[row[name] for name in names] for row in cf]
    if "tokens" in names:
        places = ("head", "tail"), ("start", "end")
        assert [[row[one][edge] for one in places[0] for edge in places[1]] for row in rows] == [
            [row[one][edge] for one in places[0] for edge in places[1]] for row in cf
        ]


def test_ids_groups_and_the_columns_that_nobody_reads(system: Callable[[str], Any]) -> None:
    ds = multi_nli()
    rows = hfcf.from_dataset(ds)
    assert rows["id"][:] == ds["pairID"][:]
    assert rows["group_id"][:] == ["0", "0", "1"]
    new = hfcf.to_dataset(hfcf.expand(system("verification")(rows)), like=ds)
    assert new["pairID"][:] == ["0n:eda:claim", "1n:eda:claim", "2n:eda:claim"]
    assert new["genre"][:] == ["travel"] * 3
    assert new["promptID"][:] == ds["promptID"][:]
    assert new["hypothesis_parse"][:] == [None] * 3  # of words that are others now
    numbers = hfcf.to_dataset(hfcf.expand(system("verification")(hfcf.from_dataset(fever()))), like=fever())
    assert numbers["id"][:] == [75399, 75400, 75401]


def test_new_ids_are_counted_over_all_splits(system: Callable[[str], Any]) -> None:
    rows = fever()
    for numbers in (True, False):
        ids = list(range(1, len(rows) + 1)) if numbers else [f"{i // 2}" for i in range(len(rows))]
        own = rows.remove_columns("id").add_column("id", ids) if "id" in rows.column_names else rows.add_column("id", ids)
        like = DatasetDict({"train": own.select(range(0, len(own), 2)), "test": own.select(range(1, len(own), 2))})
        cf = {split: hfcf.expand(system("verification")(part)) for split, part in hfcf.from_dataset(like).items()}
        new = hfcf.to_dataset(DatasetDict(cf), like=like)
        every = [name for part in new.values() for name in part["id"]]
        assert len(every) > 2
        assert len({*every, *ids}) == len(every) + len(set(ids))


def test_a_column_that_tells_rows_apart_is_named(system: Callable[[str], Any], capsys: pytest.CaptureFixture[str]) -> None:
    n = len(nli())
    own = nli().add_column("sid", [f"s{i}" for i in range(n)]).add_column("genre", [f"g{i}" for i in range(n)])
    hfcf.to_dataset(hfcf.expand(system("verification")(hfcf.from_dataset(own))), like=own)
    lines = [line for line in capsys.readouterr().err.splitlines() if "differs" in line]
    assert (
        lines[0]
        == "hfcf.from_dataset: sid differs in all rows: if it is an id, give id='sid', or in a recipe columns: {id: sid, …}"
    )
    assert lines[1].endswith("their source's: if it is an id, give id='sid' to hfcf.from_dataset and hfcf.to_dataset")
    assert len(lines) == 2
    new = hfcf.to_dataset(hfcf.expand(system("verification")(hfcf.from_dataset(own, id="sid"))), like=own, id="sid")
    assert not {*new["sid"]} & {*own["sid"]}
    assert "differs" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["pairID", "qid", "row_id", "uuid", "ID", "valid", "paid", "nr"])
def test_names_of_ids(name: str) -> None:
    ds = Dataset.from_dict({name: [1, 2, 3]})
    assert distinct_columns([ds], ()) == ([] if name in ("valid", "paid", "nr") else [name])
    assert distinct_columns([Dataset.from_dict({name: range(20)})], ()) == [name]
    assert distinct_columns([Dataset.from_dict({name: [*range(19), 0]})], ()) == []


def test_a_set_without_rows_gives_one(system: Callable[[str], Any]) -> None:
    for ds, task in (
        (nli().select([]), None),
        ([], "verification"),
        (IterableDataset.from_generator(list, features=NLI_FEATURES), None),
    ):
        rows = hfcf.from_dataset(ds, task)
        assert list(rows) == []
        assert set(get_task("verification").features) < set(rows.features)
    empty = DatasetDict({"train": nli().select([])})
    assert {name: len(part) for name, part in hfcf.from_dataset(empty).items()} == {"train": 0}
    cf = hfcf.expand(system("verification")(hfcf.from_dataset(nli().select([]))))
    assert hfcf.to_dataset(cf, like=nli().select([])).column_names == nli().column_names
    with pytest.raises(ValueError, match='task="verification"'):
        hfcf.from_dataset([])


def test_an_id_does_not_depend_on_the_order_of_rows() -> None:
    rows = [{"claim": f"Claim {i % 5}.", "evidence": ROME, "label": "SUPPORTS", "n": i} for i in range(8)]
    shuffled = random.Random(1).sample(rows, len(rows))
    ids, others = (hfcf.from_dataset(one) for one in (rows, shuffled))
    assert {row["id"]: row["claim"] for row in ids} == {row["id"]: row["claim"] for row in others}
    assert len(set(ids["id"])) == 8
    assert sum(one.endswith("#2") for one in ids["id"]) == 3
    assert len(set(ids["group_id"])) == 5
    stream = Dataset.from_list(rows[:5]).to_iterable_dataset()
    assert [row["id"] for row in hfcf.from_dataset(stream)] == ids["id"][:5]


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["SUPPORTED", "Refuted", "NEI"], ["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"]),
        (["not_enough_info", "Entailment", "CONTRADICTION"], ["NOT ENOUGH INFO", "SUPPORTS", "REFUTES"]),
        (["true", "FALSE", "Not Enough Evidence"], ["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"]),
    ],
)
def test_vocabularies_of_labels(names: list[str], labels: list[str]) -> None:
    rows = [{"claim": f"Claim {name}.", "evidence": ROME, "gold_label": name} for name in names]
    assert hfcf.from_dataset(rows)["label"][:] == labels


def test_a_label_that_the_rows_lack_is_written_in_their_vocabulary() -> None:
    rows = [{"premise": ROME, "hypothesis": "Rome is in Italy.", "label": "entailment"}]
    assert hfcf.to_dataset(refuted(hfcf.from_dataset(rows)), like=rows)[0]["label"] == "contradiction"
    two = Dataset.from_list(rows).cast_column("label", ClassLabel(names=["entailment"]))
    with pytest.raises(LayoutError, match=r"REFUTES.*entailment"):
        hfcf.to_dataset(refuted(hfcf.from_dataset(two)), like=two)


def test_a_category_that_only_counterfactuals_have_is_no_nan() -> None:
    own = pd.DataFrame([{"premise": ROME, "hypothesis": "Rome is in Italy.", "label": "entailment"}])
    own["label"] = own["label"].astype("category")
    new = hfcf.to_dataset(refuted(hfcf.from_dataset(own)), like=own)
    assert new["label"].tolist() == ["contradiction"]
    assert new.dtypes["label"] == "category"


def test_labels_name_classes_that_are_there() -> None:
    with pytest.raises(ValueError, match=r"labels= names 'neutrl'.*did you mean 'neutral'"):
        hfcf.from_dataset(nli(), labels={"neutrl": None})
    rows = [{"premise": ROME, "hypothesis": "Rome is in Italy.", "label": "contradiction"}]
    new = hfcf.to_dataset(refuted(hfcf.from_dataset(rows, labels={"contra": "REFUTES"})), like=rows, labels={"contra": "REFUTES"})
    assert new[0]["label"] == "contradiction"  # the one that stands in the rows


def test_splits_are_laid_out_as_all_of_them() -> None:
    rows = [{"uid": uid, "premise": ROME, "hypothesis": "Rome is in Italy.", "label": "entailment"} for uid in ("a", None)]
    own = DatasetDict({"train": Dataset.from_list(rows[:1]), "test": Dataset.from_list(rows[1:]).cast_column("uid", TEXT)})
    cf = DatasetDict({split: refuted(part) for split, part in hfcf.from_dataset(own).items()})
    new = hfcf.to_dataset(cf, like=own)  # of "train" alone, uid would be the id
    assert {split: part["label"][:] for split, part in new.items()} == {"train": ["contradiction"], "test": ["contradiction"]}


def test_a_row_of_one_split_is_not_taken_for_one_of_another() -> None:
    row = {"premise": ROME, "hypothesis": "Rome is in Italy.", "label": "entailment", "id": 0}
    own = DatasetDict({split: Dataset.from_list([{**row, "url": split}]) for split in ("train", "test")})
    cf = DatasetDict({split: refuted(part) for split, part in hfcf.from_dataset(own).items()})
    assert hfcf.to_dataset(cf["test"], like=own)["url"] == ["test"]
    assert hfcf.to_dataset(concatenate_datasets([cf["test"], cf["train"]]), like=own)["url"] == ["test", "train"]
    streams = IterableDatasetDict({split: part.to_iterable_dataset() for split, part in cf.items()})
    for like in (own, IterableDatasetDict({split: part.to_iterable_dataset() for split, part in own.items()})):
        new = hfcf.to_dataset(streams, like=like)
        assert {split: part["url"][:] for split, part in new.items()} == {"train": ["train"], "test": ["test"]}


def refuted(rows: Dataset) -> Dataset:
    """A counterfactual of the first row, as `expand` gives it."""
    row = rows[0]
    edit = {"field": "claim", "piece": -1, "start": 8, "end": 10, "before": "in", "after": "near"}
    new = {**row, "claim": row["claim"].replace(" in ", " near "), "label": "REFUTES", "id": "1", "source_id": row["id"]}
    task = get_task("verification")
    new |= {"system": "s", "change": "claim", "edits": [edit], "scores": []}
    return Dataset.from_list([{name: new[name] for name in task.counterfactual}], features=task.counterfactual)


def test_rows_with_a_relation_are_asked_for_their_entities() -> None:
    rows = [{"sentence": "Ada met Bo.", "e1_start": 0, "e1_end": 3, "e2_start": 8, "e2_end": 10, "relation": "met"}]
    with pytest.raises(LayoutError, match=r'columns={"head": "…", "tail": "…"}') as error:
        hfcf.from_dataset(rows)
    assert [cure["columns"] for cure in error.value.cures.values()] == [{"head": "…", "tail": "…"}, {"label": "…"}]
    ds = hfcf.from_dataset(rows, columns={"head": ["e1_start", "e1_end"], "tail": ["e2_start", "e2_end"]}, ends="exclusive")
    assert (ds[0]["label"], ds[0]["tokens"][ds[0]["tail"]["start"]]) == ("met", "Bo")


def test_the_line_to_type_keeps_what_was_given() -> None:
    rows = [{"a": "Rome is in Italy.", "b": ROME, "c": 1, "key": "r1"}]
    columns = {"claim": "a", "evidence": "b"}
    found: dict[str, Any] = {}
    for field, value in (("label", "c"), ("1", "SUPPORTS")):  # first the column of the label, then what its number means
        with pytest.raises(LayoutError) as error:
            hfcf.from_dataset(rows, **{"columns": columns, "id": "key", **found})
        call = ast.parse(str(error.value).splitlines()[1].strip(), mode="eval").body
        assert isinstance(call, ast.Call)
        found = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords if keyword.arg}
        last = found["labels" if field == "1" else "columns"]
        last |= {int(field) if field == "1" else field: value}
    assert found == {"columns": {**columns, "label": "c"}, "labels": {1: "SUPPORTS"}, "id": "key"}
    ds = hfcf.from_dataset(rows, **found)
    assert ds["label"][:] == ["SUPPORTS"]
    with pytest.raises(LayoutError) as error:
        hfcf.to_dataset(refuted(ds), like=rows, **found)
    call = ast.parse(str(error.value).splitlines()[1].strip(), mode="eval").body
    assert isinstance(call, ast.Call)
    given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    assert ast.literal_eval(given["columns"] or "") == found["columns"]
    assert given["id"] == "'key'"
    assert "REFUTES" in given["labels"]
    with pytest.raises(LayoutError, match=r'task="verification".*labels='):
        hfcf.from_dataset(rows, "verification", columns=columns | {"label": "c"})


@pytest.mark.parametrize(
    ("rows", "said", "facts"),
    [
        ([{"x": "a", "y": "b"}], {}, ["x, y", '"claim": "…"', '"question": "…"', "hfcf.from_dataset(ds, columns="]),
        ([{"claim": "a b", "evidence": "c", "n": 1}], {}, ["claim, evidence, n", '"label": "…"']),
        ([{"claim": "a b", "evidence": "c", "label": 2}], {}, ["2", "no names", 'labels={2: "…"}']),
        ([{"sentence1": "a b", "sentence2": "c", "label": "not_equivalent"}], {}, ["not_equivalent", "unknown"]),
        ([{"claim": "a", "evidence": "b", "question": "c", "answers": ["d"], "label": "true"}], {}, ['task="qa"', "verification"]),
        (
            [{"token": ["a", "b", "c", "d"], "subj_start": 0, "subj_end": 1, "obj_start": 2, "obj_end": 3, "relation": "r"}], {},
            ['ends="inclusive"', 'ends="exclusive"'],
        ),
        ([{"a": "x", "b": "y", "c": 1}], {"columns": {"b": "claim"}}, ["'b'", '"claim": "b"']),
        (
            [{"a": "x", "c": 1}], {"columns": {"text": "a", "label": "c"}, "task": "verification"},
            ["'text'", "task='classification'", "texts", "relations"],
        ),
        ([{"a": "x", "b": "y", "c": 1}], {"columns": {"claim": "aa"}}, ["no column 'aa'", "a, b, c"]),
        ([{"claim": "x", "evidence": "y", "label": 0}], {"labels": {0: "yes"}}, ["'yes'", "SUPPORTS"]),
        ([{"claim": "a b", "evidence": "c", "label": ["true"]}], {}, ["'label'", "one label"]),
        ([{"claim": None, "evidence": "y", "label": "true"}] * 2, {}, ["all 2 rows are unreadable", "row 1", "claim"]),
    ],
)  # fmt: skip
def test_what_cannot_be_guessed_is_one_error(rows: list[dict[str, Any]], said: dict[str, Any], facts: list[str]) -> None:
    with pytest.raises(ValueError, match=re.escape(facts[0])) as error:
        hfcf.from_dataset(rows, **said)
    for fact in facts:
        assert fact in str(error.value), str(error.value)


def test_what_was_guessed_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    ds = hfcf.from_dataset(nli())
    first, second = capsys.readouterr().err.splitlines()
    for fact in ("claim ← hypothesis", "evidence ← premise", "entailment → SUPPORTS", "id ← the row's content"):
        assert fact in first
    for fact in ("1 of 4", "row 4", "-1"):
        assert fact in second
    assert ds["status"][3] == {"accepted": False, "stage": "load", "reason": "there is no label (-1)"}
    with pytest.raises(ValueError, match=r"row 4.*-1"):
        hfcf.from_dataset(nli(), on_error="raise")


def test_bookkeeping_on_a_handful_of_rows_is_silent(system: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    quiet: list[int] = []

    @contextmanager
    def note(rows: int) -> Iterator[None]:
        quiet.append(rows)
        yield

    for module in ("corpora.custom.load", "corpora.custom.export", "core.expand"):
        monkeypatch.setattr(f"hfcf.{module}.quiet_few", note)
    done = system("verification")(hfcf.from_dataset(nli()))
    new = hfcf.to_dataset(hfcf.expand(done), like=nli())
    hfcf.rejected(done)
    assert quiet == [4, 4, 4, len(new), 4]


def test_a_class_with_an_unknown_name_is_asked_for_and_a_slip_is_rejected() -> None:
    pairs = [{"sentence1": f"It has {i}.", "sentence2": f"It has {i} arches.", "label": "entailment"} for i in range(8)]
    half = [{**row, "label": "not_entailment"} if i % 2 else row for i, row in enumerate(pairs)]
    with pytest.raises(LayoutError, match="not_entailment"):
        hfcf.from_dataset(Dataset.from_list(half))
    ds = hfcf.from_dataset(Dataset.from_list([*pairs[:7], {**pairs[7], "label": "entialment"}]), on_error="reject")
    assert [status and status["accepted"] for status in ds["status"]] == [None] * 7 + [False]


def test_a_repeated_id_is_rejected_and_rows_of_a_label_can_be_left_out() -> None:
    rows = [{"claim": f"Claim {label}.", "evidence": ROME, "label": label, "key": "k"} for label in ("true", "mixture")]
    ds = hfcf.from_dataset(rows, labels={"mixture": None}, id="key")
    assert ds["id"][:] == ["k", "k#2"]
    assert ds["status"][0] is None
    assert "mixture" in ds["status"][1]["reason"]
    twice = hfcf.from_dataset([rows[0], {**rows[0], "claim": "Claim two."}], id="key")
    assert "row 1" in twice["status"][1]["reason"]
    assert twice["id"][1] == "k#2"


def test_columns_that_were_said_otherwise_are_noticed(system: Callable[[str], Any]) -> None:
    ds = [{"sentence1": ROME, "sentence2": "Rome is a big city.", "label": "entailment"}]
    said = {"columns": {"claim": "sentence1", "evidence": "sentence2"}, "id": "k"}
    ds = [{**row, "k": "1"} for row in ds]
    cf = hfcf.expand(system("verification")(hfcf.from_dataset(ds, **said)))
    assert hfcf.to_dataset(cf, like=ds, **said)[0]["sentence2"] == "Rome is a big city."
    with pytest.raises(ValueError, match="columns="):
        hfcf.to_dataset(cf, like=ds, id="k")
    with pytest.raises(ValueError, match="sources that like= does not have"):
        hfcf.to_dataset(cf, like=ds)


def test_labels_that_are_said_once_only_are_asked_for_by_the_call_that_lacks_them(system: Callable[[str], Any]) -> None:
    ds = [{"claim": "Rome is old.", "evidence": ROME, "label": "backed"}]
    cf = hfcf.expand(system("verification")(hfcf.from_dataset(ds, labels={"backed": "SUPPORTS", "rejected": "REFUTES"})))
    with pytest.raises(ValueError, match=r"hfcf\.to_dataset\(cf, like=ds, labels=\{\"backed\": \"…\"\}\)"):
        hfcf.to_dataset(cf, like=ds)


def test_several_columns_are_pieces_of_evidence(system: Callable[[str], Any]) -> None:
    ds = [
        {"q": "Rome is a big city.", "fact1": ROME, "fact2": "Italy is a state.", "label": "true"},
        {"q": "Rome is a small town.", "fact1": ROME, "fact2": None, "label": "false"},
    ]
    said = {"columns": {"claim": "q", "evidence": ["fact1", "fact2"]}}
    rows = hfcf.from_dataset(ds, **said)
    assert [len(row["evidence"]) for row in rows] == [2, 1]
    new = hfcf.to_dataset(hfcf.expand(system("verification")(rows)), like=ds, **said)
    assert [row["fact2"] for row in new] == ["Italy is a state.", None]


@pytest.mark.skipif(not installed("spacy"), reason="the offline spaCy pipeline is not installed")
def test_squad_comes_back_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_REQUEST_CACHE", "off")
    near_misses.plant(monkeypatch)
    rows = near_misses.rows().select([0])
    answers = {"text": List(TEXT), "answer_start": List(Value("int32"))}
    features = Features({"id": TEXT, "title": TEXT, "context": TEXT, "question": TEXT, "answers": answers})
    ds = rows.select_columns(list(features)).cast(features)
    rgf = hfcf.RGF(
        generator=Model("questions"), readers=["deaf-1000", "deaf-2", "deaf-3"], agree=2, questions=5, num_beams=5,
        reader=Model("reader"), n_best=3, k=6, passages=Passages.of(near_misses.collection()),
    )  # fmt: skip

    made = hfcf.from_dataset(ds)
    cf = hfcf.expand(rgf(made))
    new = hfcf.to_dataset(cf, like=ds)

    assert made[0]["group_id"] == "Richmond"
    assert made[0]["aliases"] == ["Trent Cotchin", "Cotchin"]
    assert new.features == ds.features
    assert len(concatenate_datasets([ds, new])) == 1 + len(new)
    for row in new:
        assert row["answers"]["text"]
        assert row["question"] != ds[0]["question"]
        start, text = row["answers"]["answer_start"][0], row["answers"]["text"][0]
        assert row["context"][start : start + len(text)] == text


@pytest.mark.parametrize(
    "answers",
    [
        {"answers": [{"text": "Slovenia", "answer_start": 13}]}, {"answers": ["Slovenia"]}, {"answer": "Slovenia"},
        {"answer": "Slovenia", "answer_start": 13},
    ],
)  # fmt: skip
def test_forms_of_answers_come_back(answers: dict[str, Any]) -> None:
    ds = [{"question": "Where is Bled?", "passage": "Bled lies in Slovenia.", **answers}]
    row = hfcf.from_dataset(ds)[0]
    assert row["answers"] == {"text": ["Slovenia"], "answer_start": [13]}
    task = get_task("qa")
    changes = {"question": "What lies there?", "answers": {"text": ["Bled"], "answer_start": [0]}}
    new = {
        **row,
        **changes,
        "edits": rewrite_all(row, **changes),
        "source_id": row["id"],
        "system": "s",
        "change": "both",
        "scores": [],
    }
    cf = Dataset.from_list([{name: new[name] for name in task.counterfactual}], features=task.counterfactual)
    out = hfcf.to_dataset(cf, like=ds)[0]
    assert out["question"] == "What lies there?"
    assert out["passage"] == ds[0]["passage"]
    assert hfcf.from_dataset([out])[0]["answers"] == {"text": ["Bled"], "answer_start": [0]}


def test_crossaug_runs_on_nli(tiny_model: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_REQUEST_CACHE", "off")
    answer = [[{"text": "Rome is a big city in Spain.", "score": -1.0, "finished": True}]]
    monkeypatch.setattr(Continuation, "forward", lambda self, loaded, encoded: answer * len(encoded))
    ds = nli().select([0])

    cf = hfcf.expand(hfcf.CrossAug(generator=Model(tiny_model("t5")))(hfcf.from_dataset(ds)))
    new = hfcf.to_dataset(cf, like=ds)

    assert [(row["premise"], row["hypothesis"], row["label"]) for row in new] == [
        (ROME, "Rome is a big city in Spain.", 2),
        ("Rome is the capital of Spain.", "Rome is a big city in Italy.", 2),
        ("Rome is the capital of Spain.", "Rome is a big city in Spain.", 0),
    ]


def test_counterfactuals_with_classes_as_they_are_published(system: Callable[[str], Any]) -> None:
    cf = hfcf.expand(system("verification")(hfcf.from_dataset(fever())))
    classes = cf.cast_column("label", ClassLabel(names=["REFUTES", "SUPPORTS", "NOT ENOUGH INFO"]))
    assert hfcf.to_dataset(classes, like=fever()).to_list() == hfcf.to_dataset(cf, like=fever()).to_list()


def test_rows_of_ours_stay_as_they_are(system: Callable[[str], Any]) -> None:
    ds = Dataset.from_list(hfcf.from_dataset(fever()).to_list(), features=hfcf.from_dataset(fever()).features)
    ds = ds.remove_columns("status")
    assert hfcf.from_dataset(ds) is not None
    assert hfcf.from_dataset(ds).to_list() == ds.to_list()
    cf = hfcf.expand(system("verification")(ds))
    assert hfcf.to_dataset(cf, like=ds)["id"][:] == cf["id"][:]


def test_streams_stay_streams() -> None:
    stream = hfcf.from_dataset(nli().to_iterable_dataset())
    assert isinstance(stream, IterableDataset)
    assert [row["label"] for row in stream] == ["SUPPORTS", "NOT ENOUGH INFO", "REFUTES", None]


def test_the_column_of_places_in_files_is_named_by_no_error(tmp_path: Path) -> None:
    files = {}
    for split, names in (("train", "claim,evidence,label"), ("test", "claim,evidence")):
        files[split] = str(tmp_path / f"{split}.csv")
        Path(files[split]).write_text(f"{names}\nRome is old.,Rome stands.{',true' * (split == 'train')}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"'test'.*'label'.*claim, evidence:"):
        hfcf.load("csv", data_files=files)


@pytest.mark.parametrize("labels", [["REFUTES", "SUPPORTS"], ["SUPPORTS", "REFUTES", "NOT ENOUGH INFO", "REFUTES"]])
def test_a_list_of_labels_that_does_not_fit_is_an_error(labels: list[str]) -> None:
    with pytest.raises(ValueError, match="labels="):
        hfcf.from_dataset(nli(), labels=labels)
    texts = Dataset.from_dict({"claim": ["Rome is old."], "evidence": ["Rome is old."], "label": ["supports"]})
    with pytest.raises(ValueError, match="labels="):
        hfcf.from_dataset(texts, labels=labels)


def test_two_files_of_one_split_are_an_error(tmp_path: Path) -> None:
    for name in ("validation", "dev"):
        nli().to_json(tmp_path / f"{name}.jsonl")
    with pytest.raises(ValueError, match="validation"):
        hfcf.load("jsonl", data_dir=tmp_path)


def test_a_new_row_s_missing_numbers_are_null_in_a_frame() -> None:
    frame = pd.DataFrame(
        {
            "claim": ["Rome is old.", "Rome is new."], "evidence": [ROME, ROME], "label": ["SUPPORTS", "REFUTES"],
            "claim_len": [3, 3],
        }
    )  # fmt: skip
    rows = hfcf.from_dataset(frame)
    row = {**rows[0], "id": "new", "claim": "Rome is new.", "label": "REFUTES", "source_id": rows[0]["id"], "system": "made"}
    edit = {"field": "claim", "piece": -1, "start": 8, "end": 11, "before": "old", "after": "new"}
    made = Dataset.from_list([{**row, "change": "claim", "edits": [edit], "scores": []}])
    new = hfcf.to_dataset(made, like=frame)
    assert new["claim"].tolist() == ["Rome is new."]
    assert new["claim_len"].isna().all()


def test_val_is_a_name_of_the_validation_split(tmp_path: Path) -> None:
    labels = ["SUPPORTS", "NOT ENOUGH INFO", "REFUTES"]
    for name in ("train", "val"):
        nli().to_json(tmp_path / f"{name}.jsonl")
    assert set(hfcf.load("jsonl", data_dir=tmp_path, on_error="reject", labels=labels)) == {"train", "validation"}


def test_packed_lists_and_tables_with_semicolons(tmp_path: Path) -> None:
    row = {"claim": "Rome is old.", "evidence": ROME, "label": "SUPPORTS"}
    with gzip.open(tmp_path / "rows.json.gz", "wt") as file:
        json.dump([row, row], file)
    with gzip.open(tmp_path / "rows.csv.gz", "wt") as file:
        file.write(f"claim;evidence;label\nRome is old.;{ROME};SUPPORTS\n")
    assert len(hfcf.from_dataset(tmp_path / "rows.json.gz")) == 2
    assert hfcf.from_dataset(tmp_path / "rows.csv.gz")["claim"] == ["Rome is old."]


def test_numbers_of_groups_that_a_frame_made_floats_still_name_groups() -> None:
    names = ["one", "two", "three"]
    frame = pd.DataFrame({"text": [f"Text {name}." for name in names], "label": ["a", "b", "a"], "group_id": [7, 7, None]})
    groups = hfcf.from_dataset(frame, task="classification")["group_id"]
    assert groups[:2] == ["7", "7"]
    assert groups[2] not in (None, "", "7", "nan")


def test_what_is_no_list_beside_lists_of_answers_is_null_in_a_new_row() -> None:
    own = {"answers": {"text": ["Bled"], "answer_start": [0], "is_impossible": False}}
    old, new = ({"answers": {"text": [text], "answer_start": [start]}} for text, start in (("Bled", 0), ("Ljubljana", 3)))
    written = write_question(own, old, new, {"answers": "answers"})
    assert written["answers"] == {"text": ["Ljubljana"], "answer_start": [3], "is_impossible": None}


@pytest.mark.parametrize("write", [int, str])
def test_minus_one_beside_numbers_without_names_may_be_a_class(write: Callable[[int], Any]) -> None:
    rows = [{"text": f"Text {i}.", "label": write(i % 3 - 1)} for i in range(9)]
    with pytest.raises(ValueError, match="-1"):
        hfcf.from_dataset(rows, task="classification")
    read = hfcf.from_dataset(rows, task="classification", labels={-1: "bad", 0: "so-so", 1: "good"})
    assert read["label"][:3] == ["bad", "so-so", "good"]


def flipped(rows: Dataset, i: int = 0, **changes: Any) -> Dataset:
    """A counterfactual of a row, whose claim has "old" replaced by "new", with the other label."""
    edit = {"field": "claim", "piece": -1, "start": 8, "end": 11, "before": "old", "after": "new"}
    row = {**rows[i], "id": "new", "claim": "Rome is new.", "label": "REFUTES", "source_id": rows[i]["id"], "system": "made"}
    row.pop("status", None)
    return Dataset.from_list([{**row, "change": "claim", "edits": [edit], "scores": [], **changes}])


def test_a_valid_table_with_line_breaks_and_commas_in_its_cells_is_read_as_pandas_reads_it(tmp_path: Path) -> None:
    texts = ["I loved it, really.\nA great film, I would say.", "Dull and slow.", "A fine cast."]
    frame = pd.DataFrame({"id": ["1", "2", "3"], "text": texts, "label": ["pos", "neg", "pos"]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    rows = hfcf.from_dataset(tmp_path / "rows.csv")
    assert rows["text"][:] == texts
    assert rows["label"][:] == ["pos", "neg", "pos"]


def test_ids_of_digits_keep_their_zeros() -> None:
    rows = [{"id": name, "text": f"Text {name}.", "label": "a"} for name in ("007", "7", "0010")]
    assert hfcf.from_dataset(rows, task="classification")["id"][:] == ["007", "7", "0010"]


@pytest.mark.parametrize(("label", "other"), [("y", "country"), ("stance", "instance_no")])
def test_a_column_whose_name_only_contains_the_label_s_is_the_source_s(label: str, other: str) -> None:
    mine = [
        {"claim": "Rome is old.", "evidence": ROME, label: "true", other: 7, f"{label}_text": "it is true"},
        {"claim": "Rome is an island.", "evidence": ROME, label: "false", other: 8, f"{label}_text": "it is false"},
    ]
    columns = {"label": label}
    (new,) = hfcf.to_dataset(flipped(hfcf.from_dataset(mine, columns=columns)), like=mine, columns=columns)
    assert (new[label], new[other], new[f"{label}_text"]) == ("false", 7, "it is false")


def test_a_known_label_is_known_wherever_a_stream_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hfcf.corpora.custom.tables.HEAD", 2)

    def rows() -> Iterator[dict[str, Any]]:
        yield from (
            {"claim": f"Claim {i}.", "evidence": ROME, "label": name} for i, name in enumerate(["true"] * 3 + ["false", "so"])
        )

    read = list(hfcf.from_dataset(IterableDataset.from_generator(rows)))
    assert [row["label"] for row in read] == ["SUPPORTS"] * 3 + ["REFUTES", None]
    assert "so" in read[-1]["status"]["reason"]


def test_a_stream_s_rows_may_lack_columns_and_have_several_forms() -> None:
    def rows() -> Iterator[dict[str, Any]]:
        yield {"claim": "Rome is old.", "evidence": ROME, "label": "true"}
        yield {"claim": "Rome is new.", "evidence": ROME}
        yield {"claim": "Rome is big.", "evidence": [ROME, "It grows."], "label": "true", "more": 1}

    one, two, three = hfcf.from_dataset(IterableDataset.from_generator(rows))
    assert [row["status"] is None for row in (one, two, three)] == [True, False, True]
    assert [piece["text"] for piece in three["evidence"]] == [ROME, "It grows."]


def test_numbers_that_a_frame_made_floats_go_on() -> None:
    frame = pd.DataFrame({"claim": ["Rome is old."] * 3, "evidence": [ROME] * 3, "label": [1, None, 1], "id": [1, 2, None]})
    labels = {1: "SUPPORTS", 0: "REFUTES"}
    new = hfcf.to_dataset(flipped(hfcf.from_dataset(frame, labels=labels)), like=frame, labels=labels)
    assert (new["id"].tolist(), new["label"].tolist()) == ([3.0], [0.0])


@pytest.mark.parametrize("field", ["claim", "label", "id", "title"])
def test_a_field_of_one_column_can_not_have_two(field: str) -> None:
    mine = [{"claim": "Rome is old.", "evidence": ROME, "label": "true", "a": "x", "b": "y"}]
    with pytest.raises(ValueError, match=rf"{field}.*a, b"):
        hfcf.from_dataset(mine, columns={field: ["a", "b"]})


def test_values_of_several_types_come_back_as_they_were() -> None:
    mine = [
        {"claim": "Rome is old.", "evidence": [ROME, "It grows."], "label": "true", "score": 1},
        {"claim": "Rome is an island.", "evidence": ROME, "label": "false", "score": "n/a"},
    ]
    made = flipped(hfcf.from_dataset(mine))
    (new,) = hfcf.to_dataset(made, like=mine)
    assert (new["evidence"], new["score"]) == ([ROME, "It grows."], 1)
    frame = hfcf.to_dataset(made, like=pd.DataFrame(mine))
    assert (frame["evidence"][0], frame["score"][0]) == ([ROME, "It grows."], 1)


def test_a_text_that_begins_with_a_link_is_a_text() -> None:
    text = "[[Rome]] is the capital of [[Italy]]."
    (row,) = hfcf.from_dataset([{"claim": "Rome is old.", "evidence": text, "label": "true"}])
    assert row["evidence"] == [{"title": "", "text": text}]


def test_a_title_is_that_of_every_piece_without_one() -> None:
    mine = [{"claim": "Rome is old.", "evidence": [ROME, {"title": "Tiber", "text": "It flows."}], "page": "Rome", "label": "true"}]
    (row,) = hfcf.from_dataset(mine, title="page")
    assert [piece["title"] for piece in row["evidence"]] == ["Rome", "Tiber"]


def test_rows_may_have_one_answer_or_several(tmp_path: Path) -> None:
    rows = [
        {"question": "how tall", "context": "The tower is 330 metres tall.", "answer": "330 metres"},
        {"question": "who", "context": "It was designed by Tachu Naito.", "answers": ["Tachu Naito", "Naito"]},
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    read = hfcf.from_dataset(file)
    assert [answers["text"] for answers in read["answers"]] == [["330 metres"], ["Tachu Naito", "Naito"]]
    old = {"answers": {"text": ["330 metres"], "answer_start": [13]}}
    new = {"answers": {"text": ["tower"], "answer_start": [4]}}
    columns = {"answers": "answers", "answer": "answer"}
    assert write_question({**rows[0], "answers": None}, old, new, columns) == {"answer": "tower"}
    both = write_question({**rows[0], "answers": ["330 metres"]}, old, new, columns)
    assert both == {"answers": ["tower"], "answer": "tower"}, "no old answer is left beside the new one"


@pytest.mark.parametrize(
    ("context", "answer", "start"),
    [("由内藤多仲设计。", "内藤多仲", 1), ("에펠탑은 파리에 있다.", "파리", 5), ("It costs US$5.", "$5", 11)],
)
def test_answers_are_found_where_no_space_bounds_them(context: str, answer: str, start: int) -> None:
    (row,) = hfcf.from_dataset([{"question": "?a", "context": context, "answer": answer}])
    assert row["answers"] == {"text": [answer], "answer_start": [start]}


def test_places_that_pandas_made_floats_are_whole_in_a_table(tmp_path: Path) -> None:
    rows = {"question": ["who", "is it"], "context": ["It was designed by Tachu Naito."] * 2}
    frame = pd.DataFrame({**rows, "answer": ["Tachu Naito", "yes"], "answer_start": [19, None]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    assert hfcf.from_dataset(tmp_path / "rows.csv")["answers"][0] == {"text": ["Tachu Naito"], "answer_start": [19]}


@pytest.mark.parametrize("answer", [" 1889 ", "1889.0", 1889.0])
def test_an_answer_is_found_as_tables_write_it(answer: Any) -> None:
    rows = hfcf.from_dataset([{"question": "When?", "context": "It opened in 1889.", "answer": answer}])
    assert rows[0]["answers"] == {"text": ["1889"], "answer_start": [13]}


def test_a_number_with_a_point_that_the_context_has_stays() -> None:
    rows = hfcf.from_dataset([{"question": "How far?", "context": "It is 12.0 km, or 12.", "answer": "12.0"}])
    assert rows[0]["answers"] == {"text": ["12.0"], "answer_start": [6]}


def test_an_answer_is_a_number_where_the_source_s_is() -> None:
    old = {"answers": {"text": ["1889"], "answer_start": [13]}}
    new = {"answers": {"text": ["1958"], "answer_start": [13]}}
    assert write_question({"answer": 1889}, old, new, {"answer": "answer"}) == {"answer": 1958}
    with pytest.raises(ValueError, match="May"):
        write_question({"answer": 1889}, old, {"answers": {"text": ["May"], "answer_start": [0]}}, {"answer": "answer"})


def test_tags_of_entities_that_touch_do_not_cross(system: Callable[[str], Any]) -> None:
    rows = [{"sentence": "The <e1>steel</e1><e2>box</e2> held big eggs.", "relation": "x"}]
    made = hfcf.to_dataset(hfcf.expand(system("relation")(hfcf.from_dataset(rows))), like=rows)
    assert "</e1><e2>" in made[0]["sentence"]
    assert len(hfcf.from_dataset(made)) == 1
