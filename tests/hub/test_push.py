"""`hfcf push` against a local Hub, a sound one and one that fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from hub_parts import Answer, File, Repository, Request, is_commit, refused, times
from local_hub import OTHER_TOKEN, TOKEN, USER, LocalHub
from made import NAME, changed, on_hub, run_folder
from typer.testing import CliRunner

from hfcf.cli import app
from hfcf.core.model import SEEN
from hfcf.hub.errors import HubError
from hfcf.hub.push import PLACEHOLDER, Contents, plan_push, push, read_contents, refuse_secrets, select_files
from hfcf.training.trainer import WEIGHTS

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # how huggingface_hub uploads


def test_a_run_becomes_a_private_dataset_repository_in_one_commit(hub: LocalHub, run_out: Path) -> None:
    (run_out / "notes.txt").write_text("mine")
    done = push(run_out, NAME)
    repo = hub.repository(NAME)
    assert on_hub(hub, run_out)
    assert (done.private, repo.private, done.commit, len(repo.heads)) == (True, True, repo.heads[-1], 2)
    assert done.url == f"{hub.url}/datasets/{NAME}"
    card = repo.tree()["README.md"].content.decode()
    assert f'load_dataset("{NAME}", "augmented")' in card
    assert PLACEHOLDER not in card
    again = push(run_out, NAME)
    assert (again.commit, again.changed, again.removed) == (done.commit, False, ())
    assert (len(hub.uploads), len(repo.heads)) == (4, 2)


def test_another_run_removes_the_files_of_the_older_one_and_no_others(hub: LocalHub, run_out: Path) -> None:
    push(run_out, NAME)
    repo = hub.repository(NAME)
    old = {path for path in repo.tree() if path.startswith("data/")}
    others = {path: File(path.encode(), False) for path in ("LICENSE", "data/train-00000-of-00001.parquet", "notes/README.md")}
    repo.add("main", {**repo.tree(), **others})
    done = push(changed(run_out), NAME)
    assert set(done.removed) == old - set(read_contents(run_out).files) != set()
    assert set(repo.tree()) == {*read_contents(run_out).files, ".gitattributes", *others}
    assert len(repo.heads) == 4


def test_a_branch_is_made_and_the_main_one_is_left_alone(hub: LocalHub, run_out: Path) -> None:
    push(run_out, "fever-crossaug", revision="v2/fix")
    assert on_hub(hub, run_out, branch="v2/fix"), "a name without a namespace is in one's own"
    assert set(hub.repository(NAME).tree("main")) == {".gitattributes"}


def test_a_model_becomes_a_model_repository(hub: LocalHub, model_out: Path) -> None:
    (model_out / "claim-only").mkdir()
    (model_out / "claim-only" / "model.safetensors").write_bytes((model_out / "model.safetensors").read_bytes())
    done = push(model_out, f"{USER}/verifier")
    assert (done.kind, done.url) == ("model", f"{hub.url}/{USER}/verifier")
    assert on_hub(hub, model_out, f"{USER}/verifier", "model")
    assert not any("claim-only" in path for path in hub.repository(f"{USER}/verifier", "model").tree())


@pytest.mark.parametrize("name", [*(name.replace("*", "00001") for name in WEIGHTS), SEEN, "scores.json"])
def test_a_push_sends_every_file_of_a_model(name: str) -> None:
    assert select_files([name, "notes.txt", "vocab_notes.md"], "model") == [name]


def test_a_public_repository_is_made_and_pushed_to_on_demand_alone(hub: LocalHub, run_out: Path) -> None:
    done = push(run_out, NAME, public=True)
    assert (done.private, hub.repository(NAME).private) == (False, False)
    with pytest.raises(HubError) as caught:
        push(changed(run_out), NAME)
    assert "--public" in str(caught.value)
    assert hub.repository(NAME).heads[-1] == done.commit


@pytest.mark.parametrize("card", [b"---\ntags: [hfc, text]\n---\n", None])
def test_a_repository_of_something_else_is_refused(hub: LocalHub, run_out: Path, card: bytes | None) -> None:
    repo = hub.repositories["dataset", NAME] = Repository("dataset", True, {USER})
    repo.add("main", {"data.csv": File(b"a", False), **({"README.md": File(card, False)} if card else {})})
    with pytest.raises(HubError) as caught:
        push(run_out, NAME)
    assert "data.csv" in str(caught.value)
    assert (len(repo.heads), hub.uploads) == (1, [])


def test_a_commit_whose_answer_is_lost_is_not_made_twice(hub: LocalHub, run_out: Path) -> None:
    hub.after = times(1, is_commit, Answer(cut=True))
    with pytest.raises(HubError) as caught:
        push(run_out, NAME)
    assert "run this again" in str(caught.value)
    assert not push(run_out, NAME).changed
    assert on_hub(hub, run_out)
    assert len(hub.repository(NAME).heads) == 2


LASTING: dict[str, tuple[Callable[[Request], Answer | None], str]] = {
    "503 on commits": (times(1, is_commit, refused(503, "Service Unavailable")), "503"),
    "uploads fail": (lambda request: refused(500, "Oops") if request.upload else None, "500"),
    "a full quota": (lambda request: refused(402, "Pay first") if request.commit else None, "Pay first"),
    "no permission": (lambda request: refused(403, "Forbidden") if request.commit else None, "permission"),
}


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize("name", LASTING)
def test_what_does_not_pass_is_told_in_a_line_and_a_rerun_completes(hub: LocalHub, run_out: Path, name: str) -> None:
    push(run_out, NAME)
    repo = hub.repository(NAME)
    before = repo.heads[-1]
    hub.fault, part = LASTING[name]
    with pytest.raises(HubError) as caught:
        push(changed(run_out), NAME)
    assert repo.branches["main"] == before, "nothing half-published is the head"
    message = str(caught.value)
    assert message.startswith(f"the dataset {NAME}: ")
    assert part in message
    assert "\n" not in message
    assert TOKEN not in message
    hub.fault = None
    push(run_out, NAME)
    assert on_hub(hub, run_out)


def test_a_dry_run_shows_what_would_be_sent_and_makes_no_request(hub: LocalHub, run_out: Path) -> None:
    (run_out / "notes.txt").write_text("mine")
    shown = CliRunner().invoke(app, ["push", str(run_out), NAME, "--dry-run"], env={"COLUMNS": "200", "HF_HUB_OFFLINE": "1"})
    assert shown.exit_code == 0, shown.output
    assert "(private)" in shown.output
    assert "notes.txt" in shown.output
    assert all(path in shown.output for path in read_contents(run_out).files)
    assert hub.requests == []
    push(run_out, NAME)
    assert {*plan_push(run_out, NAME).files, ".gitattributes"} == set(hub.repository(NAME).tree())


@pytest.mark.parametrize("where", ["card", "library"])
def test_what_the_licence_forbids_is_refused_whatever_one_says(hub: LocalHub, tmp_path: Path, where: str) -> None:
    out = run_folder(tmp_path / "run", corpus="fever" if where == "card" else "ace2005")
    card = (out / "README.md").read_text()
    changes = ("---\n", "---\nrepublish: false\n") if where == "card" else ("republish: false\n", "")
    assert changes[0] in card
    (out / "README.md").write_text(card.replace(*changes, 1))
    for more in (["--yes", "--public"], ["--dry-run"]):
        shown = CliRunner().invoke(app, ["push", str(out), NAME, *more])
        assert isinstance(shown.exception, HubError)
        assert "licence" in str(shown.exception)
    assert hub.requests == []


def edit_card(before: str, after: str) -> Callable[[Path], Any]:
    return lambda out: (out / "README.md").write_text((out / "README.md").read_text().replace(before, after, 1))


def first_file(out: Path) -> Path:
    return next(out.rglob("*.parquet"))


SPOILT: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no card": (lambda out: (out / "README.md").unlink(), "README.md"),
    "a file is missing": (lambda out: first_file(out).unlink(), "parquet"),
    "cut off": (lambda out: first_file(out).write_bytes(first_file(out).read_bytes()[:-100]), "damaged"),
    "a token in it": (lambda out: (out / "recipe.yaml").write_text(f"token: {TOKEN}"), "recipe.yaml"),
    "another's token in it": (lambda out: (out / "report.html").write_text(OTHER_TOKEN), "report.html"),
    "no report": (lambda out: (out / "report.html").unlink(), "report.html"),
    "a file outside": (edit_card("- data/", "- ../data/"), "README.md"),
    "no YAML": (edit_card("license: ", "license: ["), "README.md"),
    "no JSON": (lambda out: (out / "run.json").write_text("{"), "run.json"),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_folder_that_is_not_fit_is_refused(hub: LocalHub, run_out: Path, name: str) -> None:
    change, part = SPOILT[name]
    change(run_out)
    for do in (push, plan_push):
        with pytest.raises(HubError) as caught:
            do(run_out, NAME)
        assert part in str(caught.value)
        assert TOKEN not in str(caught.value)
        assert OTHER_TOKEN not in str(caught.value)
    assert hub.requests == []


LETTERS = "abcdefghijKLMNOPQRSTuvwxyzABCDEFGH"
TOKENS = (
    f"x_hf_{LETTERS}", f"hf_oauth_eyJhbGciOi.{LETTERS}", f"api_org_{LETTERS}", f"sk-proj-{LETTERS}", f"ghp_{LETTERS}01",
    "AKIAIOSFODNN7EXAMPLE", "-----BEGIN RSA PRIVATE KEY-----", "my-own-key-1",
)  # fmt: skip


@pytest.mark.parametrize("token", TOKENS)
def test_no_form_of_a_token_is_sent(token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_LLM_KEY", "my-own-key-1")
    (tmp_path / "run.json").write_text(f'{{"é": "{token}"}}', encoding="utf-8")
    Dataset.from_dict({"evidence": [[{"text": "a"}, {"text": f"see\n{token}."}]]}).to_parquet(tmp_path / "rows.parquet")
    for name in ("run.json", "rows.parquet"):
        with pytest.raises(HubError) as caught:
            refuse_secrets(Contents(tmp_path, "dataset", (name,), (), {}))
        assert name in str(caught.value)
    (tmp_path / "README.md").write_text(f"hf_hub_download(repo_id) {LETTERS}hf_short desk-{LETTERS}")
    refuse_secrets(Contents(tmp_path, "dataset", ("README.md",), (), {}))


@pytest.mark.parametrize(("name", "part"), [("scores.json", "scores.json"), ("model.bin", "model.bin"), ("README.md", "both")])
def test_a_model_that_is_not_fit_is_refused(hub: LocalHub, model_out: Path, run_out: Path, name: str, part: str) -> None:
    if name == "scores.json":
        (model_out / name).unlink()
    else:
        (model_out / name).write_bytes((run_out / "README.md").read_bytes())
    hub.requests.clear()  # of the card
    with pytest.raises(HubError) as caught:
        push(model_out, f"{USER}/verifier")
    assert part in str(caught.value)
    assert hub.requests == []


def test_the_machine_and_the_name_are_looked_at_first(hub: LocalHub, run_out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HubError, match="NAMESPACE/NAME"):
        push(run_out, "a/b/c")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(HubError, match="HF_HUB_OFFLINE"):
        push(run_out, NAME)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(HubError, match="hf auth login"):
        push(run_out, NAME)
    assert hub.requests == []


def test_the_command_line(hub: LocalHub, run_out: Path) -> None:
    refusal = CliRunner().invoke(app, ["push", str(run_out), NAME, "--public"], input="n\n")
    assert (refusal.exit_code, hub.requests) == (1, [])
    first = CliRunner().invoke(app, ["push", str(run_out), NAME])
    assert first.exit_code == 0, first.output
    assert f"{hub.url}/datasets/{NAME}" in first.output
    again = CliRunner().invoke(app, ["push", str(run_out), NAME, "--public", "--yes"])
    assert "no change (private" in again.output
    assert TOKEN not in first.output + again.output
