"""Adversarial test sets: what rows lend each other, what a person chooses in a spreadsheet, and the command."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from datasets import Dataset, load_dataset
from typer.testing import CliRunner

import hfcf
from hfcf import corpora
from hfcf.cli import app
from hfcf.core import schema
from hfcf.core.model import Model
from hfcf.core.recipe import RecipeError
from hfcf.core.stage import Reject
from hfcf.core.task import apply_edits, get_task, problem, revert_edits
from hfcf.engines.perplexity import Perplexity
from hfcf.hub.dataset_card import NOT_REPUBLISHED
from hfcf.studies.attack.choices import choose_first, export_choices, import_choices
from hfcf.studies.attack.run import make_attack, make_candidates
from hfcf.systems.ccg import attack as build
from hfcf.systems.ccg.attack import ATTACK, CANDIDATES, build_attack, collect_donors, list_options, report
from hfcf.tasks.relation import entities, token_edits

DESTINATION, ORIGIN, CAUSE = "Entity-Destination(e1,e2)", "Entity-Origin(e1,e2)", "Cause-Effect(e1,e2)"


def row(name: str, text: str, label: str, terms: list[int] | None, **columns: Any) -> dict[str, Any]:
    """A sentence with its head in [brackets] and its tail in {braces}; "_" joins the words of an entity."""
    tokens: list[str] = []
    spans: dict[str, Any] = {}
    for word in text.split():
        words = word.strip("[]{}").split("_") if word[0] in "[{" and len(word) > 1 else [word]
        if word[0] in "[{" and len(word) > 1:
            kind = "head" if word[0] == "[" else "tail"
            spans[kind] = {"start": len(tokens), "end": len(tokens) + len(words), "type": None}
        tokens += words
    own = {"id": name, "group_id": f"g{name}", "corpus": "made", "split": "test", "causal_terms": terms, "status": None}
    return {**own, "tokens": tokens, **spans, "label": label, **columns}


ROWS = [
    row("1", "[eggs] are moved slowly into {large_buckets} .", DESTINATION, [2, 4]),
    row("2", "the [mail] came from {Rome} .", ORIGIN, [2, 3]),
    row("3", "[music] was brought from the {old_town} .", ORIGIN, [3]),
    row("4", "the {war} was started by [him] , they say .", CAUSE, [3, 4]),
    row("5", "a [film] on {Rome} .", "Other", [2]),
    row("6", "[He] {died} .", CAUSE, None, status={"accepted": False, "stage": "identify", "reason": "no word between"}),
    row("7", "the [wine] went into {cups} .", DESTINATION, [2, 3]),
    row("8", "The [rain] caused {flood} .", CAUSE, []),
]
ROWS[6]["tail"]["type"] = "THING"
OVERLAPPING = {**row("9", "[a_b] in {c}", ORIGIN, [2]), "tail": {"start": 1, "end": 4, "type": None}}
BROKEN = {**row("10", "[a] in {c}", ORIGIN, [1]), "tail": {"start": 2, "end": 9, "type": None}}
FEATURES = {
    **get_task("relation").features,
    "causal_terms": schema.List(schema.INT),
    "status": schema.STATUS,
}


def dataset(rows: list[dict[str, Any]]) -> Dataset:
    return Dataset.from_list(rows, features=schema.Features(FEATURES))


@pytest.fixture
def model(tiny_model: Callable[[str], str]) -> Model:
    return Model(tiny_model("gpt2"))


def sentence(one: dict[str, Any]) -> str:
    return " ".join(one["tokens"])


def test_a_flipped_sentence_has_the_term_of_another_relation() -> None:
    lent = collect_donors(ROWS)
    found = {sentence(one): one for one in list_options(ROWS[0], "flipped", lent)}
    # "died"'s row has no term; the one with the tail first means the opposite; its own relation's is not asked.
    assert {text: one["label"] for text, one in found.items()} == {
        "eggs are came from slowly large buckets .": ORIGIN,
        "eggs are from slowly large buckets .": ORIGIN,
    }
    one = found["eggs are from slowly large buckets ."]
    assert one["donor_id"] == "3"
    assert entities({**ROWS[0], **one}) == ("eggs", "large buckets")
    assert revert_edits(one, one["edits"])["tokens"] == ROWS[0]["tokens"]


def test_terms_of_both_orders_are_kept_apart() -> None:
    one = row("b", "the {town} sent [mail] .", ORIGIN, [2])
    lent = collect_donors([*ROWS, one])
    assert [sentence(made) for made in list_options(one, "flipped", lent)] == ["the town started by mail ."]
    assert "sent" not in {word for made in list_options(ROWS[0], "flipped", lent) for word in made["tokens"]}


def test_a_term_stands_for_the_relation_that_has_it_most_often() -> None:
    ties = [row("a", "[x] in {y}", ORIGIN, [1]), row("b", "[x] In {y}", CAUSE, [1])]
    asked = row("q", "[x] of {y}", DESTINATION, [1])
    assert [made["label"] for made in list_options(asked, "flipped", collect_donors(ties))] == [CAUSE]
    more = [*ties, row("c", "[x] in {z}", ORIGIN, [1])]
    found = list_options(asked, "flipped", collect_donors(more))
    assert [(made["label"], made["donor_id"]) for made in found] == [(ORIGIN, "a")]


def test_an_invariant_sentence_has_both_entities_of_one_row_of_its_label() -> None:
    lent = collect_donors(ROWS)
    (one,) = list_options(ROWS[0], "invariant", lent)
    assert sentence(one) == "wine are moved slowly into cups ."
    assert (one["head"], one["tail"]) == (
        {"start": 0, "end": 1, "type": None},
        {"start": 5, "end": 6, "type": "THING"},
    )
    (back,) = list_options(ROWS[6], "invariant", lent)
    assert sentence(back) == "the eggs went into large buckets ."
    assert (back["head"]["start"], back["head"]["end"], back["tail"]["start"], back["tail"]["end"]) == (1, 2, 4, 6)
    # The tail may come first; spans move along.
    found = {sentence(made): made for made in list_options(ROWS[3], "invariant", lent)}
    assert set(found) == {"the died was started by He , they say .", "the flood was started by rain , they say ."}
    made = found["the flood was started by rain , they say ."]
    assert entities({**ROWS[3], **made}) == ("rain", "flood")
    assert made["edits"] is None


def test_entities_must_both_be_others() -> None:
    rows = [row("a", "[Mail] of {Rome}", ORIGIN, None), row("b", "[mail] from {Paris}", ORIGIN, None)]
    with pytest.raises(Reject, match="no other row"):
        list_options(rows[1], "invariant", collect_donors(rows))


@pytest.mark.parametrize(
    ("one", "kind", "reason"),
    [
        (ROWS[4], "flipped", r"relation.*Other"),
        (ROWS[4], "invariant", r"relation.*Other"),
        (ROWS[5], "flipped", "no word between"),
        (ROWS[7], "flipped", "there are no causal terms"),
        (OVERLAPPING, "flipped", "the entities overlap"),
        (OVERLAPPING, "invariant", "the entities overlap"),
        (BROKEN, "invariant", r"tail.*2–9.*3 tokens"),
        ({**ROWS[0], "causal_terms": [2, 99]}, "flipped", r"causal term 99\b"),
        ({**ROWS[0], "causal_terms": [0]}, "flipped", r"causal term 0\b"),
    ],
)
def test_why_a_row_has_no_candidates(one: dict[str, Any], kind: str, reason: str) -> None:
    with pytest.raises(Reject, match=reason):
        list_options(one, kind, collect_donors(ROWS))
    assert not any(
        one["id"] == donor["id"] for lent in [collect_donors([one])] if kind == "invariant" for donor in lent.pairs.values()
    )


def test_the_least_perplexing_are_kept_and_nothing_is_lost(model: Model) -> None:
    rows = dataset([*ROWS, OVERLAPPING, BROKEN])
    found = hfcf.build_attack(rows, model=model, candidates=1)
    assert found.features == CANDIDATES
    engine = Perplexity(model=model)
    for one in found:
        source = next(its for its in ROWS if its["id"] == one["source_id"])
        every = list_options(source, one["kind"], collect_donors(ROWS))
        scores = engine.run([sentence(made) for made in every])
        assert (one["perplexity"], sentence(one)) == min((score, sentence(m)) for score, m in zip(scores, every, strict=True))
        assert one["source_perplexity"] == engine.run([sentence(source)])[0]
        assert (one["group_id"], one["corpus"], one["split"]) == (f"g{one['source_id']}", "made", "test")
        assert one["id"] == f"{one['source_id']}:{one['kind']}:01"
        assert one["rank"] == 1
        assert one["chosen"] is None
        assert problem(one) is None
    told = report(rows, found)
    assert told["rows"] == 10
    assert told["flipped"]["rows"] + sum(told["flipped"]["reasons"].values()) == 10
    assert told["invariant"]["rows"] + sum(told["invariant"]["reasons"].values()) == 10
    assert {"source_id": "9", "kind": "flipped", "reason": "the entities overlap"} in told["without"]


def test_ranks_follow_perplexity_and_chunks_change_nothing(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = dataset(ROWS)
    found = build_attack(rows, model=model)
    for one, other in zip(found, list(found)[1:], strict=False):
        if (one["source_id"], one["kind"]) == (other["source_id"], other["kind"]):
            assert one["perplexity"] <= other["perplexity"]
            assert other["rank"] == one["rank"] + 1
    monkeypatch.setattr(build, "_CHUNK", 1)
    assert build_attack(rows, model=model).to_list() == found.to_list()


def test_a_sample_is_that_of_the_row_alone(model: Model) -> None:
    rows = dataset(ROWS)
    few = build_attack(rows, model=model, per_row=1)
    counts = {(one["source_id"], one["kind"]) for one in few}
    assert len(counts) == len(few)
    alone = build_attack(rows.select([6, 0]), donors=rows, model=model, per_row=1)
    assert {one["id"]: one for one in alone}.items() <= {one["id"]: one for one in few}.items()
    draws = {tuple(build_attack(rows, model=model, per_row=1, seed=seed)["donor_id"]) for seed in range(6)}
    assert len(draws) > 1


def test_donors_need_not_be_rows(model: Model) -> None:
    found = build_attack(dataset(ROWS[:1]), donors=dataset(ROWS[1:]), model=model)
    assert set(found["source_id"]) == {"1"}
    assert set(found["donor_id"]) == {"2", "3", "7"}
    assert not len(build_attack(dataset(ROWS[:1]), model=model))


def test_sentences_that_are_not_read_are_told_of(model: Model) -> None:
    rows = dataset(ROWS)
    found = build_attack(rows, model=model, max_length=2)
    assert not len(found)
    assert found.features == CANDIDATES
    assert report(rows, found)["flipped"]["reasons"]["its candidates are longer than the language model reads"] > 0


def test_calls_that_cannot_work(model: Model) -> None:
    rows = dataset(ROWS)
    with pytest.raises(ValueError, match=r"rows.*column 'causal_terms'.*CCG"):
        build_attack(rows.remove_columns("causal_terms"), model=model)
    with pytest.raises(ValueError, match=r"donors.*column 'causal_terms'"):
        build_attack(rows, donors=rows.remove_columns("causal_terms"), model=model)
    with pytest.raises(ValueError, match=r"id '1'.*2 times"):
        build_attack(dataset([ROWS[0], ROWS[0]]), model=model)
    with pytest.raises(ValueError, match="per_row must be at least 1, got 0"):
        build_attack(rows, model=model, per_row=0)


# What a spreadsheet might run, split, reverse or take for a number.
NASTY = [
    row("=1+1", '=cmd|"/C_calc"!A0 , [eggs] in {buckets}', "+Cause", [3]),
    row("007", "-LRB- [a;b,c] in {d\"'e} -RRB-", "@Sum", [2]),
    row("1e5", "' [שלום_עולם] על {العالم} ,", "-Minus", [3]),
    row("two\nlines", "＝1+2 , [𝒳] at {ß}", "'quoted", [3]),
]


def candidates_of(rows: list[dict[str, Any]], scores: list[float] | None = None) -> Dataset:
    """Two candidates of each row, the source itself and one with "of" in the term's place."""
    found = []
    for one in rows:
        for rank, edited in enumerate(([], token_edits(one["tokens"], one["causal_terms"], "of")), 1):
            made = apply_edits(one, edited)
            found.append(
                {
                    **{name: one[name] for name in ("label", "group_id", "corpus", "split")}, **made, "edits": edited,
                    "id": f"{one['id']}:flipped:{rank:02d}", "source_id": one["id"], "kind": "flipped", "rank": rank,
                    "perplexity": (scores or [10.0, 20.0])[rank - 1], "source_perplexity": 12.0, "source": sentence(one),
                    "source_label": one["label"], "donor_id": "d", "chosen": None,
                }
            )  # fmt: skip
    return Dataset.from_list(found, features=CANDIDATES)


def marks(path: Path, chosen: dict[str, str], *, separator: str = ",", changed: Any = None, backwards: bool = False) -> None:
    """What a person does in a spreadsheet: marks, sorts, saves it in the country's form."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = list(csv.DictReader(file))
    for line in lines:
        line["chosen"] = chosen.get(line["id"].removeprefix("'"), "")
    lines = changed(lines) if changed else lines
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]), delimiter=separator, lineterminator="\r\n")
        writer.writeheader()
        writer.writerows(lines[::-1] if backwards else lines)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("backwards", [False, True])
def test_choices_survive_a_spreadsheet(separator: str, backwards: bool, tmp_path: Path) -> None:
    candidates, path = candidates_of(NASTY), tmp_path / "c.csv"
    export_choices(candidates, path)
    chosen = {"=1+1:flipped:02": "x", "007:flipped:01": " Yes ", "1e5:flipped:02": "1", "two\nlines:flipped:02": "TRUE"}
    marks(path, chosen, separator=separator, backwards=backwards)
    found = import_choices(candidates, path)
    assert found.features == ATTACK
    assert list(found["id"]) == ["=1+1:flipped", "007:flipped", "1e5:flipped", "two\nlines:flipped"]
    by_id = {one["id"]: one for one in candidates}
    for one, name in zip(found, chosen, strict=True):
        assert all(one[key] == by_id[name][key] for key in ("tokens", "head", "tail", "label", "edits", "perplexity"))
        assert (one["corpus"], one["split"], one["group_id"]) == ("attack:made", "test", f"g{one['source_id']}")
        assert problem(one) is None


def test_no_cell_is_a_formula_and_no_id_a_number(tmp_path: Path) -> None:
    export_choices(candidates_of(NASTY), tmp_path / "c.csv")
    assert (tmp_path / "c.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    with (tmp_path / "c.csv").open(encoding="utf-8-sig", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 8
    assert {line["chosen"] for line in lines} == {""}
    assert not any(cell.startswith(tuple("=+-@＝\t\r")) for line in lines for cell in line.values())
    assert lines[0]["label"] == "'+Cause"
    assert "[eggs]₁ in [buckets]₂" in lines[0]["sentence"]
    assert lines[2]["id"] == "007:flipped:01"


def test_an_apostrophe_that_a_spreadsheet_took_off_is_not_missed(tmp_path: Path) -> None:
    candidates, path = candidates_of(NASTY), tmp_path / "c.csv"
    export_choices(candidates, path)
    bare = [lambda lines: [{key: cell.removeprefix("'") for key, cell in line.items()} for line in lines]][0]
    marks(path, {"1e5:flipped:01": "x"}, changed=bare)
    assert list(import_choices(candidates, path)["id"]) == ["1e5:flipped"]


def edited(column: str, value: str) -> Callable[[list[dict[str, str]]], list[dict[str, str]]]:
    return lambda lines: [{**lines[0], column: value}, *lines[1:]]


@pytest.mark.parametrize(
    ("chosen", "changed", "message"),
    [
        ({"007:flipped:01": "x", "007:flipped:02": "1"}, None, r"lines 4 and 5.*'007'"),
        ({"007:flipped:01": "maybe"}, None, r"line 4.*'maybe'.*x, 1 or yes"),
        ({}, edited("id", "11:flipped:01"), r"line 2.*candidate '11:flipped:01'"),
        ({}, edited("sentence", "[eggs]₁ of [buckets]₂"), r"line 2.*sentence.*'=1\+1:flipped:01'"),
        ({}, edited("label", "Other"), r"line 2.*label.*'=1\+1:flipped:01'.*'Other'"),
        ({}, lambda lines: [*lines, lines[0]], r"'=1\+1:flipped:01'.*line 2"),
        ({}, lambda lines: [{"id": line["id"]} for line in lines], r"column 'label'.*first line.*id"),
    ],
)
def test_a_spreadsheet_that_is_not_sound(chosen: dict[str, str], changed: Any, message: str, tmp_path: Path) -> None:
    candidates, path = candidates_of(NASTY[:3]), tmp_path / "c.csv"
    export_choices(candidates, path)
    marks(path, chosen, changed=changed)
    with pytest.raises(ValueError, match=message):
        import_choices(candidates, path)


def test_another_encoding_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_bytes("id,chosen,sentence,label\nß,,,".encode("latin-1"))
    with pytest.raises(ValueError, match=r"UTF-8.*'CSV UTF-8'"):
        import_choices(candidates_of(ROWS[:1]), tmp_path / "c.csv")


def test_lines_may_be_deleted_and_none_marked(tmp_path: Path) -> None:
    candidates, path = candidates_of(ROWS[:3]), tmp_path / "c.csv"
    export_choices(candidates, path)
    marks(path, {"2:flipped:02": "x"}, changed=lambda lines: lines[3:4])
    assert list(import_choices(candidates, path)["source_id"]) == ["2"]
    export_choices(candidates, path)
    assert len(import_choices(candidates, path)) == 0


def test_the_first_is_chosen_if_it_is_fluent_enough() -> None:
    candidates = candidates_of(ROWS[:2], scores=[24.1, 17.9])
    assert list(choose_first(candidates)["perplexity"]) == [17.9, 17.9]
    assert list(choose_first(candidates, max_perplexity_ratio=1.4)["id"]) == []
    assert choose_first(candidates)[0]["tokens"] == candidates[1]["tokens"]
    with pytest.raises(ValueError, match="max_perplexity_ratio must be more than 0, got 0"):
        choose_first(candidates, max_perplexity_ratio=0)


@pytest.fixture
def recipe(tmp_path: Path, tiny_model: Callable[[str], str]) -> Path:
    """A recipe on a corpus of a few lines, with tiny models."""
    lines = [
        f"{DESTINATION}\tThe <e1> film </e1> was moved slowly into the <e2> city </e2> .",
        f"{ORIGIN}\tThe <e1> band </e1> came here from an <e2> album </e2> .",
        f"{CAUSE}\tA <e1> war </e1> that was in the state led to <e2> death </e2> .",
        f"{DESTINATION}\tThe <e1> actor </e1> was born and put in a <e2> book </e2> .",
        "Other\tThe <e1> book </e1> of the <e2> actor </e2> .",
        f"{CAUSE}\tThe <e1> rain </e1> caused , as they said , the <e2> flood </e2> .",
    ]
    (tmp_path / "data" / "original").mkdir(parents=True)
    for split in ("train", "test"):
        (tmp_path / "data" / "original" / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    content = {
        "corpus": "ccg_semeval", "split": "test", "data_dir": str(tmp_path / "data"), "seed": 7,
        "attack": {"model": tiny_model("gpt2"), "candidates": 3, "per_row": 8},
        "settings": {"masked": tiny_model("mlm"), "indicator": tiny_model("rbert"), "top": 20, "parser": None, "max_length": 64},
    }  # fmt: skip
    path = tmp_path / "attack.yaml"
    path.write_text(json.dumps(content))
    return path


def test_the_command_makes_a_set_that_load_dataset_reads(recipe: Path, tmp_path: Path) -> None:
    out, run = tmp_path / "out", CliRunner().invoke
    result = run(app, ["attack", "candidates", str(recipe), "--out", str(out), "--limit", "4"])
    assert result.exit_code == 0, result.output
    notes = json.loads((out / "attack.json").read_text())
    assert notes["report"]["rows"] == 4
    assert notes["command"].endswith("--limit 4")
    assert notes["report"]["invariant"]["rows"] == 3  # that of "Origin" finds no other
    with (out / "candidates.csv").open(encoding="utf-8-sig", newline="") as file:
        lines = list(csv.DictReader(file))
    kinds = {line["kind"] for line in lines}
    assert "invariant" in kinds
    assert "rain" in " ".join(line["sentence"] for line in lines)
    empty = run(app, ["attack", "choose", str(out)])
    assert isinstance(empty.exception, ValueError)
    assert "no candidate is chosen: mark sentences in" in str(empty.exception)
    marks(out / "candidates.csv", {lines[0]["id"]: "x"})
    result = run(app, ["attack", "choose", str(out)])
    assert result.exit_code == 0, result.output
    ds = load_dataset(str(out), split="test")
    assert len(ds) == 1
    assert ds[0]["corpus"] == "attack:ccg_semeval"
    assert ds.features["label"].int2str(ds[0]["label"]) == lines[0]["label"]
    assert "Nobody has read" not in (out / "README.md").read_text()
    # What a person marked is not overwritten.
    again = run(app, ["attack", "candidates", str(recipe), "--out", str(out)])
    assert isinstance(again.exception, ValueError)
    assert "holds 1 choices, which would be lost" in str(again.exception)
    result = run(app, ["attack", "choose", str(out), "--automatic", "--ratio", "1000"])
    assert result.exit_code == 0, result.output
    ds = load_dataset(str(out), split="test")
    assert len(ds) == len({(line["id"].split(":")[0], line["kind"]) for line in lines})
    assert "Nobody has read these sentences" in (out / "README.md").read_text()
    assert len(list((out / "data").glob("*.parquet"))) == 1


@pytest.mark.parametrize(("allowed", "by"), [(True, None), (False, "the corpus"), (False, "the folder")])
def test_the_card_says_what_must_not_be_republished(
    allowed: bool, by: str | None, recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by == "the folder":
        (tmp_path / "data" / "README.md").write_text("---\nlicense: other\nrepublish: false\n---\n")
    make_candidates(recipe, tmp_path / "out", limit=4)
    corpus = corpora.builder_class("ccg_semeval")
    monkeypatch.setattr(corpus, "INFO", replace(corpus.INFO, republish=by != "the corpus"))
    make_attack(tmp_path / "out", automatic=True, max_perplexity_ratio=1000)
    card = (tmp_path / "out" / "README.md").read_text()
    front = yaml.safe_load(card.split("---")[1])
    assert front.get("republish") is (None if allowed else False)
    assert (NOT_REPUBLISHED in card) is not allowed
    assert front["task_ids"] == ["multi-class-classification"]
    assert "hfcf" in front["tags"]
    assert "/" not in json.loads((tmp_path / "out" / "attack.json").read_text())["command"]


def test_an_indicator_is_trained_if_none_is_given(recipe: Path, tmp_path: Path, tiny_model: Callable[[str], str]) -> None:
    training = {"model": tiny_model("rbert"), "batch_size": 4, "epochs": 1, "max_length": 64}
    changes = ["settings.indicator=null", f"settings.classifier={json.dumps(training)}", "indicator_split=train"]
    notes = make_candidates(recipe, tmp_path / "out", changes=changes, limit=2)
    assert set(notes["seconds"]) == {"indicator", "causal terms", "candidates"}
    # A preset that cross-fits knows an indicator for none of the rows that it was not trained on.
    folder = Path(json.loads(recipe.read_text())["data_dir"]) / "original"
    lines = (folder / "test.tsv").read_text().splitlines()
    (folder / "train.tsv").write_text("\n".join(reversed([line.replace("state", "town") for line in lines[1:]])) + "\n")
    notes = make_candidates(recipe, tmp_path / "other", changes=[*changes, "settings.folds=2"], limit=2)
    assert "no indicator" not in json.dumps(notes)


def test_recipes_and_folders_that_cannot_work(recipe: Path, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"attack.*'modle'.*'model'"):
        make_candidates(recipe, tmp_path / "out", changes=["attack.modle=x"])
    with pytest.raises(RecipeError, match=r"settings.*'tops'"):
        make_candidates(recipe, tmp_path / "out", changes=["settings.tops=3"])
    with pytest.raises(FileNotFoundError, match="hfcf attack candidates RECIPE"):
        make_attack(tmp_path / "nothing")


@pytest.mark.slow
def test_it_attacks_semeval(data: Path, tmp_path: Path) -> None:
    """Real sentences and a real language model; the causal terms are those that the release's parser found."""
    rows = hfcf.load("ccg_semeval", data_dir=data / "ccg_semeval", split="test").select(range(12))
    rows = rows.rename_column("mixed_terms", "causal_terms")
    found = build_attack(rows, model="offline:smollm2", per_row=10)
    assert {"flipped", "invariant"} == set(found["kind"])
    told = report(rows, found)
    assert all(told[kind]["rows"] + sum(told[kind]["reasons"].values()) == 12 for kind in ("flipped", "invariant"))
    for one in found:
        assert 1 < one["perplexity"] < 1e6
        assert problem(one) is None
    assert 0 < len(choose_first(found)) < len({(one["source_id"], one["kind"]) for one in found})
