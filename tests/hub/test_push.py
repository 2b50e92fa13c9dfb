"""`hfcf push` against a local Hub, a sound one and one that fails."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import re
import traceback
from pathlib import Path

import pytest
from datasets import Dataset
from hub_parts import Answer, File, Request, is_commit, is_upload, refused, times
from local_hub import OTHER_TOKEN, TOKEN, USER, LocalHub
from made import NAME, changed, on_hub, run_folder
from typer.testing import CliRunner

from hfcf.cli import app
from hfcf.hub.contents import Contents, read_contents
from hfcf.hub.errors import ATTEMPTS, HubError
from hfcf.hub.push import PLACEHOLDER, check_files, plan, push

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # how huggingface_hub uploads


# --- a sound Hub


def test_a_run_becomes_a_private_dataset_repository_in_one_commit(hub: LocalHub, run_out: Path) -> None:
    (run_out / "notes.txt").write_text("mine")
    done = push(run_out, NAME)
    repo = hub.repository(NAME)
    assert on_hub(hub, run_out)
    assert (done.private, repo.private, done.commit, len(repo.heads)) == (True, True, repo.heads[-1], 2)
    assert done.url == f"{hub.url}/datasets/{NAME}"
    assert "notes.txt" not in repo.tree()
    card = repo.tree()["README.md"].content.decode()
    assert f'load_dataset("{NAME}", "augmented")' in card
    assert PLACEHOLDER not in card
    assert len(hub.uploads) == len(list(run_out.rglob("*.parquet"))) == 4


def test_pushed_again_nothing_is_committed_nor_sent(hub: LocalHub, run_out: Path) -> None:
    first = push(run_out, NAME)
    uploads, heads = len(hub.uploads), len(hub.repository(NAME).heads)
    again = push(run_out, NAME)
    assert (again.commit, again.sent, again.removed) == (first.commit, (), ())
    assert (len(hub.uploads), len(hub.repository(NAME).heads)) == (uploads, heads)


def test_another_run_removes_the_files_of_the_older_one_and_no_others(hub: LocalHub, run_out: Path) -> None:
    push(run_out, NAME)
    old = {path for path in hub.repository(NAME).tree() if path.startswith("data/")}
    repo = hub.repository(NAME)
    repo.add("main", {**repo.tree(), "LICENSE": File(b"theirs", False)})
    heads = len(repo.heads)
    done = push(changed(run_out), NAME)
    assert set(done.removed) == old - set(read_contents(run_out).files)
    assert len(done.removed) >= 3
    assert len(repo.heads) == heads + 1
    assert repo.tree()["LICENSE"].content == b"theirs"
    assert set(repo.tree()) == {*read_contents(run_out).files, ".gitattributes", "LICENSE"}


def test_a_branch_is_made_and_the_main_one_is_left_alone(hub: LocalHub, run_out: Path) -> None:
    push(run_out, NAME, revision="v2")
    assert on_hub(hub, run_out, branch="v2")
    assert set(hub.repository(NAME).tree("main")) == {".gitattributes"}
    push(run_out, NAME)
    push(changed(run_out), NAME, revision="v3/fix")
    assert on_hub(hub, run_out, branch="v3/fix")
    assert not on_hub(hub, run_out)


def test_a_name_without_a_namespace_is_in_ones_own(hub: LocalHub, run_out: Path) -> None:
    assert push(run_out, "fever-crossaug").repo == NAME


def test_a_model_becomes_a_model_repository(hub: LocalHub, model_out: Path) -> None:
    (model_out / "claim-only").mkdir()
    (model_out / "claim-only" / "model.safetensors").write_bytes((model_out / "model.safetensors").read_bytes())
    done = push(model_out, f"{USER}/verifier")
    assert (done.kind, done.url) == ("model", f"{hub.url}/{USER}/verifier")
    assert on_hub(hub, model_out, f"{USER}/verifier", "model")
    assert {"model.safetensors", "config.json", "tokenizer.json", "scores.json"} <= set(done.sent)
    assert not any("claim-only" in path for path in done.sent)


def test_a_public_repository_is_made_and_pushed_to_on_demand_alone(hub: LocalHub, run_out: Path) -> None:
    done = push(run_out, NAME, public=True)
    assert (done.private, hub.repository(NAME).private) == (False, False)
    head = hub.repository(NAME).heads[-1]
    with pytest.raises(HubError, match=r"public.*--public.*private"):
        push(changed(run_out), NAME)
    assert hub.repository(NAME).heads[-1] == head


# --- one that fails


def third(request: Request) -> Answer | None:
    return refused(500, "Internal Server Error") if request.number % 3 == 0 else None


RATE = "We had to rate limit you, you hit the quota of 1000 api requests per 5 minutes period."
HOURLY = "You have exceeded our hourly quotas for action: commit. We invite you to retry later."
PASSING = {
    "500 on every third call": third,
    "a cut connection in mid-upload": times(3, is_upload, Answer(cut=True)),
    "a cut connection in mid-commit": times(2, is_commit, Answer(cut=True)),
    "503 on commits": times(2, is_commit, refused(503, "Service Unavailable")),
    "429 with the Hub's own header": times(2, is_commit, refused(429, RATE, RateLimit='"api";r=0;t=40')),
    "429 on uploads": times(2, is_upload, Answer(429, {"error": "slow down"}, {"Retry-After": "7"})),
    "429 on commits": times(2, is_commit, Answer(429, {"error": "slow down"}, {"Retry-After": "11"})),
}


@pytest.mark.parametrize("name", PASSING)
def test_what_passes_by_itself_is_waited_for(hub: LocalHub, run_out: Path, waits: list[float], name: str) -> None:
    hub.fault = PASSING[name]
    push(run_out, NAME)
    assert on_hub(hub, run_out)
    assert len(hub.repository(NAME).heads) == 2
    assert len(hub.uploads) == len(set(hub.uploads)) == 4
    assert waits
    if "429" in name:
        assert max(waits) in (8, 11, 41)  # a second more than is asked for


def test_a_commit_whose_answer_is_lost_is_not_made_twice(hub: LocalHub, run_out: Path, waits: list[float]) -> None:
    hub.after = times(1, is_commit, Answer(cut=True))
    done = push(run_out, NAME)
    assert on_hub(hub, run_out)
    assert len(hub.repository(NAME).heads) == 2
    assert done.commit == hub.repository(NAME).heads[-1]
    assert set(done.sent) == set(read_contents(run_out).files), "it is told as done, not as no change"
    hub.after = times(1, is_commit, Answer(cut=True))
    older = {path for path in read_contents(run_out).files if path.startswith("data/")}
    shown = CliRunner().invoke(app, ["push", str(changed(run_out)), NAME])
    assert f"{len(older - set(read_contents(run_out).files))} of an older push removed" in shown.output


def test_a_commit_of_others_in_between_is_kept(hub: LocalHub, run_out: Path, waits: list[float]) -> None:
    push(run_out, NAME)

    def others(request: Request) -> Answer | None:
        if request.commit and hub.fault is not None:
            hub.fault = None
            repo = hub.repository(NAME)
            repo.add("main", {**repo.tree(), "LICENSE": File(b"theirs", False)})
        return None

    hub.fault = others
    push(changed(run_out), NAME)
    assert hub.repository(NAME).tree()["LICENSE"].content == b"theirs"
    assert len(hub.repository(NAME).heads) == 4


LASTING = {
    "no upload gets through": (lambda request: Answer(cut=True) if request.upload else None, "the connection failed"),
    "uploads fail": (lambda request: refused(500, "Oops") if request.upload else None, r"the Hub fails \(500\)"),
    "commits fail": (lambda request: refused(500, "Oops") if request.commit else None, r"the Hub fails \(500\)"),
    "a full quota at the upload": (
        lambda request: refused(403, "Private repository storage limit reached") if request.upload else None,
        "the storage quota is full",
    ),
    "a full quota at the list of files": (
        lambda request: refused(413, "Payload too large") if "objects/batch" in request.path else None,
        "the storage quota is full",
    ),
    "a full quota at the commit": (lambda request: refused(402, "Pay first") if request.commit else None, "the storage quota is"),
    "a stale token": (lambda request: None, "does not accept the token, which may be stale"),
    "no permission": (lambda request: refused(403, "Forbidden") if request.commit else None, "no permission to do that"),
    "too many commits": (
        lambda request: refused(429, HOURLY) if request.commit else None, r"allows fewer requests \(You have exceeded our hourly",
    ),
    "a long wait": (
        lambda request: Answer(429, {"error": "tomorrow"}, {"Retry-After": "86400"}) if request.commit else None,
        "allows fewer requests",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LASTING)
def test_what_does_not_pass_is_told_in_a_line_and_a_rerun_completes(
    hub: LocalHub, run_out: Path, waits: list[float], name: str, caplog: pytest.LogCaptureFixture
) -> None:
    push(run_out, NAME)
    repo = hub.repository(NAME)
    before, uploads = repo.heads[-1], len(hub.uploads)
    hub.fault, message = LASTING[name]
    if name == "a stale token":
        hub.tokens.clear()
    caplog.set_level(logging.DEBUG)
    with pytest.raises(HubError, match=message) as caught:
        push(changed(run_out), NAME)
    assert repo.heads[-1] == before == repo.branches["main"], "nothing half-published is the head"
    told = str(caught.value)
    assert "\n" not in told
    assert told.startswith(f"the dataset {NAME}: ")
    assert len([one for one in waits if one >= 1]) <= 4 * 5 + ATTEMPTS  # of each of four uploads, and ours
    shown = caplog.text + "".join(traceback.format_exception(caught.value)) + told
    assert TOKEN not in shown
    assert "S3CR3T" not in told
    sent_before = set(hub.uploads[uploads:])
    hub.fault = None
    hub.tokens[TOKEN] = USER
    again = len(hub.uploads)
    push(run_out, NAME)
    assert on_hub(hub, run_out)
    assert len(repo.heads) == 3
    assert not set(hub.uploads[again:]) & sent_before, "what was uploaded already is not sent again"
    if "commit" in name or "permission" in name or "wait" in name:
        assert len(hub.uploads) == again


def test_after_a_cut_upload_only_what_is_missing_is_sent(hub: LocalHub, run_out: Path, waits: list[float]) -> None:
    largest = max(run_out.rglob("*.parquet"), key=lambda path: path.stat().st_size)
    its = hashlib.sha256(largest.read_bytes()).hexdigest()
    hub.fault = lambda request: Answer(cut=True) if its in request.path else None
    with pytest.raises(HubError, match="the connection failed"):
        push(run_out, NAME)
    assert set(hub.repository(NAME).tree()) == {".gitattributes"}
    assert len(hub.uploads) == 3
    hub.fault = None
    push(run_out, NAME)
    assert hub.uploads[3:] == [its]
    assert on_hub(hub, run_out)


# --- what is not sent at all


def test_a_dry_run_shows_what_would_be_sent_and_makes_no_request(hub: LocalHub, run_out: Path) -> None:
    (run_out / "notes.txt").write_text("mine")
    before = {path: path.read_bytes() for path in run_out.rglob("*") if path.is_file()}
    shown = CliRunner().invoke(app, ["push", str(run_out), NAME, "--dry-run"], env={"COLUMNS": "200", "HF_HUB_OFFLINE": "1"})
    assert shown.exit_code == 0, shown.output
    assert "(private)" in shown.output
    assert "not sent: notes.txt" in shown.output
    assert all(path in shown.output for path in read_contents(run_out).files)
    assert hub.requests == []
    assert {path: path.read_bytes() for path in run_out.rglob("*") if path.is_file()} == before
    push(run_out, NAME)
    assert plan(run_out, NAME).files == {
        path: len(file.content) for path, file in hub.repository(NAME).tree().items() if path != ".gitattributes"
    }


@pytest.mark.parametrize("where", ["card", "library"])
def test_what_the_licence_forbids_is_refused_whatever_one_says(hub: LocalHub, tmp_path: Path, where: str) -> None:
    if where == "card":
        out = run_folder(tmp_path / "run")
        card = (out / "README.md").read_text()
        (out / "README.md").write_text(card.replace("---\n", "---\nrepublish: false\n", 1))
    else:
        out = run_folder(tmp_path / "run", corpus="ace2005")
        card = (out / "README.md").read_text()
        assert "republish: false" in card
        (out / "README.md").write_text(card.replace("republish: false\n", ""))
    for more in (["--yes"], ["--yes", "--public"], ["--dry-run"]):
        shown = CliRunner().invoke(app, ["push", str(out), NAME, *more])
        assert isinstance(shown.exception, HubError)
        assert "the licence of its corpus forbids to republish these rows" in str(shown.exception)
    assert hub.requests == []


def broken(out: Path, name: str) -> Path:
    data = next(out.rglob("*.parquet"))
    if name == "no card":
        (out / "README.md").unlink()
    elif name == "a file is missing":
        data.unlink()
    elif name == "half written":
        (data.parent / ".train.part").write_bytes(b"PAR1")
    elif name == "cut off":
        data.write_bytes(data.read_bytes()[:-100])
    elif name == "of two runs":
        run = json.loads((out / "run.json").read_text())
        (out / "run.json").write_text(json.dumps({**run, "files": run["files"][:-1]}))
    elif name == "an unknown licence":
        card = (out / "README.md").read_text()
        (out / "README.md").write_text(card.replace("license: cc-by-sa-3.0", "license: free"))
    elif name == "a token in it":
        (out / "recipe.yaml").write_text(f"token: {TOKEN}")
    elif name == "another's token in it":
        (out / "report.html").write_text(f"<p>{OTHER_TOKEN}</p>")
    elif name in ("run.json", "recipe.yaml", "report.html"):
        (out / name).unlink()
    elif name == "patterns":
        card = (out / "README.md").read_text()
        (out / "README.md").write_text(re.sub(r"data_files:\n(  - .*\n    .*\n)+", "data_files: data/*.parquet\n", card, count=1))
    elif name == "no YAML":
        card = (out / "README.md").read_text()
        (out / "README.md").write_text(card.replace("license: ", "license: [", 1))
    elif name == "no JSON":
        (out / "run.json").write_text("{")
    return out


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no card", "has no README.md"),
        ("a file is missing", r"card.*missing.*did not finish"),
        ("half written", "is half written"),
        ("cut off", r"parquet is damaged: .* run it again"),
        ("of two runs", "are of different runs"),
        ("a token in it", r"recipe\.yaml.*token"),
        ("another's token in it", r"report\.html.*token"),
        ("run.json", r"run\.json.*missing.*did not finish"),
        ("recipe.yaml", r"recipe\.yaml.*missing"),
        ("report.html", r"report\.html.*missing"),
        ("patterns", r"README\.md.*files"),
        ("no YAML", r"README\.md.*\("),
        ("no JSON", r"run\.json.*\("),
    ],
)
def test_a_folder_that_is_not_fit_is_refused(hub: LocalHub, run_out: Path, name: str, message: str) -> None:
    out = broken(run_out, name)
    for do in (push, plan):
        with pytest.raises(HubError, match=message) as caught:
            do(out, NAME)
        assert TOKEN not in str(caught.value)
        assert OTHER_TOKEN not in str(caught.value)
        assert "\n" not in str(caught.value)
    assert hub.requests == []


LETTERS = "abcdefghijKLMNOPQRSTuvwxyzABCDEFGH"
TOKENS = (
    *(f"{before}hf_{LETTERS}" for before in ("", "HF_", "x_", "x")), f"hf_oauth_eyJhbGciOi.{LETTERS}", f"api_org_{LETTERS}",
    f"sk-{LETTERS}", f"sk-proj-{LETTERS}", f"ghp_{LETTERS}01", "AKIAIOSFODNN7EXAMPLE", "-----BEGIN RSA PRIVATE KEY-----",
    "my-own-key-1", "my\\u002down-key-1", base64.b64encode(b"user:my-own-key-1").decode(),
)  # fmt: skip


def check(path: Path) -> None:
    check_files(Contents(path.parent, "dataset", (path.name,), (), {}))


@pytest.mark.parametrize("token", TOKENS)
def test_no_form_of_a_token_is_sent(token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_LLM_KEY", "my-own-key-1")
    for encoding in ("utf-8", "utf-16", "utf-16-be", "utf-32"):
        (tmp_path / "run.json").write_text(f'{{"é": "{token}"}}', encoding=encoding)
        with pytest.raises(HubError, match=r"run\.json contains a token"):
            check(tmp_path / "run.json")
    for rows in ({"text": ["a", token]}, {"evidence": [[{"text": "a"}, {"text": f"see\n{token}."}]]}):
        Dataset.from_dict({"id": ["1"] * len(next(iter(rows.values()))), **rows}).to_parquet(tmp_path / "rows.parquet")
        with pytest.raises(HubError, match=r"rows\.parquet, column (text|evidence), contains a token"):
            check(tmp_path / "rows.parquet")


def test_what_only_looks_like_a_token_is_sent(tmp_path: Path) -> None:
    texts = ["hf_hub_download(repo_id)", f"{LETTERS}hf_short", "task-oriented-dialogue-systems-of-all-languages", "desk-" + LETTERS]
    (tmp_path / "README.md").write_text("\n".join(texts))
    check(tmp_path / "README.md")
    Dataset.from_dict({"text": texts * 1000}).to_parquet(tmp_path / "rows.parquet")
    check(tmp_path / "rows.parquet")


def test_a_card_that_the_hub_refuses_changes_nothing(hub: LocalHub, run_out: Path) -> None:
    push(run_out, NAME)
    head = hub.repository(NAME).heads[-1]
    with pytest.raises(HubError, match="license") as caught:
        push(broken(run_out, "an unknown licence"), NAME)
    assert "\n" not in str(caught.value)
    assert hub.repository(NAME).heads[-1] == head


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("scores.json", r"scores\.json.*hfcf train"),
        ("pytorch_model.bin", "run code"),
        ("model.safetensors", "safetensors"),
        ("README.md", r"counterfactual.*model"),
    ],
)
def test_a_model_that_is_not_fit_is_refused(hub: LocalHub, model_out: Path, run_out: Path, name: str, message: str) -> None:
    if name == "scores.json":
        (model_out / name).unlink()
    elif name == "README.md":
        (model_out / name).write_bytes((run_out / name).read_bytes())
    else:
        (model_out / name).write_bytes(b"\x80\x04}q\x00.")
    hub.requests.clear()  # of the card
    with pytest.raises(HubError, match=message):
        push(model_out, f"{USER}/verifier")
    assert hub.requests == []


def test_the_machine_and_the_name_are_looked_at_first(
    hub: LocalHub, run_out: Path, model_out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(HubError, match="NAMESPACE/NAME"):
        push(run_out, "a/b/c")
    push(model_out, f"{USER}/verifier")
    push(run_out, f"{USER}/verifier")  # the Hub has models and datasets apart
    assert on_hub(hub, run_out, f"{USER}/verifier")
    assert on_hub(hub, model_out, f"{USER}/verifier", "model")
    with pytest.raises(HubError, match="permission"):
        push(run_out, "someone/else")
    asked = len(hub.requests)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(HubError, match=r"offline.*unset HF_HUB_OFFLINE"):
        push(run_out, NAME)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(HubError, match=r"token.*`hf auth login`"):
        push(run_out, NAME)
    assert len(hub.requests) == asked


def test_the_command_line(hub: LocalHub, run_out: Path) -> None:
    invoke = CliRunner().invoke
    asked = invoke(app, ["push", str(run_out), NAME, "--public"], input="n\n")
    assert (asked.exit_code, hub.requests) == (1, [])
    first = invoke(app, ["push", str(run_out), NAME])
    assert first.exit_code == 0, first.output
    assert f"files sent, 0 of an older push removed (private): {hub.url}/datasets/{NAME}" in first.output
    again = invoke(app, ["push", str(run_out), NAME, "--public", "--yes"])
    assert "no change (private, as it was: make it public in its settings)" in again.output
    everything = (
        first.output
        + asked.output
        + again.output
        + "".join(path.read_text(errors="replace") for path in run_out.rglob("*") if path.is_file())
    )
    assert TOKEN not in everything
