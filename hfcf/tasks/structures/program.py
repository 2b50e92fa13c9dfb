"""The program text of CheckWhy (Appendix E): `FACT` declarations and linking functions, read as data and never executed."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hfcf.tasks.structures.legality import repair
from hfcf.tasks.structures.model import CLAIM, Structure, StructureError, links
from hfcf.tasks.structures.program_reader import ProgramReader, identifier, write_link


def parse_program(text: str, texts: Mapping[str, str] | None = None) -> Structure:
    """Read a program text as a structure; no part of it is executed.

    It may declare sentences (`Sentence1 = FACT("…")`), link them by the three functions, at the top level or in the body of `def
    build_tree_proof():`, and print the label. Comments, any indentation, and one markdown fence are accepted, because language
    models write them. Text outside the fence is not read. Everything else is refused.

    Args:
        text: the program.
        texts: the sentences that it may use without declaring them, by name; `Structure.texts` of the row. If given, every other
            name must be declared; if not, any name is allowed.

    Returns:
        The structure. Its `texts` are the given and the declared sentences; its `label` is what the program prints.

    Raises:
        StructureError: the text can't be read; the message has line, column and cure.

    >>> parse_program('one_to_one_linking(Sentence1, Claim)\\nprint("SUPPORTS")').label
    'SUPPORTS'
    >>> parse_program("one_to_one_linking(Sentence1, claim)")
    Traceback (most recent call last):
    hfcf.tasks.structures.model.StructureError: line 1, column 31: the root is Claim, not claim: write Claim
    """
    return ProgramReader(text, texts).read()


def repair_program(text: str, texts: Mapping[str, str] | None = None) -> tuple[Structure, list[str]]:
    """Read a program text as `parse_program` does, but repair slips whose meaning is certain; `repair` does it for the structure.

    Repaired are names in different capitals (`claim`, `sentence3`), names in quotes, repeated names in a list, and repeated links.
    Repaired are also a function that does not fit its numbers of premises and conclusions, and a last line or statement that was
    cut off.

    Returns:
        The structure, and a description of each repair.

    Raises:
        StructureError: the text has a fault that is not such a slip.

    >>> structure, repairs = repair_program("one_to_one_linking([s1, s2], Claim)")
    >>> structure.edges(), repairs
    ([('s1', 'claim'), ('s2', 'claim')], ['line 1: read one_to_one_linking as multiple_to_one_linking([s1, s2], Claim)'])
    """
    slips: list[str] = []
    structure, repairs = repair(ProgramReader(text, texts, slips).read())
    return structure, [*slips, *repairs]


def to_program(
    structure: Structure, *, declare: bool = True, new: Collection[str] = (), label: bool = True, function: bool = True
) -> str:
    """Write a structure as program text; `parse_program` reads it back equal.

    A divergent link is one `one_to_multiple_linking`, at the place of its first step.

    Args:
        structure: its names must be Python names, such as "Sentence1"; see `Structure.rename`.
        declare: write a `FACT` for the claim and each sentence of `structure.texts`, except the sentences in `new`.
        new: conclusions that are declared right before the link to them, as Task 4 has the intermediates (Table 18).
        label: write a `print` of the label, if the structure has a label.
        function: write the links as the body of `build_tree_proof` (Table 16); False: at the top level (Tables 17 and 18).

    Raises:
        StructureError: a name can't be written in a program, or one of `new` has no sentence.

    >>> from hfcf.tasks.structures.model import Step
    >>> steps = (Step(("s2",), "s3"), Step(("s2",), "s4"), Step(("s1", "s3", "s4"), "claim"))
    >>> print(to_program(Structure(steps, label="SUPPORTS")))
    def build_tree_proof():
        one_to_multiple_linking(s2, [s3, s4])
        multiple_to_one_linking([s1, s3, s4], Claim)
    print("SUPPORTS")
    """
    if missing := [name for name in new if name not in structure.texts]:
        raise StructureError(f"{missing[0]} has no sentence to declare: add its sentence to Structure.texts")
    first = [name for name in (CLAIM, *structure.texts) if name in structure.texts and name not in new] if declare else []
    lines, body, declared = [_declaration(structure, name) for name in dict.fromkeys(first)], list[str](), set[str]()
    for premises, conclusions in links(structure.steps):
        for name in conclusions:
            if name in new and name not in declared:
                declared.add(name)
                body.append(_declaration(structure, name))
        body.append(write_link(premises, conclusions))
    if function and body:
        lines += ["def build_tree_proof():", *(f"    {line}" for line in body)]
    else:
        lines += body
    if label and structure.label is not None:
        lines.append(f"print({_quoted(structure.label)})")
    return "\n".join(lines)


def _declaration(structure: Structure, name: str) -> str:
    return f"{identifier(name)} = FACT({_quoted(structure.texts[name])})"


def _quoted(text: str) -> str:
    """Quote a text as a Python string in double quotes, as the paper's prompts have it."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return (
        '"'
        + "".join(character if character.isprintable() else character.encode("unicode_escape").decode() for character in plain)
        + '"'
    )
