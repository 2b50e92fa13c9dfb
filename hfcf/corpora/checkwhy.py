"""CheckWhy: causal claims with evidence, distractors and the argument structure that leads from the evidence to the claim.

- Option `classes`: "2" (the default) is SUPPORTS and REFUTES, `{train,dev,test}.json`; "3" also has NOT ENOUGH INFO,
  `{train,dev,test}_nei.json`. Each is a JSON list. The authors send the test files on request.
- Documented fields: `checkwhy-id`, `label` (SUPPORTS, REFUTES, NEI), `evidences` with `evidence_id`, `useful` and `leaf`,
  `argument_structure` (the program text of Task 3) and `code_out` (of Task 4). **The names of the fields with the text of the claim
  and of a piece are not documented, and we have not seen the files**. `KEYS` lists our guesses. Another layout is an error that
  shows the fields of the row; then correct `KEYS`. `cause` and `effect` are filled if the file has them by these names.
- Evidence: one piece for each item of `evidences`, including distractors, in the file's order, untitled. A piece that the file
  numbers is Sentence1, Sentence2 …, as programs call it; its name is in `evidence_info`.
- Structure: `argument_structure`, parsed and never executed. It is an error if it can't be read, prints a wrong label, or uses
  pieces that are not marked as useful. `leaf` is read from it.
- NOT ENOUGH INFO rows have no structure. `useful` and `leaf` are the file's.
- Group: rows that share the claim or `checkwhy-id`; a claim has one row of each label. The group is named by the claim, so it is
  the same in all files. If rows share an id, all but the first have their label in their own: "7-REFUTES".
- Extra column: `code_out`, unchanged.

One row (made up): claim "Rain made the river rise.", evidence "Rain falls.", "A river rises when rain falls.", "Rome is old.",
label SUPPORTS. Its evidence_info is `[{"id": "Sentence1", "useful": true, "leaf": true}, …]`. Its structure is `[{"premises":
["Sentence1"], "conclusion": "Sentence2"}, {"premises": ["Sentence2"], "conclusion": "claim"}]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from hfcf.core.schema import TEXT
from hfcf.corpora.base import (
    BadRow,
    Corpus,
    CorpusError,
    CorpusInfo,
    Fields,
    Files,
    as_text,
    json_list,
    split_files,
)
from hfcf.corpora.base.values import text_group
from hfcf.corpora.formats.read import Record
from hfcf.tasks.structures.model import CLAIM, Structure, StructureError
from hfcf.tasks.structures.program import parse_program
from hfcf.tasks.verification import NOT_ENOUGH_INFO, REFUTES, SUPPORTS
from hfcf.text.check import kind
from hfcf.text.normalise import normalise

KEYS: dict[str, tuple[str, ...]] = {
    "claim": ("claim", "claim_text", "statement"),
    "evidence": ("evidence", "evidence_text", "text", "sentence", "content", "fact"),
}
"""Names that the field with the claim's text, and with a piece's text, may have. Guesses: add the right one here."""
CLASSES = ("2", "3")
_FLAGS = {"true": True, "1": True, "false": False, "0": False}
_RECORD = Fields(label=str, evidences=[{"evidence_id": Any, "useful": Any, "leaf": Any}], **{"checkwhy-id": Any})
_PROGRAM = Fields(argument_structure=str)
_TEXTS = {name: Fields(**{name: str}) for names in KEYS.values() for name in names}


class CheckWhy(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="checkwhy",
        title="CheckWhy: causal fact verification via argument structure",
        paper="Si et al. (ACL 2024), CheckWhy: Causal Fact Verification via Argument Structure",
        citation="""@inproceedings{si-etal-2024-checkwhy,
  title = {{CHECKWHY}: Causal Fact Verification via Argument Structure},
  author = {Si, Jiasheng and Zhao, Yibo and Zhu, Yingjie and Zhu, Haiyang and Lu, Wenpeng and Zhou, Deyu},
  booktitle = {Proceedings of ACL},
  year = {2024}
}""",
        licence="unknown",  # not stated
        request="CheckWhy is made from WikiWhy, whose authors ask to keep it out of pre-training corpora",
        splits={"train": 9_864, "validation": 1_600, "test": 1_600},  # of two classes; of three 14,796, 2,400 and 2,400
        labels={SUPPORTS: SUPPORTS, REFUTES: REFUTES, "NEI": NOT_ENOUGH_INFO},
        task="structures",
        release="github.com/jasenchn/checkwhy; the test files on request",
        layout="`{train,dev,test}.json` (two classes), `{train,dev,test}_nei.json` (three)",
        notes='`classes="2"` or `"3"`; not checked against the real files',
    )
    FILES = split_files("{}.json", "{}_nei.json")
    GROUPS_BY_KEYS = True
    OPTIONS: ClassVar = {"classes": "2 (the default): SUPPORTS and REFUTES; 3: also NOT ENOUGH INFO"}
    WAYS: ClassVar = {2: {"classes": "2"}, 3: {"classes": "3"}}
    EXTRA: ClassVar = {"code_out": TEXT}

    @classmethod
    def locate(cls, name: str, *, data_dir: Any, data_files: Any, options: dict[str, Any]) -> tuple[Files, dict[str, Path]]:
        """Return the files of each split, with two classes or with three."""
        classes = str(options.get("classes", CLASSES[0]))
        if classes not in CLASSES:
            raise ValueError(f"classes must be {' or '.join(map(repr, CLASSES))}, got {classes!r}")
        if "classes" in options and data_files is not None:
            raise ValueError(f"classes={classes!r} chooses files in data_dir; data_files already names the files")
        files, resources = super().locate(name, data_dir=data_dir, data_files=data_files, options=options)
        if data_dir is not None:
            present = {path.name for paths in files.values() for path in paths}
            three = {file for file in present if file.endswith("_nei.json")}
            fitting = three if classes == "3" else present - three
            if not fitting:
                raise CorpusError(f"{name}: no file has {classes} classes; {', '.join(sorted(present))} has the other number")
            files = {split: kept for split, paths in files.items() if (kept := [path for path in paths if path.name in fitting])}
        return files, resources

    def records(self, path: Path) -> Iterator[Record]:
        return json_list(path)

    def start(self, files: Sequence[Path]) -> None:
        self._labels: dict[str, set[str]] = {}  # of the rows of each id

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        row["id"] = record.get("checkwhy-id")
        _RECORD.check(record)
        row |= {"claim": _text(record, "claim"), "code_out": as_text(record.get("code_out")), "label": record["label"]}
        row |= {name: record.get(name) for name in ("cause", "effect")}
        claim = normalise(row["claim"])
        row["group_id"] = text_group("claim", claim)
        row["keys"] = [("claim", claim), ("id", str(row["id"]))]
        pieces = _pieces(record["evidences"])
        row["evidence"] = [{"title": "", "text": piece["text"]} for piece in pieces]
        row["evidence_info"] = [{name: piece[name] for name in ("id", "useful", "leaf")} for piece in pieces]
        row["label"] = self.label(record["label"])
        labels = self._labels.setdefault(str(row["id"]), set())
        if labels and row["label"] not in labels:
            row["id"] = f"{row['id']}-{row['label']}"
        labels.add(row["label"])
        if row["label"] == NOT_ENOUGH_INFO:
            if record.get("argument_structure"):
                self.note(f"{NOT_ENOUGH_INFO} rows had an argument structure, which was not read")
            return
        _PROGRAM.check(record)
        structure = _structure(record["argument_structure"], row)
        row["structure"] = structure.to_columns()
        leaves = set(structure.leaves())
        if any(info["leaf"] != (info["id"] in leaves) for info in row["evidence_info"]):
            self.note("rows marked leaves that differ from the leaves of their structure, which were taken")
        row["evidence_info"] = [{**info, "leaf": info["id"] in leaves} for info in row["evidence_info"]]


def _structure(text: str, row: Mapping[str, Any]) -> Structure:
    """Read a row's argument structure, and compare it with the row's other fields."""
    names = {info["id"]: info["useful"] for info in row["evidence_info"]}
    try:
        structure = parse_program(text, {name: piece["text"] for name, piece in zip(names, row["evidence"], strict=True)})
    except StructureError as error:
        raise BadRow(f"its argument structure can't be read, with evidence named {', '.join(names)}: {error}") from None
    if structure.label not in (None, row["label"]):
        raise BadRow(f"its argument structure prints {structure.label}, and its label is {row['label']}")
    used = set(structure.nodes()) - {CLAIM}
    if differing := [name for name in names if (name in used) != names[name]]:
        how = "uses" if differing[0] in used else "does not use"
        raise BadRow(f"its argument structure {how} {differing[0]}, which the file marks with useful={names[differing[0]]}")
    return structure


def _pieces(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return id, text, useful and leaf of each piece; a piece is a leaf only if it is useful."""
    pieces = []
    for item in items:
        useful, leaf = (_flag(item, name) for name in ("useful", "leaf"))
        pieces.append({"id": _name(item), "text": _text(item, "evidence"), "useful": useful, "leaf": useful and leaf})
    ids = [piece["id"] for piece in pieces]
    if repeated := next((name for i, name in enumerate(ids) if name in ids[:i]), None):
        raise BadRow(f"two pieces of evidence are named {repeated}")
    return pieces


def _name(item: Mapping[str, Any]) -> str:
    """Return the name by which programs call a piece."""
    name = item["evidence_id"]
    if isinstance(name, bool) or not isinstance(name, int | str) or not str(name).strip():
        raise BadRow(f"'evidence_id' is {kind(name)} ({as_text(name)}), neither a number nor a name")
    return f"Sentence{name}" if str(name).isdecimal() else str(name)


def _flag(item: Mapping[str, Any], name: str) -> bool:
    if (value := str(item[name]).lower()) not in _FLAGS:
        raise BadRow(f"{name!r} is {kind(item[name])} ({as_text(item[name])}), neither true nor false")
    return _FLAGS[value]


def _text(record: Mapping[str, Any], part: str) -> str:
    """Return the text of a claim or a piece, from the one field that is named as `KEYS` has it."""
    if len(names := [name for name in KEYS[part] if name in record]) != 1:
        fields = f"both {' and '.join(map(repr, names))}" if names else f"none of {', '.join(map(repr, KEYS[part]))}"
        raise BadRow(
            f"the field with the text of the {part} is not clear: there is {fields}, among {', '.join(map(repr, record))}; leave "
            f"the right name, alone, in KEYS[{part!r}] in {__file__}"
        )
    return str(_TEXTS[names[0]].check(record)[names[0]])


BUILDER = CheckWhy
