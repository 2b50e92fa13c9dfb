"""NOT ENOUGH INFO rows for a corpus that has none (Zhu et al. 2023, RACE, appendix B).

Half of the SUPPORTS rows and half of the REFUTES rows are perturbed, by one of two ways with equal odds: one true piece of
evidence is removed, or the claim is paired with another row's evidence. The perturbed rows are added to the whole original set.

Deviations: a row with a single true piece is always paired anew, since removing its only piece would leave nothing to read; and the
other row is never one of the same group, whose evidence may decide the claim after all. Table 6 of the paper counts 9,086 NEI
rows beside 11,023 + 7,148 = 18,171, which add up to 27,257 and not to the 27,572 that it prints.
"""

from __future__ import annotations

import random
from typing import Any

from datasets import Dataset, concatenate_datasets

from hfcf.tasks.verification import NOT_ENOUGH_INFO, REFUTES, SUPPORTS


def add_nei(ds: Dataset, *, seed: int = 13) -> Dataset:
    """Add NEI rows, made from the verification rows `ds`, after them; `seed` decides which rows, which way and which piece."""
    rng = random.Random(f"{seed}:nei")
    columns = ["id", "group_id", "label", "evidence", *(["gold"] if "gold" in ds.features else [])]
    rows = ds.select_columns(columns).to_list()
    chosen: list[int] = []
    for label in (SUPPORTS, REFUTES):
        members = [i for i, row in enumerate(rows) if row["label"] == label]
        chosen += rng.sample(members, len(members) // 2)
    changes: dict[int, dict[str, Any]] = {}
    for i in sorted(chosen):
        drop = rng.random() < 0.5 and sum(_gold(rows[i])) > 1
        if (pieces := _drop_piece(rows[i], rng) if drop else _draw_evidence(rows, i, rng)) is not None:
            evidence, gold = pieces
            changes[i] = {"evidence": evidence, "label": NOT_ENOUGH_INFO, "id": f"{rows[i]['id']}-nei"}
            changes[i] |= {"gold": gold} if "gold" in columns else {}
    if not changes:
        return ds
    by_place = list(changes.values())
    new = ds.select(list(changes)).map(lambda _, i: by_place[i], with_indices=True, features=ds.features, desc="add NEI")
    return concatenate_datasets([ds, new])


def _drop_piece(row: dict[str, Any], rng: random.Random) -> tuple[list[dict[str, Any]], list[bool]]:
    gold = _gold(row)
    drop = rng.choice([i for i, true in enumerate(gold) if true])
    return row["evidence"][:drop] + row["evidence"][drop + 1 :], gold[:drop] + gold[drop + 1 :]


def _gold(row: dict[str, Any]) -> list[bool]:
    """Mark the pieces that are gold evidence: all, without a column `gold`."""
    return row.get("gold") or [True] * len(row["evidence"])


def _draw_evidence(rows: list[dict[str, Any]], i: int, rng: random.Random) -> tuple[list[dict[str, Any]], list[bool]] | None:
    for _ in range(100):
        other = rows[rng.randrange(len(rows))]
        if other["group_id"] != rows[i]["group_id"] and other["evidence"]:
            return list(other["evidence"]), [False] * len(other["evidence"])  # none of it is true evidence of this claim
    return None  # the set holds one group only
