"""The four tasks of CheckWhy (section 5) as views of a row: a model's input and its right answer."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hfcf.tasks.structures.model import CLAIM, Structure
from hfcf.tasks.structures.program import to_program
from hfcf.tasks.verification import LABELS, NOT_ENOUGH_INFO
from hfcf.text.evidence import join

VIEWS: Mapping[int, str] = {
    1: "claim, leaf evidence → label",
    2: "claim, leaf evidence, structure → label",
    3: "claim, all evidence → label, structure",
    4: "claim, leaf evidence → label, structure",
}
"""The tasks; leaf evidence always comes with all distractors."""
WRITTEN = (3, 4)
"""The tasks in which a model writes the structure."""
_HEADER = "def build_tree_proof():"


@dataclass(frozen=True)
class View:
    """A row as one of the tasks shows it; `view` makes it.

    Args:
        task: 1 to 4.
        claim: the sentence to verify.
        pieces: the evidence that the model is given, by the names Sentence1 … n.
        structure: the structure that the model is given, in Task 2.
        label: the right label.
        target: the structure to write, in Tasks 3 and 4; None if the row has none.
        ids: for each name of the pieces, the id in the row's `evidence_info`.
    """

    task: int
    claim: str
    pieces: Mapping[str, str]
    label: str
    structure: Structure | None = None
    target: Structure | None = None
    ids: Mapping[str, str] = field(default_factory=dict)

    @property
    def texts(self) -> dict[str, str]:
        """The sentences that a program may use without declaring them."""
        return {CLAIM: self.claim, **self.pieces}


def distractors(row: Mapping[str, Any]) -> list[str] | None:
    """List the ids of the pieces that belong to no argument; None if the row does not mark them.

    A row without a structure (NOT ENOUGH INFO) marks its own pieces as useful. If it marks no piece, its own pieces are unknown.
    """
    infos = row["evidence_info"] or []
    useful = [info["useful"] for info in infos]
    if None in useful or not (row["structure"] or any(useful)):
        return None
    return [info["id"] for info in infos if not info["useful"]]


def view_problem(row: Mapping[str, Any], task: int, distractors_shown: int | None = None) -> str | None:
    """Say why a row can't be shown as a task, or None. Tasks 2 to 4 have two labels, since NOT ENOUGH INFO has no structure.

    Args:
        row: see `view`.
        task: 1 to 4.
        distractors_shown: see `view`.
    """
    if task not in VIEWS:
        raise ValueError(f"task must be between 1 and {max(VIEWS)}, got {task}")
    if task > 1 and row["label"] == NOT_ENOUGH_INFO:
        return f"tasks 2 to 4 have two labels, and this row is {NOT_ENOUGH_INFO}"
    if task == 2 and not row["structure"]:
        return "task 2 gives the structure, and this row has none"
    if distractors_shown is not None and distractors(row) is None:
        return "the row does not say which of its pieces are distractors"
    known = {CLAIM, *(info["id"] for info in row["evidence_info"] or [])}
    unknown = (name for step in row["structure"] or [] for name in (*step["premises"], step["conclusion"]) if name not in known)
    return next((f"its structure names {name!r}, which is not a piece of evidence" for name in unknown), None)


def view(row: Mapping[str, Any], task: int, *, seed: int = 13, distractors_shown: int | None = None) -> View:
    """Show a row as a task.

    The evidence is shuffled by the row's id and renamed Sentence1 … n, so that neither its order nor its names reveal the answer.
    The conclusions that Task 2 shows and Task 4 has to write get the next names after n, in the order of the steps. The paper's
    examples (Tables 16–18) also name conclusions last in Task 3, where that would identify them.

    Leaf evidence is all evidence except the conclusions of the structure. A row without a structure (NOT ENOUGH INFO) keeps all its
    evidence, except the pieces that it marks as useful and not as leaves. The paper does not name the evidence of these rows. A
    piece with a title is "title: text".

    Args:
        row: with `id`, `claim`, `evidence`, `evidence_info`, `structure` and `label`.
        task: 1 to 4, see `VIEWS`.
        seed: the seed of the order, and of the distractors that are shown.
        distractors_shown: the maximum number of distractors; they are drawn by the row's id, as for Table 5. The distractors of a
            smaller number are among the distractors of a larger number. None: all.

    Raises:
        ValueError: the row can't be shown as this task; see `view_problem`.

    >>> info = [{"id": "a", "useful": True, "leaf": True}, {"id": "b", "useful": True, "leaf": False}]
    >>> evidence = [{"title": "", "text": "It is hot."}, {"title": "", "text": "It gets hot."}]
    >>> row = {"id": "1", "claim": "It melts.", "evidence": evidence, "label": "SUPPORTS"}
    >>> steps = [{"premises": ["a"], "conclusion": "b"}, {"premises": ["b"], "conclusion": "claim"}]
    >>> shown = view({**row, "evidence_info": info, "structure": steps}, 4)
    >>> dict(shown.pieces), shown.target.edges()
    ({'Sentence1': 'It is hot.'}, [('Sentence1', 'Sentence2'), ('Sentence2', 'claim')])
    """
    if why := view_problem(row, task, distractors_shown):
        raise ValueError(f"row {row['id']!r}: {why}")
    structure = Structure.from_row(row)
    concluded = structure.intermediates()
    infos, pieces = row["evidence_info"], row["evidence"]
    hidden = {info["id"] for info in infos if info["useful"] and not info["leaf"]} if not structure.steps else {*concluded}
    if task == 3:
        hidden = set()
    if distractors_shown is not None:
        irrelevant = distractors(row) or []
        random.Random(f"{seed}:distractors:{row['id']}").shuffle(irrelevant)
        hidden |= {*irrelevant[distractors_shown:]}
    shown = [info["id"] for info in infos if info["id"] not in hidden]
    random.Random(f"{seed}:view:{row['id']}").shuffle(shown)
    names = {piece_id: f"Sentence{i}" for i, piece_id in enumerate(dict.fromkeys([*shown, *concluded]), 1)}
    texts = {info["id"]: join([piece])[0] for info, piece in zip(infos, pieces, strict=True)}
    given = {names[piece_id]: texts[piece_id] for piece_id in shown}
    sentences = {CLAIM: row["claim"], **given, **{names[piece_id]: texts[piece_id] for piece_id in concluded}}
    renamed = replace(structure.rename(names), texts=sentences)
    return View(
        task=task, claim=row["claim"], pieces=given, label=row["label"], ids={names[piece_id]: piece_id for piece_id in shown},
        structure=replace(renamed, label=None) if task == 2 else None,
        target=renamed if task in WRITTEN and structure.steps else None,
    )  # fmt: skip


def views(
    rows: Iterable[Mapping[str, Any]], task: int, *, labels: Sequence[str] = LABELS, seed: int = 13,
    distractors_shown: int | None = None,
) -> tuple[list[int], list[View], dict[int, str]]:  # fmt: skip
    """Show the rows that a task takes, with their indices, and say why each other row is left out, by its index."""
    places, shown, left_out = [], [], dict[int, str]()
    for i, row in enumerate(rows):
        why = view_problem(row, task, distractors_shown)
        if why is None and row["label"] not in labels:
            why = f"the label must be one of {', '.join(labels)}, got {row['label']}"
        if why:
            left_out[i] = why
        else:
            places.append(i)
            shown.append(view(row, task, seed=seed, distractors_shown=distractors_shown))
    return places, shown, left_out


def evidence_text(shown: View) -> str:
    """Write what a classifier reads with the claim: the steps of a given structure, then the other evidence.

    A step is "premise & premise -> conclusion" in sentences, as the metrics compare edges: a small encoder can't resolve names.
    Steps come first, beginning with the steps nearest to the claim, because a long text is cut at its end. The paper gives no form.
    """
    if shown.structure is None:
        return " ; ".join(shown.pieces.values())
    texts, used = {**shown.structure.texts, CLAIM: CLAIM}, shown.structure.nodes()
    steps = [" -> ".join([" & ".join(texts[name] for name in premises), texts[end]]) for premises, end in shown.structure.steps]
    return " ; ".join([*reversed(steps), *(text for name, text in shown.pieces.items() if name not in used)])


def program_text(shown: View) -> str:
    """Write what a model that writes programs reads: `FACT`s of the claim and the evidence, and the given structure.

    The text is one line, because some tokenizers (T5) know no line breaks. If the structure is to be written, the text ends with
    the head of the function, as in Tables 17 and 18. In Task 2 steps come first, because a long text is cut at its end.
    """
    if shown.structure is None:
        facts = to_program(Structure((), shown.texts))
        return _line(facts, _HEADER if shown.task in WRITTEN else "")
    used = {CLAIM, *shown.structure.nodes()}
    given = replace(shown.structure, texts={name: text for name, text in shown.structure.texts.items() if name in used})
    others = {name: text for name, text in shown.pieces.items() if name not in used}
    return _line(to_program(given, function=False), to_program(Structure((), others)))


def answer_text(shown: View) -> str:
    """Write the right answer as a program: new sentences, steps, and the label."""
    structure = shown.target or Structure((), label=shown.label)
    new = {name: text for name, text in structure.texts.items() if name not in shown.texts}
    return _line(to_program(replace(structure, texts=new, label=shown.label), function=False))


def _line(*programs: str) -> str:
    return "; ".join(line for program in programs for line in program.split("\n") if line)
