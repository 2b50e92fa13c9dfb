"""`hfcf push` where others' files, branches, tags and pushes are."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from hub_parts import File, Repository, Tree
from local_hub import OTHER, OTHER_TOKEN, TOKEN, USER, LocalHub
from made import NAME, changed, copied, on_hub

from hfcf.hub.contents import read_contents
from hfcf.hub.errors import HubError
from hfcf.hub.push import PushReport, plan, push

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # how huggingface_hub uploads


def theirs(*paths: str) -> Tree:
    return {path: File(f"their {path}".encode(), path.endswith((".parquet", ".safetensors"))) for path in paths}


def add(hub: LocalHub, tree: Tree, name: str = NAME, kind: str = "dataset") -> None:
    repo = hub.repository(name, kind)
    repo.add("main", {**repo.tree(), **tree})


def test_files_of_others_in_a_sets_repository_are_left_as_they_are(hub: LocalHub, run_out: Path) -> None:
    push(run_out, NAME)
    others = theirs(
        "data/train-00000-of-00001.parquet", "data/my_own/labels.parquet", "data/my_own/train-0123456789abcdef.parquet",
        "reports/2024/index.html", "report_mine.html", "notes/README.md", "LICENSE",
    )  # fmt: skip
    add(hub, others)
    done = push(changed(run_out), NAME)
    tree = hub.repository(NAME).tree()
    assert {path: tree[path] for path in others} == others
    assert set(tree) == {*read_contents(run_out).files, ".gitattributes", *others}
    assert done.removed


def test_the_card_was_edited_there_and_run_json_still_tells_what_is_removed(hub: LocalHub, run_out: Path) -> None:
    push(run_out, NAME)
    add(hub, {"README.md": File(b"---\r\ntags: [hfcf]\r\nconfigs: mine\r\n---\r\n", False)})
    push(changed(run_out), NAME)
    assert on_hub(hub, run_out)
    add(hub, {"run.json": File(b"{", False)})
    push(copied(run_out, 20), NAME)
    assert on_hub(hub, run_out)


def test_files_of_others_in_a_models_repository_are_left_as_they_are(hub: LocalHub, model_out: Path) -> None:
    name = f"{USER}/verifier"
    push(model_out, name)
    others = theirs("model.fp16.safetensors", "tokenizer_old.json", "vocab_notes.md", "onnx/config.json")
    add(hub, {**others, **theirs("adapter_config.json", "adapter_model.safetensors")}, name, "model")
    done = push(model_out, name)
    assert done.removed == ("adapter_config.json", "adapter_model.safetensors"), "of an older training"
    tree = hub.repository(name, "model").tree()
    assert {path: tree[path] for path in others} == others


@pytest.mark.parametrize("name", ["a card without the tag", "no card", "a card that is no YAML"])
@pytest.mark.parametrize("kind", ["dataset", "model"])
def test_a_repository_of_something_else_is_refused(hub: LocalHub, run_out: Path, model_out: Path, name: str, kind: str) -> None:
    repo = hub.repositories[kind, NAME] = Repository(kind, True, {USER})
    cards = {"a card without the tag": b"---\ntags: [hfc, text]\n---\n", "a card that is no YAML": b"---\ntags: [\n---\n"}
    card = {"README.md": File(cards[name], False)} if name in cards else {}
    repo.add("main", {**theirs("config.json", "data/train-00000-of-00001.parquet"), **card})
    with pytest.raises(HubError, match=r"README\.md" if "YAML" in name else r"files.*hfcf") as caught:
        push(run_out if kind == "dataset" else model_out, NAME)
    assert "YAML" in name or "push to another name, or empty it first" in str(caught.value)
    assert len(repo.heads) == 1
    assert hub.uploads == []


@pytest.mark.parametrize("rule", ["*.parquet", "/data/", "report.html"])
def test_a_gitignore_never_makes_a_half_published_head(hub: LocalHub, run_out: Path, rule: str) -> None:
    push(run_out, NAME)
    add(hub, {".gitignore": File(f"{rule}\n".encode(), False)})
    repo = hub.repository(NAME)
    before = repo.heads[-1]
    push(changed(run_out), NAME)
    assert repo.branches["main"] != before
    assert set(repo.tree()) == {*read_contents(run_out).files, ".gitattributes", ".gitignore"}


def test_a_tag_and_a_commit_are_no_branches(hub: LocalHub, run_out: Path) -> None:
    first = push(run_out, NAME).commit
    repo = hub.repository(NAME)
    repo.tags["v1"] = first
    asked = len(hub.requests)
    with pytest.raises(HubError, match=rf"{first}.*commit.*branch"):
        push(changed(run_out), NAME, revision=first)
    assert len(hub.requests) == asked
    with pytest.raises(HubError, match=rf"v1.*tag.*{NAME}.*branch"):
        push(run_out, NAME, revision="v1")
    assert (repo.branches, repo.heads[-1]) == ({"main": first}, first)


def test_two_people_push_at_once(hub: LocalHub, tmp_path: Path) -> None:
    """Whoever is second begins anew from what the first left: the head is one folder, whole."""
    folders = {TOKEN: copied(tmp_path / "one"), OTHER_TOKEN: copied(tmp_path / "other", 40)}
    push(copied(tmp_path / "first", 20), NAME)
    repo = hub.repository(NAME)
    repo.members.add(OTHER)
    start, done = threading.Barrier(2), dict[str, PushReport | Exception]()

    def go(token: str) -> None:
        start.wait()
        try:
            done[token] = push(folders[token], NAME, token=token)
        except Exception as error:
            done[token] = error

    threads = [threading.Thread(target=go, args=(token,)) for token in folders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(isinstance(one, PushReport) for one in done.values()), done
    assert len(repo.heads) == 4
    assert sum(on_hub(hub, folder) for folder in folders.values()) == 1
    assert {one.commit for one in done.values() if isinstance(one, PushReport)} == set(repo.heads[2:])


def test_one_person_makes_the_same_repository_twice_at_once(hub: LocalHub, tmp_path: Path) -> None:
    """What another process made in the meantime is a conflict that the push goes on from."""
    out = copied(tmp_path / "one")

    def other(request: object) -> None:
        if getattr(request, "path", "") == "/api/repos/create" and hub.fault is not None:
            hub.fault = None
            hub.repositories["dataset", NAME] = repo = Repository("dataset", True, {USER})
            repo.add("main", {".gitattributes": File(b"", False)})

    hub.fault = other
    push(out, NAME)
    assert on_hub(hub, out)


def test_who_is_no_member_can_not_push(hub: LocalHub, run_out: Path) -> None:
    push(run_out, NAME)
    repo = hub.repository(NAME)
    for private in (True, False):
        repo.private = private
        with pytest.raises(HubError, match="permission"):
            push(changed(run_out), NAME, public=True, token=OTHER_TOKEN)
    assert len(repo.heads) == 2


def test_an_attack_sets_notes_are_sent(hub: LocalHub, run_out: Path) -> None:
    card = (run_out / "README.md").read_text()
    (run_out / "README.md").write_text(card.replace("- hfcf-crossaug", "- hfcf-attack"))
    for name in ("run.json", "recipe.yaml", "report.html"):
        (run_out / name).unlink()
    with pytest.raises(HubError, match=r"attack\.json.*missing"):
        plan(run_out, NAME)
    (run_out / "attack.json").write_text(json.dumps({}))
    (run_out / "candidates.csv").write_text("mine")
    push(run_out, NAME)
    assert "attack.json" in hub.repository(NAME).tree()
    assert plan(run_out, NAME).left_out == ("candidates.csv",)
