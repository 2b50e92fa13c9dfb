"""Reasons for rejections that differ in a part are counted as one pattern, and none is lost."""

from __future__ import annotations

from collections import Counter

import pytest
from datasets import Dataset

from hfcf.core.funnel import find_group, funnel, group_reasons

WORDS = ("Rome", "Oslo", "a great city", "Bonn, Paris", "x")


@pytest.mark.parametrize(
    ("form", "pattern"),
    [
        ("says what the evidence does not mention: {}", "says what the evidence does not mention: …"),
        ("the label '{}' is unknown", "the label … is unknown"),
        ('changes only what "{}" denies', "changes only what … denies"),
    ],
)
def test_reasons_that_differ_in_one_part_are_counted_together(form: str, pattern: str) -> None:
    reasons = {form.format(word): n for n, word in enumerate(WORDS, 1)} | {"is empty": 2}
    examples: dict[str, str] = {}
    assert group_reasons(reasons, examples) == {pattern: 15, "is empty": 2}
    assert examples == {pattern: form.format("x")}
    assert {find_group(reason, [pattern, "is empty"]) for reason in reasons} == {pattern, "is empty"}


def test_reasons_that_differ_in_one_word() -> None:
    reasons = {f"the verifier says {label}": n for n, label in enumerate("abcd", 1)}
    assert group_reasons(reasons, {}) == {"the verifier says …": 10}
    few = {f"uncertain: judge {i}": i for i in (1, 2)}
    assert group_reasons(few, {}) == dict(Counter(few).most_common()), "judges of the settings stay apart"
    assert group_reasons(dict.fromkeys("abcdef", 1), {}) == dict.fromkeys("abcdef", 1)


def test_the_funnel_loses_no_rejection() -> None:
    reasons = [f"the label {word!r} is unknown" for word in WORDS] + ["the claim is null"] * 3
    rows = [{"status": {"accepted": False, "stage": "load", "reason": reason}} for reason in reasons]
    (entry,) = funnel(Dataset.from_list(rows), [])
    assert entry["reasons"] == {"the label … is unknown": 5, "the claim is null": 3}
    assert entry["rows_in"] - entry["rows_out"] == sum(entry["reasons"].values()) == 8
    assert entry["examples"]["the label … is unknown"] in reasons
