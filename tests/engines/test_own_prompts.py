"""Prompts of the user's own: what a folder may hold, what is asked, and which cache keys and files tell of it."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from bad_server import Start, claim, say, starter
from datasets import Dataset

import hfcf
from hfcf import prompts
from hfcf.core.model import Model
from hfcf.core.model_checks import check_weights
from hfcf.prompts.own import check_folder, texts
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.systems.baselines.llm import LLM, RewriteLlm
from hfcf.systems.baselines.paraphrase import Paraphrase
from hfcf.systems.checkwhy.chat import Chat

OURS = resources.files("hfcf.prompts")
NAMES = sorted(Path(path.name).stem for path in OURS.iterdir() if path.name.endswith(".jinja"))
MINE = """Turn it round, {{ label }} to {{ wanted }}: {{ claim }}
{% for piece in evidence %}
- {{ piece.text | json }}
{% endfor %}
"""
ROW = {
    "id": "1", "group_id": "1", "corpus": "c", "split": "train", "claim": "Rome is old.", "label": "SUPPORTS",
    "evidence": [{"title": "Rome", "text": "It is old."}],
}  # fmt: skip


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    with starter(monkeypatch) as begin:
        yield begin


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "mine"
    path.mkdir()
    (path / "claims.jinja").write_text(MINE, encoding="utf-8")
    return path


def test_a_copy_of_ours_passes_and_asks_the_same(tmp_path: Path) -> None:
    for name in NAMES:
        for file in (f"{name}.jinja", f"{name}.json"):
            (tmp_path / file).write_text((OURS / file).read_text(encoding="utf-8"), encoding="utf-8")
    check_folder(str(tmp_path))
    values: dict[str, Any] = {"claim": "a", "evidence": ROW["evidence"], "label": "SUPPORTS", "wanted": "REFUTES"}
    assert prompts.messages("claims", shots=2, folder=str(tmp_path), **values) == prompts.messages("claims", shots=2, **values)
    turns = prompts.dialogue("opposite_effects", shots=1, folder=str(tmp_path), effect="a")
    assert turns == prompts.dialogue("opposite_effects", shots=1, effect="a")


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("claims.jinja", MINE + "{{ clam }}", r"claims\.jinja:5: unknown variable 'clam'; did you mean 'claim'\?; it gets claim, "),
        (
            "claims.jinja",
            MINE.replace("{{ wanted }}", "x"),
            r"claims\.jinja:1: the variable 'wanted' is missing: write \{\{ wanted",
        ),
        ("claims.jinja", MINE + "{% if x", r"claims\.jinja:5: unexpected end of template"),
        ("claims.jinja", MINE.replace("json", "jsn"), r"claims\.jinja:3: No filter named 'jsn'"),
        ("claims.jinja", MINE.replace("piece.text", "piece.txt"), r"claims\.jinja:3: unknown field 'txt'; did you mean 'text'\?"),
        ("claims.jinja", MINE + "{{ claim.__class__.__mro__ }}", r"claims\.jinja:5: unknown field '__mro__'"),
        ("claim.jinja", MINE, r"claim\.jinja: there is no prompt 'claim'; did you mean 'claims'\?"),
        ("opposite_effects.jinja", "{{ effect }}", r"opposite_effects\.jinja:1: the block 'task' is missing"),
        ("claims.json", "[{", r"claims\.json:1: "),
        ("claims.json", "{}", r"claims\.json:1: a list of examples is expected"),
        ("claims.json", '[{"claim": "a"}]', r"claims\.json: example 1 lacks 'answer'"),
    ],
)
def test_a_wrong_file_is_named_with_its_line_before_anything_is_asked(folder: Path, file: str, text: str, message: str) -> None:
    (folder / file).write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        LLM(model="m", prompts=str(folder))
    with pytest.raises(ValueError, match=r"judge: .*" + message):
        check_weights(Model("llm:m", prompts=str(folder)), "judge")
    with pytest.raises(ValueError, match=message):  # in a chain, before its first stage
        Paraphrase(generator=Model("llm:m", prompts=str(folder)))(Dataset.from_list([ROW]))


def test_a_folder_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no folder .*nowhere"):
        check_folder(str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match="holds no template: give it the name of one of ours"):
        check_folder(str(tmp_path))
    with pytest.raises(ValueError, match="prompts are asked of llm:NAME or chat:NAME, a language model, got t5-base"):
        Model("t5-base", prompts=str(tmp_path))


def test_a_template_reaches_nothing_but_its_variables(folder: Path) -> None:
    (folder / "claims.jinja").write_text(MINE + "{{ claim.__class__() }}", encoding="utf-8")
    values: dict[str, Any] = {"claim": "a", "evidence": ROW["evidence"], "label": "SUPPORTS", "wanted": "REFUTES"}
    with pytest.raises(ValueError, match=r"mine/claims\.jinja: access to attribute '__class__' .*unsafe"):
        prompts.messages("claims", shots=1, folder=str(folder), **values)


def test_the_own_prompt_is_asked_and_published(folder: Path, start: Start, tmp_path: Path) -> None:
    server = start(lambda n, asked: claim("It is new."))
    recipe = {
        "corpus": "hover", "data_dir": "recipes:demo", "split": "train[:1]", "system": "llm", "preset": "paper", "metrics": {},
        "settings": {"model": "m", "prompts": str(folder)},
    }  # fmt: skip
    told = hfcf.run(recipe, tmp_path / "out")
    (asked,) = server.asked
    assert asked["messages"][0]["content"].startswith("Turn it round, ")
    assert told["prompts"] == {"prompts": texts(str(folder))} == {"prompts": {"claims.jinja": MINE}}
    assert str(tmp_path) not in (tmp_path / "out" / "run.json").read_text(encoding="utf-8")
    # Another text is another request, in the same folder of prompts.
    (folder / "claims.jinja").write_text("Please: " + MINE, encoding="utf-8")
    hfcf.run(recipe, tmp_path / "out")
    assert len(server.asked) == 2
    assert "prompts" not in hfcf.run({**recipe, "settings": {"model": "m"}}, tmp_path / "ours")


def test_a_judge_of_its_own_prompt(tmp_path: Path, start: Start) -> None:
    (tmp_path / "verdicts.jinja").write_text(
        "{% set unused = meanings %}Judge {{ claim }} by {{ evidence[0].text }}: {{ names | join }}", encoding="utf-8"
    )
    server = start(lambda n, asked: say(json.dumps({"label": "SUPPORTS"})))
    mine = Model("llm:m", prompts=str(tmp_path))
    assert hfcf.core.task.get_task("verification").verdicts([ROW], mine, 100)[0] is not None
    assert server.asked[0]["messages"][0]["content"] == "Judge Rome is old. by It is old.: NOT ENOUGH INFOREFUTESSUPPORTS"


def test_the_contents_are_in_the_state_of_every_stage_that_asks(folder: Path) -> None:
    (folder / "verdicts.jinja").write_text((OURS / "verdicts.jinja").read_text(encoding="utf-8"), encoding="utf-8")
    mine = Model("llm:m", prompts=str(folder))
    stages = [RewriteLlm(model="m", prompts=str(folder)), JudgeCandidates(verifier=mine)]
    before = [pickle.dumps(stage) for stage in stages]
    key = mine.key()
    assert before == [pickle.dumps(stage) for stage in stages]
    for name in ("claims", "verdicts"):
        (folder / f"{name}.jinja").write_text(f"{(folder / f'{name}.jinja').read_text()}!", encoding="utf-8")
    assert all(one != pickle.dumps(stage) for one, stage in zip(before, stages, strict=True))
    assert mine.key() != key
    assert Chat(model=mine).model.prompts == str(folder)
    assert b"prompts" not in pickle.dumps(Model("llm:m")), "no row that was made before is made again"
