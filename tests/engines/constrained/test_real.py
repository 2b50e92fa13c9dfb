"""The offline generator on the demo's evidence: every claim names every page it is to be written from."""

from __future__ import annotations

import pytest
from datasets import Dataset
from offline_models import installed

from hfcf.engines.generator import Generator
from hfcf.systems.race.system import RACE
from hfcf.text.evidence import join
from hfcf.text.phrase_match import met


@pytest.mark.slow
def test_claims_name_a_phrase_of_every_piece(demo: Dataset, no_request_cache: None) -> None:
    if not installed("t5"):
        pytest.skip("the offline T5 is not installed")
    rows = list(demo.select(range(12)))
    clauses = [[[piece["title"]] for piece in row["evidence"]] for row in rows]
    assert all(len(row) > 1 for row in clauses)
    engine = Generator(model=RACE.preset("offline").generator, num_beams=10, num_return_sequences=5, max_new_tokens=48)
    for found, wanted in zip(
        engine.run([[join(row["evidence"])[0], clause] for row, clause in zip(rows, clauses, strict=True)]), clauses, strict=True
    ):
        assert len(found) == 5
        assert all(all(met(answer["text"], wanted)) for answer in found)
    free = engine.run([[join(row["evidence"])[0], []] for row in rows])
    assert not all(all(met(found[0]["text"], wanted)) for found, wanted in zip(free, clauses, strict=True))
