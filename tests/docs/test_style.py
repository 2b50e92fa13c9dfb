"""The English checker finds what its rules describe, and reads neither code nor quotes."""

from __future__ import annotations

import json
from pathlib import Path

import check_style
import pytest
import yaml

RULES = check_style.read_rules()
LONG = "This sentence has too many words because it " + "goes on and " * 8 + "ends."
BAD = {
    "Beside": "The card is beside the file.",
    "IsNo": "A copy is no counterfactual.",
    "Of": "It reads rows. Of each row it keeps the claim.",
    "Other": "Two rows match; the others are dropped.",
    "Person": "The verifier says that the claim is true.",
    "Place": "It reads a folder in the place of a file.",
    "Pronoun": "It keeps those that differ.",
    "Range": "top_p is from 0 to 1, got 2",
    "Sentence": LONG,
    "Stand": "The label stands in the last column.",
    "Too": "Streams work, too.",
    "Usual": "Beams are shared out over constraints.",
}
GOOD = (
    "There is no network. It is no longer read. MiniLM stands for a small encoder.",
    "The other rows differ from each other. One row in ten has one or more answers. These rows are too long.",
    "top_p must be between 0 and 1, got 2. Zhu et al. Of course it works.",
)


def findings(text: str, name: str = "page.md", folder: Path | None = None) -> list[str]:
    assert folder
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return [rule for _, rule, _ in check_style.findings(path, RULES)]


@pytest.mark.parametrize("rule", sorted(path.stem for path in check_style.RULES.glob("*.yml")))
def test_each_rule_finds_its_pattern(rule: str, tmp_path: Path) -> None:
    assert findings(BAD[rule], folder=tmp_path) == [rule]


@pytest.mark.parametrize("text", GOOD)
def test_the_usual_form_is_no_finding(text: str, tmp_path: Path) -> None:
    assert findings(text, folder=tmp_path) == []


@pytest.mark.parametrize(
    "text",
    [
        f"```\n{LONG}\n```",
        "`it stands`",
        'The paper writes "the label stands".',
        "<!-- generated: stages -->\n| it stands |\n<!-- end -->",
        "<!-- vale off -->\nIt stands.\n<!-- vale on -->",
        "[text](stands.md)",
    ],
)
def test_code_quotes_and_generated_parts_are_not_read(text: str, tmp_path: Path) -> None:
    assert findings(text, folder=tmp_path) == []


def test_docstrings_and_messages_are_read_and_examples_and_data_are_not(tmp_path: Path) -> None:
    source = '''
def read(path):
    """Read what stands in a file.

    Args:
        path: a file, or one of the others.

    >>> read("what stands")
    """
    data = "it stands here"
    raise ValueError(f"{path} is no file")
'''
    assert sorted(findings(source, "module.py", tmp_path)) == ["IsNo", "Other", "Stand"]


def test_the_number_of_findings_can_only_fall(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hfcf").mkdir()
    (tmp_path / "docs").mkdir()
    page, module = tmp_path / "docs" / "page.md", tmp_path / "hfcf" / "module.py"
    page.write_text("It stands.\n\nIt stood.", encoding="utf-8")
    module.write_text('"""It stands."""', encoding="utf-8")
    monkeypatch.setattr(check_style, "ROOT", tmp_path)
    monkeypatch.setattr(check_style, "ALLOWED", tmp_path / "allowed.json")
    monkeypatch.setattr(check_style, "files", lambda: [page, module])
    check_style.write_allowed({"docs": 3, "hfcf/module.py": 1})
    assert check_style.main([]) == 0
    assert check_style.main(["--accept"]) == 0
    assert json.loads(check_style.ALLOWED.read_text(encoding="utf-8")) == {"": {"docs": 2}, "hfcf": {"module.py": 1}}
    page.write_text("It stands. It stood. It stands.", encoding="utf-8")
    assert check_style.main([]) == 1
    assert "docs/page.md:1: Stand" in capsys.readouterr().out
    page.write_text("It is.", encoding="utf-8")
    check_style.write_allowed({})  # what is not named may have none
    assert check_style.main([]) == 1
    assert "hfcf/module.py: 1 findings, 0 allowed" in capsys.readouterr().out


def test_vale_reads_the_rules() -> None:
    known = {"extends", "message", "level", "ignorecase", "scope", "nonword", "tokens", "swap", "max", "token"}
    for path in check_style.RULES.glob("*.yml"):
        rule = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert set(rule) <= known
        assert rule["message"].count("%s") == {"existence": 1, "substitution": 2, "occurrence": 0}[rule["extends"]]
