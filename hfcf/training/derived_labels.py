"""Make rows of all three labels by rule from trees that support their claim (EntailmentBank)."""

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


def derive_labels(rows: Dataset, *, distractors: int = 3, denied: float = 0.5, seed: int = 13) -> Dataset:
    """Make a SUPPORTS, a REFUTES and a NOT ENOUGH INFO row from each tree, all with the same claim, as in CheckWhy.

    A chain of the tree from one leaf up to the claim is denied sentence by sentence (`deny`). The tree supports its claim; the tree
    with the denied chain supports the denied claim and refutes the original claim. Half of the trees keep their claim, the other
    half get the denied claim. A claim has every label once, so a model that reads claims alone can't beat a constant answer. The
    same evidence is in SUPPORTS and in REFUTES rows.

    NOT ENOUGH INFO is made in the two ways of the paper's section 3.2. Half of the leaves are removed, including the leaf of the
    chain. Or the leaves of both trees are merged, so that a leaf occurs with its denial. These rows have no conclusions and no
    structure; what they have of the trees is marked as useful. Further distractors replace what is removed, as long as the row has
    any, so that the number of pieces does not reveal the label.

    The denied chain entails the denied claim only loosely, and nobody has checked the rows. Use them for experiments with
    structures, not to draw conclusions about verification.

    Args:
        rows: rows of argument structures. Rows without a structure and rows that are not SUPPORTS are left out.
        distractors: how many each SUPPORTS and REFUTES row has; fewer if the source row has fewer.
        denied: the share of distractors that are denied, drawn for each row. The rest of the rows does not depend on it.
        seed: for the choice of the chain, the claim and the distractors.

    Returns: Three rows for each tree, with the same `group_id` and `-sup`, `-ref` or `-nei` after the id.
    """
    kept = (row for row in rows if row["label"] == SUPPORTS and row["structure"])
    made = [new for row in kept for new in _three(row, distractors, denied, random.Random(f"{seed}:derive:{row['id']}"))]
    return Dataset.from_list(made, features=rows.features) if made else rows.select([])


def chain(structure: Structure, rng: random.Random) -> list[str]:
    """List the names of a chain from the claim (not listed) to a leaf; it prefers conclusions to leaves."""
    names, concluded, place = [], set(structure.intermediates()), CLAIM
    while premises := next((step.premises for step in structure.steps if step.conclusion == place), None):
        options = [name for name in premises if name not in names] or [""]
        place = rng.choice([name for name in options if name in concluded] or options)
        names += [place] if place else []
    return names


def _three(row: Row, distractors: int, share: float, rng: random.Random) -> list[dict[str, Any]]:
    structure = Structure.from_row(row)
    denied = chain(structure, rng)
    leaf, flipped = denied[-1], rng.random() < 0.5
    originals = {info["id"]: piece for info, piece in zip(row["evidence_info"], row["evidence"], strict=True)}
    opposed = {name: {**piece, "text": deny(piece["text"])} if name in denied else piece for name, piece in originals.items()}
    claim, pool = deny(row["claim"]) if flipped else row["claim"], [name for name in originals if name not in structure.nodes()]
    rng.shuffle(pool)

    def make(suffix: str, label: str, pieces: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
        steps = row["structure"] if label != NOT_ENOUGH_INFO else []
        useful, leaves = {*structure.nodes(), extra}, {*structure.leaves(), extra}
        infos = [{"id": name, "useful": name in useful, "leaf": name in leaves} for name in names]
        at_random = {name: {**originals[name], "text": deny(originals[name]["text"])} for name in pool if rng.random() < share}
        evidence = [{**pieces, **at_random}[name] for name in names]
        changed = {"claim": claim, "evidence": evidence, "evidence_info": infos, "structure": steps, "label": label}
        return {**row, **changed, "id": f"{row['id']}-{suffix}"}

    names = [name for name in originals if name in structure.nodes() or name in pool[:distractors]]
    supporting, refuting = (opposed, originals) if flipped else (originals, opposed)
    leaves, extra = structure.leaves(), f"{leaf}-denied"
    if rng.random() < 0.5:
        removed = {leaf, *rng.sample([name for name in leaves if name != leaf], (len(leaves) + 1) // 2 - 1)}
        rest = [name for name in leaves if name not in removed] + pool[: distractors + len(removed)]
    else:
        rest = [*leaves, extra, *pool[: max(distractors - 1, 0)]]
    side = rng.choice([originals, opposed])
    other = opposed if side is originals else originals
    return [
        make("sup", SUPPORTS, supporting, names),
        make("ref", REFUTES, refuting, names),
        make("nei", NOT_ENOUGH_INFO, {**side, extra: other[leaf]}, rest),
    ]


def deny(sentence: str) -> str:
    """Deny a sentence: add or remove "not" after the auxiliary of its main clause, else put "it is not true that" before it."""
    if sentence.startswith(_OUTSIDE):
        return sentence.removeprefix(_OUTSIDE)
    clause = _CLAUSE.search(sentence)
    main = sentence[: clause.start()] if clause else sentence
    if denied := _DENIED.search(main):
        return sentence[: denied.start()] + (denied[1] or denied[2]) + sentence[denied.end() :]
    if verb := _VERB.search(main):
        return f"{sentence[: verb.end()]} not{sentence[verb.end() :]}"
    return _OUTSIDE + sentence
