"""The names that corpora and classifiers give to the three labels of fact verification.

Only names with one meaning everywhere are listed. "not_entailment" and "NOT_SUPPORTED", for example, are left out. With two classes
they mean everything except SUPPORTS; with three classes they mean something else. Such names need a mapping from the user.
"""

from __future__ import annotations

from hfcf.text.normalise import normalise

SUPPORTS, REFUTES, NOT_ENOUGH_INFO = LABELS = ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO")
"""The three labels, in the order of every three-way verifier's outputs."""
_NAMES = {
    SUPPORTS: ("supports", "supported", "support", "entailment", "entails", "entailed", "entail", "true"),
    REFUTES: (
        "refutes", "refuted", "refute", "contradiction", "contradicts", "contradicted", "contradict", "contradictory", "false",
    ),
    NOT_ENOUGH_INFO: ("not enough info", "not enough information", "not enough evidence", "NEI", "neutral"),
}  # fmt: skip
_LABELS = {normalise(name): label for label, names in _NAMES.items() for name in names}


def label_of(name: str) -> str | None:
    """Return SUPPORTS, REFUTES or NOT ENOUGH INFO for a known name of the label; return None for any other name."""
    return _LABELS.get(normalise(name))


_SETS = (
    {SUPPORTS: "supports", REFUTES: "refutes", NOT_ENOUGH_INFO: "not enough info"},
    {SUPPORTS: "supported", REFUTES: "refuted", NOT_ENOUGH_INFO: "not enough info"},
    {SUPPORTS: "support", REFUTES: "refute", NOT_ENOUGH_INFO: "not enough info"},
    {SUPPORTS: "entails", REFUTES: "contradicts", NOT_ENOUGH_INFO: "neutral"},
    {SUPPORTS: "entailed", REFUTES: "contradicted", NOT_ENOUGH_INFO: "neutral"},
    {SUPPORTS: "entailment", REFUTES: "contradiction", NOT_ENOUGH_INFO: "neutral"},
    {SUPPORTS: "true", REFUTES: "false"},
)
"""Names that corpora use together."""


def name_beside(name: str, label: str) -> str | None:
    """Return a label's name in the set and in the case of a known name; None if the set is unknown."""
    for names in _SETS:
        if name.casefold() in names.values() and label in names and label_of(name) != NOT_ENOUGH_INFO:
            other = names[label]
            return other.upper() if name.isupper() else other.capitalize() if name[0].isupper() else other
    return None
