"""Wrong values in place of what the evidence has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from datasets import Dataset
from offline_models import installed

import hfcf
from hfcf.core import offline
from hfcf.core.artifacts import save_artifact
from hfcf.core.model import Model
from hfcf.core.stage import StageError
from hfcf.engines.continuation import Continuation
from hfcf.engines.entity_types import place_kind
from hfcf.engines.ner import Ner
from hfcf.systems.crossaug import CrossAug
from hfcf.systems.crossaug.fill_spans import FillSpans, fillable, filling_shape
from hfcf.tasks.verification import REFUTES, SUPPORTS

pytestmark = pytest.mark.skipif(not installed("wordnet"), reason=f"WordNet is not installed: {offline.INSTALL}")

TABLE = {
    "GPE": {"city": ["Oslo", "Rome"], "country": ["Chile", "United States"]},
    "PERSON": {"name": ["Ada Lovelace", "Tom Hardy"]},
    "ORG": {"school": ["Yale University"], "band": ["Foo Band"]},
    "DATE": {"Year": ["1650", "1960", "1990"], "Month": ["June", "May"]},
    "NUM": {"N": ["12", "5000"], "Word": ["eight", "seven"]},
}


def row(claim: str, evidence: str, label: str = SUPPORTS, **types: str) -> dict[str, Any]:
    """A row whose claim has these entities; an underscore in a name is a space."""
    entities = []
    for name, type_ in types.items():
        text = name.strip("_").replace("_", " ")
        start = claim.index(text)
        span = {"start": start, "end": start + len(text), "text": text, "type": type_}
        entities.append({"field": "claim", "piece": -1, **span})
    return {"id": "1", "claim": claim, "evidence": [{"title": "", "text": evidence}], "label": label, "entities": entities}


def fill(given: dict[str, Any], **settings: Any) -> list[str]:
    fitted = save_artifact({"fillings": TABLE, "tags": {}})
    return FillSpans(span_filling=True, **settings).with_fitted(fitted).row(given)["fillings"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (row("Ann was born in Paris.", "Ann (Paris).", Paris="GPE"), {"Ann was born in Oslo.", "Ann was born in Rome."}),
        (row("It was written by Bo Derek.", "By Bo Derek.", Bo_Derek="PERSON"),
         {"It was written by Ada Lovelace.", "It was written by Tom Hardy."}),
        (row("He taught at Harvard University.", "At Harvard University.", Harvard_University="ORG"),
         {"He taught at Yale University."}),
        (row("He was born in April of 1975.", "Born April 3, 1975.", April_of_1975="DATE"),
         {"He was born in April of 1960.", "He was born in April of 1990.", "He was born in May of 1975.",
          "He was born in June of 1975."}),
        (row("It has 10 rooms.", "10 rooms.", _10="NUM"), {"It has 12 rooms."}),
        (row("It has six rooms.", "All six rooms.", six="NUM"), {"It has seven rooms.", "It has eight rooms."}),
        (row("He was born in the 1970's.", "Born 7 May 1978, he saw 1991."),
         {"He was born in the 1950's."}),
        (row("It took over 10 days.", "It did."), {"It took under 10 days."}),
        (row("It is a big disk.", "It is."), {"It is a little disk.", "It is a small disk."}),
    ],
)  # fmt: skip
def test_a_value_gives_way_to_a_wrong_one(given: dict[str, Any], expected: set[str]) -> None:
    found = fill(given)
    assert found
    assert set(found) <= expected


@pytest.mark.parametrize(
    "given",
    [
        row("Ann was born in Paris.", "Ann sings.", Paris="GPE"),  # not in the evidence
        row("Paris sings.", "Paris sings.", Paris="GPE"),  # the subject
        row("The song of Bo Derek won.", "Bo Derek.", Bo_Derek="PERSON"),
        row("It fell on Freeport, Ohio.", "Ohio it is.", Ohio="GPE"),  # part of a longer name
        row("He saw it in Paris Gardens.", "Paris.", Paris="GPE"),
        row("It was in the 1970's.", "In 1980.", _1970="DATE"),
        row("Hush (1975 film) was made.", "Hush, 1975.", _1975="DATE"),
        row("It was an 11 foot wall.", "11 foot.", _11="NUM"),  # "an 12"
        row("He lives in Chad.", "Chad.", Chad="GPE", label=REFUTES),
        row("It is most popular.", "It is."),
    ],
)  # fmt: skip
def test_what_stays(given: dict[str, Any]) -> None:
    assert fill(given) == []


def test_a_common_value_stands_in_for_one_that_no_row_has() -> None:
    given = row("It was built in Texas.", "Texas has it.", Texas="GPE")
    (new,) = fill(given)
    assert place_kind(new.removeprefix("It was built in ").removesuffix(".")) == "state"
    assert fill(given) == [new]


def test_a_country_with_an_article_is_no_substitute_for_one_without() -> None:
    found = fill(row("He lives in Peru.", "Peru.", Peru="GPE"))
    assert found == ["He lives in Chile."]


def test_without_the_setting_nothing_is_filled_and_nothing_is_fitted() -> None:
    given = row("Ann was born in Paris.", "Ann (Paris).", Paris="GPE")
    assert FillSpans().row(given) == {"fillings": None}
    assert FillSpans().fit_inputs == ()
    with pytest.raises(StageError, match="not fitted"):
        FillSpans(span_filling=True)({**given, "fillings": None, "status": None})
    with pytest.raises(ValueError, match="span_filling=True needs a tagger"):
        CrossAug(span_filling=True)


def test_forms() -> None:
    assert filling_shape("Bo Derek", "PERSON") == "name"
    assert filling_shape("Bermuda Triangle", "PERSON") is None
    assert (filling_shape("Rome", "GPE"), filling_shape("Foobury", "GPE")) == ("city", None)
    assert (filling_shape("a year", "DATE"), filling_shape("1975", "DATE")) == (None, "Year")


def test_the_table_comes_from_all_rows() -> None:
    spans = [row("Ann was born in Paris.", "Ann (Paris).", Paris="GPE"), row("Bo saw May 1975.", "So.", May_1975="DATE")]
    stage = FillSpans(span_filling=True)
    assert stage.learn(Dataset.from_list(spans)) == stage.learn(Dataset.from_list(spans[::-1]))
    assert [span.type for span in fillable(spans[0])] == ["GPE"]


@pytest.mark.skipif(not installed("spacy"), reason=f"spaCy's model is not installed: {offline.INSTALL}")
def test_the_chain_with_a_tagger(monkeypatch: pytest.MonkeyPatch, tiny_model: Callable[[str], str]) -> None:
    monkeypatch.setattr(Continuation, "run", lambda self, texts: [[] for _ in texts])
    texts = [("Ann was born in Paris.", "Ann ( born in Paris ) sings."), ("Bob died in Berlin.", "He died in Berlin.")] * 3
    made = [
        {"id": str(i), "claim": claim, "evidence": [{"title": "", "text": text}], "label": SUPPORTS, "group_id": str(i),
         "corpus": "made", "split": "train"}
        for i, (claim, text) in enumerate(texts)
    ]  # fmt: skip
    ner = Ner(backend="spacy", model=Model("offline:spacy"))
    ds = hfcf.expand(CrossAug(generator=Model(tiny_model("t5")), span_filling=True, ner=ner)(Dataset.from_list(made)))
    first = [row for row in ds if row["source_id"] == "0"]
    assert [row["claim"] for row in first] == ["Ann was born in Berlin.", "Ann was born in Paris.", "Ann was born in Berlin."]
    assert first[2]["evidence"][0]["text"] == "Ann ( born in Berlin ) sings."
    assert all(row["scores"] == [{"name": "writer: span filling", "value": 1.0}] for row in ds)
