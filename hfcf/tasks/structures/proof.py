"""EntailmentBank's proofs: `sent1 & sent2 -> int1: its sentence; int1 & sent3 -> hypothesis; `."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hfcf.tasks.structures.model import CLAIM, Step, Structure, StructureError

MAX_LENGTH = 200_000
CLAIM_NAME = "hypothesis"
"""The root's name in proofs."""
_NAME = r"[^\s&;:>-][^\s&;:>]*"
_PREMISES = rf"{_NAME}(?:[ \t]*&[ \t]*{_NAME})*"
_SPACE = re.compile(r"\s*")
_STEP = re.compile(rf"(?P<premises>{_PREMISES})\s*->\s*(?P<conclusion>{_NAME})[ \t]*(?::(?P<text>.*))?", re.DOTALL)
_END = re.compile(rf";(?=\s*(?:$|{_PREMISES}\s*->))")
"""A semicolon may also be part of a sentence: it ends a step only before another step or at the end."""


def parse_proof(text: str, texts: Mapping[str, str] | None = None) -> Structure:
    """Read the field `proof` of EntailmentBank; the sentences of intermediate conclusions are in `Structure.texts`."""
    if len(text) > MAX_LENGTH:
        raise StructureError(f"the text must have at most {MAX_LENGTH} characters to be a proof, got {len(text)}")
    steps: list[tuple[Step, int]] = []
    sentences, offset = dict(texts or {}), 0
    while (offset := offset + len(_SPACE.match(text, offset)[0])) < len(text):  # type: ignore[index]
        end = _END.search(text, offset)
        stop = len(text) if end is None else end.start()
        match = _STEP.fullmatch(text, offset, stop)
        if match is None:
            cure = "this is not a step: write sent1 & sent2 -> int1: its sentence; or … -> hypothesis;"
            sound = _STEP.match(text, offset, stop)
            raise StructureError.at(cure, text, sound.end() if sound else offset)
        conclusion, sentence = _name(match["conclusion"]), (match["text"] or "").strip()
        if sentence and sentences.setdefault(conclusion, sentence) != sentence:
            raise StructureError.at(
                f"{match['conclusion']} has another sentence already: give one of the two another name", text, offset
            )
        premises = tuple(_name(name.strip()) for name in match["premises"].split("&"))
        steps.append((Step(premises, conclusion), offset))
        offset = min(stop + 1, len(text))
    known = {*sentences, CLAIM, *(step.conclusion for step, _ in steps)}
    for step, offset in steps:
        for name in step.premises:
            if texts is not None and name not in known:
                raise StructureError.at(f"there is no sentence {name}: use one of the context or a conclusion", text, offset)
    return Structure(tuple(step for step, _ in steps), sentences)


def to_proof(structure: Structure) -> str:
    """Write a structure as a proof; `parse_proof` reads it back equal."""
    return "".join(
        f"{' & '.join(map(_written, step.premises))} -> {_written(step.conclusion)}{_sentence(structure, step.conclusion)}; "
        for step in structure.steps
    )


def _name(name: str) -> str:
    return CLAIM if name == CLAIM_NAME else name


def _written(name: str) -> str:
    if not re.fullmatch(_NAME, name) or name == CLAIM_NAME:
        raise StructureError(f"{name!r} can't be a name in a proof: rename it by Structure.rename, for example to 'sent1'")
    return CLAIM_NAME if name == CLAIM else name


def _sentence(structure: Structure, name: str) -> str:
    if name == CLAIM or name not in structure.texts:
        return ""
    text = structure.texts[name]
    if _END.search(f"{text};", 0, len(text)):
        raise StructureError(f"the sentence of {name} holds a step of a proof, {text!r}: take out its arrow or its semicolon")
    return f": {text}"
