"""What commands print fits a terminal of 80 columns, and no word is cut."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from datasets import Dataset, Features, List
from rich.cells import cell_len
from rich.console import Console
from run_folder import published, relation, verification
from structure_rows import judged

from hfcf import corpora, metrics
from hfcf.cli import console, listing, runs
from hfcf.cli.tables import print_funnel, print_page, print_plan, print_push, print_scores
from hfcf.core import recipe, schema
from hfcf.core.candidates import accept, reject
from hfcf.core.task import get_task
from hfcf.systems import system_class, systems
from hfcf.systems._shared.judge import counterfactuals
from hfcf.tasks.qa import rewrite_all

LONG = "the verifier that reads the sentence says Entity-Destination(e1,e2), where Component-Whole(e2,e1) is what it must say (312)"
STAGES = ("generate_negative_claim", "write_opposite_effect", "identify_causal_terms")


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "out", Console(width=80))


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Print something, and return it when each line fits and holds no cut word."""

    def check(command: Callable[..., Any], *arguments: Any, **options: Any) -> str:
        command(*arguments, **options)
        text = capsys.readouterr().out
        assert [line for line in text.splitlines() if cell_len(line) > 80] == []
        assert [line for line in text.splitlines() if "│" in line and "…" in line] == []
        return text

    return check


NAMES: dict[str, Callable[[], Any]] = {
    "systems": systems, "stages": listing.stages, "corpora": corpora.names, "metrics": metrics.names, "recipes": recipe.names,
}  # fmt: skip


@pytest.mark.parametrize("kind", NAMES)
def test_lists_fit(kind: str, printed: Callable[..., str]) -> None:
    text = printed(listing.list_, kind)
    assert [name for name in NAMES[kind]() if name not in text] == []


def test_the_list_of_everything_has_a_line_for_each_name(printed: Callable[..., str]) -> None:
    lines = printed(listing.list_).splitlines()
    first = [line.split()[0] for line in lines if line and not line[0].isupper()]
    assert sorted(first) == sorted(name for names in NAMES.values() for name in names())
    headings = [line.split()[0] for line in lines if line and line[0].isupper()]
    assert headings == ["Systems", "Baselines", "Stages", "Corpora", "Metrics", "Recipes"]
    baselines = printed(listing.list_, "baselines").splitlines()
    assert "eda  verification" in baselines
    assert [line for line in baselines if line.startswith("race")] == []


def test_a_stage_is_described(printed: Callable[..., str]) -> None:
    text = printed(listing.list_, "check_relation")
    assert "tokens, head, tail, label, candidates → candidates in ccg, autocad, coco, mice" in " ".join(text.split())
    assert "in Python" in text
    assert "  strict" in text


def test_a_system_is_described(printed: Callable[..., str]) -> None:
    text = printed(listing.list_, "race")
    joined = " ".join(text.split())
    assert "race a system for verification rows Edit the evidence that the label of a multi-hop claim rests on" in joined
    assert "paper Zhu et al. 2023, EXPLAIN, EDIT, GENERATE: " in joined
    assert "explain claim, evidence, label → rationales, sentence_rationales, unread" in joined
    assert "num_beams int = 30 beams of the search offline: 10" in joined
    assert (
        "hub: MoritzLaurer/DeBERTa-v3-base-mnli-fever-anli offline: offline:minilm + hfcf:verifier llm: llm:gpt-4o-mini" in joined
    )
    assert "hfcf train train_verifier trains this model" in joined
    assert "RACE paper: not measured" in joined
    assert "RACE offline: of 50 rated pairs of feverous" in joined
    assert "strict bool = False" in joined


@pytest.mark.parametrize("name", sorted(systems()))
def test_every_setting_of_every_system_is_explained(name: str) -> None:
    from hfcf.core.describe import settings

    described = settings(system_class(name))
    assert [setting.name for setting in described if not setting.meaning] == []
    assert described[-2].name, described[-1].name == ("seed", "strict")


@pytest.mark.parametrize(
    "name", ["eda", "llm", "mice", "rgf", "checkwhy", "hover", "wikiwhy", "minimality", "question_types", "judge_candidates"]
)
def test_details_fit(name: str, printed: Callable[..., str]) -> None:
    assert name in printed(listing.list_, name)


def test_what_two_things_are_called_is_described_twice(printed: Callable[..., str]) -> None:
    text = printed(listing.list_, "checkwhy")
    assert "a system for structures rows" in text
    assert "a corpus of structures rows" in text
    assert "a system" not in printed(listing.list_, "corpus", "checkwhy")


def test_a_corpus_has_paper_licence_files_and_options(printed: Callable[..., str]) -> None:
    joined = " ".join(printed(listing.list_, "hover").split())
    for told in ("paper Jiang et al.", "licence cc-by-sa-4.0", "files hover_train_release_v1.1.json", "release_dir folder of the"):
        assert told in joined


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["raec"], "'race'"),
        (["corpus", "hovr"], "'hover'"),
        (["sytems"], "'systems'"),
        (["colour", "race"], "system, baseline, stage, corpus"),
    ],
)
def test_an_unknown_name_leads_to_the_nearest(arguments: list[str], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        listing.list_(*arguments)


# --- tables of numbers


def entry(stage: str, **amounts: Any) -> dict[str, Any]:
    cost = {"calls": 1_234_567, "tokens": 123_456_789, "minutes": 1234.5, **amounts}
    return {"stage": stage, "reads": "", "fills": "", **cost}


def test_a_funnel_fits(printed: Callable[..., str]) -> None:
    counts = {"rows_in": 1_234_567, "rows_out": 1_234_567, "candidates_rejected": 12_345_678}
    text = printed(
        print_funnel, {"funnel": [{"stage": one, **counts, "candidate_reasons": {LONG: 9}, "reasons": {}} for one in STAGES]}
    )
    assert [one for one in STAGES if one not in text] == []


def test_a_plan_fits_and_has_totals(printed: Callable[..., str]) -> None:
    stages = [entry(one, attempts=1_234_567, cost=12.3456) for one in STAGES]
    stages += [entry("cached", tokens=None, minutes=None, attempts=None, cost=None)]
    source = verification([LONG])[0]
    outcomes = [("check", f"rejected: {LONG}")]
    example = {"id": "0", "text": LONG, "row": source, "stages": outcomes, "counterfactuals": source["counterfactuals"]}
    plan = {"corpus": "hover", "rows": 9, "tried": 3, "stages": stages, "rejected": 2, "reason": LONG, "examples": [example]}
    plan |= {"seconds": 9.0, "loading": 0.0}
    text = printed(print_plan, plan, marks=True)
    [total] = [line for line in text.splitlines() if line.startswith("│ all")]
    assert total.replace("│", "").split() == ["all", "3,703.5", "3,703,701", "37.0368"]
    assert "in the cache" in text
    assert text.count("cached") == 2, "in the table, and beside the sum"
    assert text.count("0:made:claim  the claim changed: SUPPORTS → REFUTES") == 1
    assert "it must say (312) It was founded in {+2006+}." in " ".join(text.split())


def test_scores_and_pushes_fit(printed: Callable[..., str], tmp_path: Path) -> None:
    few = {
        f"{name} (validation)": {"rows": 12345, "accuracy": 0.8123, "macro_f1": 0.8123} for name in ("fever_adversarial", "hover")
    }
    printed(print_scores, few)
    (tmp_path / f"{'a' * 90}.parquet").write_bytes(b"rows")
    contents = SimpleNamespace(kind="dataset", root=tmp_path, files=(f"{'a' * 90}.parquet",), left_out=())
    assert "a" * 40 in printed(print_push, contents, "me/hover-race", False)


@pytest.mark.parametrize("tight", [False, True])
def test_a_wide_table_of_a_page_becomes_blocks(printed: Callable[..., str], tight: bool) -> None:
    header = ["method", "rows", *(f"question {i}" for i in range(9))]
    rows = [[name, "5", *["3.00 ± 0.00"] * 9] for name in ("race", "eda")]
    table = [" | ".join(cells).join(("| ", " |")) for cells in (header, ["---"] * 11, *rows)]
    table[1] = table[1].replace(" ", "") if tight else table[1]
    text = printed(print_page, "\n".join(["# Ratings", "", *table, "", "| a | b |", "| --- | --- |", "| 1 | 2 |"]))
    assert text.startswith("# Ratings\n\nrace\n  rows        5\n  question 0  3.00 ± 0.00\n")
    assert text.count("question 8") == 2
    assert text.endswith("| a | b |\n| --- | --- |\n| 1 | 2 |\n"), "one that fits stays"


def test_a_wide_table_whose_second_column_has_no_title_keeps_its_values(printed: Callable[..., str]) -> None:
    lines = ["| claims | |", "|---|---|", "| rows | 3 |", f"| {'why ' * 30} | 1 |"]
    text = printed(print_page, "\n".join(lines))
    assert [line.strip() for line in text.splitlines() if line.strip() in ("3", "1")] == ["3", "1"]


# --- rows of every task


def qa() -> Dataset:
    task, passage = get_task("qa"), "The lighthouse of Brunnock was built by Ada Merrow in 1871 and painted red twice since. " * 3
    row: dict[str, Any] = {
        "id": "1", "title": "Brunnock", "context": passage, "question": "who built the lighthouse", "group_id": "1", "corpus": "c",
        "split": "train", "answers": {"text": ["Ada Merrow"], "answer_start": [passage.index("Ada")]},
    }  # fmt: skip
    new = {"question": "when was it built", "answers": {"text": ["1871"], "answer_start": [passage.index("1871")]}}
    scores = [{"name": "readers that agree", "value": 3.0}, {"name": "log-probability of the question", "value": -0.5}]
    one = {"title": None, "context": None, **new, "change": "both", "edits": rewrite_all(row, **new), "scores": scores}
    candidates = [accept(one, "check"), reject(one, "check", LONG)]
    row |= {"candidates": candidates, "counterfactuals": counterfactuals(row, candidates[:1], "made"), "status": {"accepted": True}}
    lists = {"candidates": List(task.candidate_features), "counterfactuals": List(dict(task.counterfactual))}
    return Dataset.from_list([row], features=Features({**task.features, **lists, "status": schema.STATUS}))


ROWS: dict[str, tuple[Callable[[], Dataset], list[str]]] = {
    "verification": (verification, [
        "  before: Rome is old. It was founded in [-1994-].\n  after:  Rome is old. It was founded in {+2006+}.\n",
    ]),
    "relation": (relation, [
        "the sentence changed: Entity-Destination(e1,e2) → Entity-Origin(e1,e2)\n",
        "  before: The [eggs]₁ were [-moved into-] [buckets]₂ .\n  after:  The [eggs]₁ were {+taken out of+} [buckets]₂ .\n",
    ]),
    "qa": (qa, [
        "the reference and the predicate changed: Ada Merrow → 1871\n", "  question before: who built the lighthouse\n",
        "  answer after:  1871\n", "  readers that agree 3 · log-probability of the question -0.5\n",
    ]),
    "structures": (judged, ["  structure: (s1, s2) → [s3]? → [s4]? ([s4]?, s5) → [Claim]?\n", "was on for {+13+} hours."]),
}  # fmt: skip


@pytest.mark.parametrize("task", ROWS)
def test_pairs_of_every_task_fit(task: str, tmp_path: Path, printed: Callable[..., str]) -> None:
    rows, told = ROWS[task]
    published(rows(), tmp_path)
    joined = " ".join(printed(runs.peek, str(tmp_path)).split())
    assert [one for one in told if " ".join(one.split()) not in joined] == []
    if task != "relation":  # nothing was rejected there
        assert "check rejects" in printed(runs.peek, str(tmp_path), config="rejected")
