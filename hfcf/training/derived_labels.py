"""Rows of all three labels from trees that all support their claim (EntailmentBank), by rule."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import Any

from datasets import Dataset

from hfcf.tasks.structures.model import CLAIM, Structure
from hfcf.tasks.verification import NOT_ENOUGH_INFO, REFUTES, SUPPORTS

Row = Mapping[str, Any]

_VERBS = "is|are|was|were|can|could|will|would|must|may|might|should|does|do|did"
_VERB = re.compile(rf"\b({_VERBS})\b(?! not\b)")
_DENIED = re.compile(rf"\b({_VERBS}) not\b|\b(can)not\b")
_CLAUSE = re.compile(r"\b(if|when|while|as|that|which|who|because|where|whether|than|but|and|or)\b", re.IGNORECASE)
_OUTSIDE = "it is not true that "


def derive_labels(rows: Dataset, *, distractors: int = 3, seed: int = 13) -> Dataset:
    """Make a SUPPORTS, a REFUTES and a NOT ENOUGH INFO row of each tree, all three with the same claim, as CheckWhy has them.

    A chain of the tree from one leaf up to the claim is denied sentence by sentence (`deny`). The tree supports
    its claim, and with the chain denied it supports the denied claim; each refutes the other's claim. Half of the trees keep
    their claim, the others get the denied one. A claim has every label once, so that no model that reads claims alone can do better
    than always giving one label; and the same evidence is in SUPPORTS and in REFUTES rows.

    NOT ENOUGH INFO is made in the two ways of the paper's section 3.2: half of the leaves are removed, the one of the chain among
    them, or the leaves of both trees are merged, so that one is there with its denial. These rows have no conclusions and no
    structure. Other distractors take the place of what is removed, as long as the row has some, so that the number of leaves and
    distractors gives nothing away.

    That the denied chain entails the denied claim holds loosely, as it does for rules that apply to one thing; nobody has checked
    the rows. They are for experiments with structures, not for claims about verification.

    Args:
        rows: rows of argument structures. Those without a structure are left out, and so are those that are not SUPPORTS.
        distractors: of each SUPPORTS and REFUTES row; fewer where the row has fewer.
        seed: of the chain, the claim and the distractors.

    Returns:
        Three rows of each tree, with `group_id` as it was and `-sup`, `-ref` or `-nei` after the id.
    """
    kept = (row for row in rows if row["label"] == SUPPORTS and row["structure"])
    made = [new for row in kept for new in _three(row, distractors, random.Random(f"{seed}:derive:{row['id']}"))]
    return Dataset.from_list(made, features=rows.features) if made else rows.select([])


def chain(structure: Structure, rng: random.Random) -> list[str]:
    """List the names of a chain from the claim, left out, to a leaf; it prefers conclusions to leaves."""
    names, concluded, place = [], set(structure.intermediates()), CLAIM
    while premises := next((step.premises for step in structure.steps if step.conclusion == place), None):
        options = [name for name in premises if name not in names] or [""]
        place = rng.choice([name for name in options if name in concluded] or options)
        names += [place] if place else []
    return names


def _three(row: Row, distractors: int, rng: random.Random) -> list[dict[str, Any]]:
    structure = Structure.from_row(row)
    denied = chain(structure, rng)
    leaf, flipped = denied[-1], rng.random() < 0.5
    plain = {info["id"]: piece for info, piece in zip(row["evidence_info"], row["evidence"], strict=True)}
    opposed = {name: {**piece, "text": deny(piece["text"])} if name in denied else piece for name, piece in plain.items()}
    claim, pool = deny(row["claim"]) if flipped else row["claim"], [name for name in plain if name not in structure.nodes()]
    rng.shuffle(pool)

    def make(suffix: str, label: str, pieces: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
        steps, leaves = (row["structure"], structure.leaves()) if label != NOT_ENOUGH_INFO else ([], [])
        used = {name for step in steps for name in (*step["premises"], step["conclusion"])}
        infos = [{"id": name, "useful": name in used, "leaf": name in leaves} for name in names]
        at_random = {name: {**plain[name], "text": deny(plain[name]["text"])} for name in pool if rng.random() < 0.5}
        evidence = [{**pieces, **at_random}[name] for name in names]
        changed = {"claim": claim, "evidence": evidence, "evidence_info": infos, "structure": steps, "label": label}
        return {**row, **changed, "id": f"{row['id']}-{suffix}"}

    names = [name for name in plain if name in structure.nodes() or name in pool[:distractors]]
    supporting, refuting = (opposed, plain) if flipped else (plain, opposed)
    leaves, extra = structure.leaves(), f"{leaf}-denied"
    if rng.random() < 0.5:
        removed = {leaf, *rng.sample([name for name in leaves if name != leaf], (len(leaves) + 1) // 2 - 1)}
        rest = [name for name in leaves if name not in removed] + pool[: distractors + len(removed)]
    else:
        rest = [*leaves, extra, *pool[: max(distractors - 1, 0)]]
    side = rng.choice([plain, opposed])
    other = opposed if side is plain else plain
    return [
        make("sup", SUPPORTS, supporting, names),
        make("ref", REFUTES, refuting, names),
        make("nei", NOT_ENOUGH_INFO, {**side, extra: other[leaf]}, rest),
    ]


def deny(sentence: str) -> str:
    """Say the opposite: put "not" after the first auxiliary, or take it away; without one, put "it is not true that" before all.

    An auxiliary after a word that may begin a clause (if, that, which, and …) is not touched: it may not be the main verb.
    """
    if sentence.startswith(_OUTSIDE):
        return sentence.removeprefix(_OUTSIDE)
    clause = _CLAUSE.search(sentence)
    main = sentence[: clause.start()] if clause else sentence
    if denied := _DENIED.search(main):
        return sentence[: denied.start()] + (denied[1] or denied[2]) + sentence[denied.end() :]
    if verb := _VERB.search(main):
        return f"{sentence[: verb.end()]} not{sentence[verb.end() :]}"
    return _OUTSIDE + sentence
