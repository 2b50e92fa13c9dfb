"""Every file that a training writes is one that a push sends."""

from __future__ import annotations

import pytest

from hfcf.core.model import SEEN
from hfcf.hub.contents import select_own
from hfcf.training.trainer import WEIGHTS


@pytest.mark.parametrize("name", [*(name.replace("*", "00001") for name in WEIGHTS), SEEN, "scores.json"])
def test_a_push_sends_every_file_of_a_model(name: str) -> None:
    assert select_own([name, "notes.txt"], "model", {}, {}) == [name]
