"""The names that corpora and classifiers give to the three labels of fact verification.

Only names with one meaning everywhere are listed. "not_entailment" and "NOT_SUPPORTED", for example, are left out: with two classes
they mean everything but SUPPORTS, with three something else. Such names need a mapping from the user.
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
    """Return SUPPORTS, REFUTES or NOT ENOUGH INFO for a name of one of them, None for any other name."""
    return _LABELS.get(normalise(name))


_SETS = (
    {SUPPORTS: "supports", REFUTES: "refutes", NOT_ENOUGH_INFO: "not enough info"},
    {SUPPORTS: "supported", REFUTES: "refuted", NOT_ENOUGH_INFO: "not enough info"},
    {SUPPORTS: "entailment", REFUTES: "contradiction", NOT_ENOUGH_INFO: "neutral"},
    {SUPPORTS: "true", REFUTES: "false"},
)
"""Names that corpora use together."""


def name_beside(name: str, label: str) -> str | None:
    """Return the name of a label in the set of names that a known name belongs to, in its case; None if the set is not known."""
    for names in _SETS:
        if name.casefold() in names.values() and label in names and label_of(name) != NOT_ENOUGH_INFO:
            other = names[label]
            return other.upper() if name.isupper() else other.capitalize() if name[0].isupper() else other
    return None
