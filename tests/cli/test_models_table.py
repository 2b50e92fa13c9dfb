"""The table of models that `hfcf list SYSTEM --preset NAME` and `hfcf run --dry-run` print."""

from __future__ import annotations

from pathlib import Path

import pytest
from huggingface_hub import constants
from rich.cells import cell_len
from rich.console import Console
from typer.testing import CliRunner

from hfcf.cli import app, console
from hfcf.cli.tables import print_models, print_training, print_training_plan
from hfcf.core import model_checks
from hfcf.core.model_checks import NotCached
from hfcf.core.model_facts import ABSENT, ENDPOINT, HUB, ModelFacts
from hfcf.core.recipe import RecipeError

CHECK_HUB_ID = model_checks.check_hub_id
REVISION = "0123456789abcdef0123456789abcdef01234567"
MODELS = [
    ModelFacts(f"me/base-of-a-long-name@{REVISION} + me/adapter", ("verifier", "judges[0]"), HUB, "mit + cc-by-4.0", 184_000_000,
               ("entailment", "neutral", "contradiction"), "evidence-claim"),
    ModelFacts("./absent", ("generator",), ABSENT, note="there is no folder ./absent"),
    ModelFacts("llm:m", ("explainer_model",), ENDPOINT),
]  # fmt: skip


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(console, "out", Console(width=80))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))


def test_the_table_fits_and_has_every_fact(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    print_models(MODELS)
    assert [line for line in capsys.readouterr().out.splitlines() if cell_len(line) > 80] == []
    monkeypatch.setattr(console, "out", Console(width=160))
    print_models(MODELS)
    text = " ".join(capsys.readouterr().out.split())
    for fact in (
        "me/base-of-a-long-name@0123456 + me/adapter", "verifier, judges[0]", "184 M", HUB, "unknown", "HFCF_LLM_URL", "./absent",
        "classes entailment, neutral, contradiction, reads evidence-claim", "there is no folder ./absent",
    ):  # fmt: skip
        assert fact in text, fact
    assert REVISION not in text
    print_models([])
    assert "none" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["race", "--preset", "nope"], "'nope'"),
        (["rce", "--preset", "hub"], "'race'"),
        (["corpus", "hover", "--preset", "hub"], "--preset"),
        (["--preset", "hub"], "--preset"),
        (["race", "--set", "settings.num_beams=3"], "--set"),
        (["race", "--preset", "hub", "--set", "num_beams=3"], "'num_beams'"),
    ],
)
def test_what_has_no_table_is_one_clear_error(arguments: list[str], named: str) -> None:
    done = CliRunner().invoke(app, ["list", *arguments])
    assert isinstance(done.exception, ValueError)
    assert named in str(done.exception)


def test_settings_of_the_preset_change_its_models(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from hfcf.cli.listing import list_

    monkeypatch.setattr(console, "out", Console(width=160))
    for changes, names in (
        ([], ["Qwen2.5-1.5B"]),
        (["settings.size=7b", "settings.encoder=me/encoder"], ["Qwen2.5-7B", "me/encoder"]),
    ):
        list_("race", None, "hub", changes)
        shown = capsys.readouterr().out
        assert all(name in shown for name in names)


def test_a_dry_run_prints_the_table_before_it_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from hfcf.cli.runs import run

    monkeypatch.setattr(console, "out", Console(width=160))
    monkeypatch.setattr("hfcf.core.model_checks.check_hub_id", CHECK_HUB_ID)  # conftest.py lets any id pass
    with pytest.raises(NotCached):
        run("race_hover", None, ["settings.ner={backend: spacy, model: 'offline:spacy'}"], None, True, "hub")
    assert "DeBERTa-v3-base-mnli" in capsys.readouterr().out


def test_two_presets_are_an_error() -> None:
    for changes, right in ((["preset=offline"], False), (["preset=hub"], True)):
        done = CliRunner().invoke(app, ["run", "race_hover", "--preset", "hub", "--dry-run", "--set", changes[0]])
        assert (isinstance(done.exception, RecipeError) and "two presets" in str(done.exception)) is not right


def test_a_training_is_told_in_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    scores = {
        "held out": {"2-way": {"verifier": {"rows": 40, "accuracy": 0.8125, "macro_f1": 0.8}, "majority": {"accuracy": 0.5}}},
        "mine": {"2-way": {"verifier": {"rows": 10, "accuracy": 0.7, "macro_f1": 0.65}}},
    }
    report = {"rows": {"train": 300, "held_out": 40, "dropped as repeats": 3}, "seconds": 61, "scores": scores}
    print_training(report, Path("out/model"))
    text = capsys.readouterr().out
    assert all(cell_len(line) <= 80 for line in text.splitlines())
    assert "trained on 300 rows, 40 held out, 3 dropped as repeats" in text
    for name, numbers in (("held out, 2-way, verifier", ("40", "0.8125", "0.8")), ("mine, 2-way, verifier", ("10", "0.7", "0.65"))):
        cells = next([cell.strip() for cell in line.split("│")] for line in text.splitlines() if name in line)
        assert set(numbers) <= set(cells)
    assert "out/model" in text
    plan = {
        "rows": {"train": 300, "held_out": 40}, "labels": {"no": 299, "yes": 1}, "steps": 75, "exact": False, "passes": 2.0,
        "batch_size": 8, "micro_batch_size": 4, "gradient_checkpointing": False,
    }  # fmt: skip
    print_training_plan(plan)
    told = " ".join(capsys.readouterr().out.split())
    assert "about 75, which read each row 2 times" in told
    assert "299 no, 1 yes" in told
