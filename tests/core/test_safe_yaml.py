"""YAML of strangers: plain values, and no key twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from hfcf.core import recipe
from hfcf.core.safe_yaml import front_matter, read_yaml, read_yaml_file


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("seed: 1\nseed: 2\n", ["'seed'", "the lines 1 and 2"]),
        ("stages: {a: 1, b: 2, a: 3}\n", ["'a'", "twice"]),
        ("name: !!python/object/apply:os.system ['touch proof']", ["line 1"]),
        ("name: 2001-99-99", ["month"]),
        ("title: [", ["line 1, column 9"]),
    ],
)
def test_what_is_not_plain_is_refused_in_one_line_that_names_the_file(text: str, words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"mine\.yaml") as raised:
        read_yaml_file(path)
    assert all(word in str(raised.value) for word in words)
    assert "\n" not in str(raised.value)


def test_values_are_read_as_yaml_1_2_has_them() -> None:
    assert read_yaml("{a: yes, b: off, c: true, d: 5e-5, e: 3, f: null}") == {
        "a": "yes", "b": "off", "c": True, "d": 5e-5, "e": 3, "f": None,
    }  # fmt: skip
    assert read_yaml("a: &a {b: 1}\nc: [*a, *a]\nd: {<<: *a, b: 2}") == {"a": {"b": 1}, "c": [{"b": 1}] * 2, "d": {"b": 2}}
    assert read_yaml("") is None
    assert front_matter("---\ntags: [hfcf]\n---\nText") == {"tags": ["hfcf"]}
    for name in recipe.names():
        assert isinstance(read_yaml((recipe.folder() / f"{name}.yaml").read_text(encoding="utf-8")), dict)
