"""The table of models that `hfcf list SYSTEM --preset NAME` and `hfcf run --dry-run` print."""

from __future__ import annotations

from pathlib import Path

import pytest
from huggingface_hub import constants
from rich.cells import cell_len
from rich.console import Console
from typer.testing import CliRunner

from hfcf.cli import app, console
from hfcf.cli.weights import print_weights
from hfcf.core import model_checks
from hfcf.core.model_checks import NotCached
from hfcf.core.recipe import RecipeError
from hfcf.core.weights import Weights

CHECK_HUB_ID = model_checks.check_hub_id
REVISION = "0123456789abcdef0123456789abcdef01234567"
FOUND = [
    Weights(f"me/base-of-a-long-name@{REVISION} + me/adapter", ("verifier", "judges[0]"), "mit + cc-by-4.0", 1_500_000_000,
            900_000_000, "partly; adapter: no", ((f"me/base@{REVISION}", 1_200_000_000), ("me/adapter", 3_000_000))),
    Weights("./absent", ("generator",), None, 0, None, "no", (), "train it: hfcf train train_generator --out ./absent"),
    Weights("llm:m", ("explainer_model",), None, 0, 0, "behind HFCF_LLM_URL"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(console, "out", Console(width=80))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))


def words(text: str) -> str:
    return " ".join(text.split())


def test_the_table_fits_and_has_every_fact(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    print_weights(FOUND)
    assert [line for line in capsys.readouterr().out.splitlines() if cell_len(line) > 80] == []
    monkeypatch.setattr(console, "out", Console(width=160))
    print_weights(FOUND)
    text = words(shown := capsys.readouterr().out)
    lines = shown.splitlines()
    for fact in (
        "me/base-of-a-long-name@0123456 + me/adapter",
        "verifier, judges[0]",
        "1.5 GB 900 MB",
        "unknown",
        "1.2 GB ≥ 900 MB",
    ):
        assert fact in text, fact
    assert REVISION not in text
    assert "the memory of 1 model is not known, and not in the sum" in text
    assert "train it: hfcf train train_generator --out ./absent" in text
    (endpoint,) = [line for line in lines if line.strip().startswith("llm:m")]
    assert endpoint.count("–") == 3, "its licence, download and memory are the server's"


def test_a_system_without_models_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    print_weights([])
    assert capsys.readouterr().out.strip() == "Models that will load: none"


def test_the_models_of_a_preset_are_listed() -> None:
    done = CliRunner().invoke(app, ["list", "race", "--preset", "llm", "--set", "settings.encoder=me/encoder"])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["race", "--preset", "nope"], "race has no preset 'nope': choose one of paper, "),
        (["rce", "--preset", "hub"], "did you mean 'race'"),
        (["corpus", "hover", "--preset", "hub"], "--preset and --set go with a system"),
        (["--preset", "hub"], "--preset and --set go with a system"),
        (["race", "--set", "settings.num_beams=3"], "--preset and --set go with a system"),
        (["race", "--preset", "hub", "--set", "num_beams=3"], "unknown key 'num_beams'"),
    ],
)
def test_what_has_no_table_is_one_clear_error(arguments: list[str], problem: str) -> None:
    done = CliRunner().invoke(app, ["list", *arguments])
    assert isinstance(done.exception, ValueError)
    assert problem in str(done.exception)


def test_settings_of_the_preset_change_its_models(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from hfcf.cli.listing import list_

    monkeypatch.setattr(console, "out", Console(width=160))
    list_("race", None, "hub", None)
    small = capsys.readouterr().out
    list_("race", None, "hub", ["settings.size=7b", "settings.encoder=me/encoder"])
    large = capsys.readouterr().out
    assert "Qwen/Qwen2.5-1.5B-Instruct" in small
    assert "Qwen/Qwen2.5-7B-Instruct" in large
    assert "me/encoder" in large


def test_a_dry_run_prints_the_table_before_it_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from hfcf.cli.runs import run

    monkeypatch.setattr(console, "out", Console(width=160))
    monkeypatch.setattr("hfcf.core.model_checks.check_hub_id", CHECK_HUB_ID)  # conftest.py lets any id pass
    with pytest.raises(NotCached, match="offline mode is on"):
        run("race_hover", None, ["settings.ner={backend: spacy, model: 'offline:spacy'}"], None, True, "hub")
    shown = capsys.readouterr().out
    assert "DeBERTa-v3-base-mnli" in shown
    assert "still to be downloaded" in words(shown)


def test_two_presets_are_an_error() -> None:
    for changes, right in ((["preset=offline"], False), (["preset=hub"], True)):
        done = CliRunner().invoke(app, ["run", "race_hover", "--preset", "hub", "--dry-run", "--set", changes[0]])
        named = isinstance(done.exception, RecipeError) and "name two presets" in str(done.exception)
        assert named is not right
