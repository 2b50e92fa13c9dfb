"""TriviaQA, unfiltered: trivia questions without passages, for open-domain question answering.

- Files: `unfiltered-web-{train,dev}.json` and `unfiltered-web-test-without-answers.json`, in `data_dir` or its
  `triviaqa-unfiltered/`. Each is one JSON object, which is read whole: the train file takes a few gigabytes of memory. The form
  for reading comprehension, with TriviaQA's passages, is that of `mrqa`.
- A row has no context, and its answers have no positions. The texts are alternatives: `Value` first, then `Aliases`, then
  `HumanAnswers`, each once.
- The test split has no answers, so it is loaded only by name.
- Group: the question (`QuestionId`).
- Extra column: `normalized_aliases`, with which the release's own metric compares, after its own normalisation.

One row (made up): question "Which lake has an island with a church?", answers {"text": ["Lake Bled", "Blejsko jezero"],
"answer_start": []}, normalized_aliases ["lake bled", "blejsko jezero"].
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, NotRequired

from datasets import List

from hfcf.core.schema import TEXT
from hfcf.corpora.base import Corpus, CorpusInfo, Fields, Record, json_list, split_files
from hfcf.corpora.formats.answers import open_answers

_NAMES = (("train", "train"), ("validation", "dev"), ("test", "test-without-answers"))
_QUESTION = Fields(QuestionId=Any, Question=str)
_OTHERS = NotRequired[list[str] | None]
_ANSWERED = Fields(Answer={"Value": str, "Aliases": [str], "HumanAnswers": _OTHERS, "NormalizedAliases": _OTHERS})


class TriviaQA(Corpus):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="triviaqa",
        title="TriviaQA, the unfiltered questions",
        paper="Joshi et al. (ACL 2017), TriviaQA: A Large Scale Distantly Supervised Challenge Dataset for Reading Comprehension",
        citation="""@inproceedings{joshi-etal-2017-triviaqa,
  title = {{T}rivia{QA}: A Large Scale Distantly Supervised Challenge Dataset for Reading Comprehension},
  author = {Joshi, Mandar and Choi, Eunsol and Weld, Daniel and Zettlemoyer, Luke},
  booktitle = {Proceedings of ACL},
  year = {2017}
}""",
        licence="unknown",
        hub_id="mandarjoshi/trivia_qa",
        splits={"train": 87_622, "validation": 11_313, "test": 10_832},
        task="qa",
        release="nlp.cs.washington.edu/triviaqa",
        layout="`unfiltered-web-{train,dev}.json`, or `triviaqa-unfiltered/` with them",
        notes="no passages; the test split has no answers; not checked against the real files",
    )
    FILES = split_files("unfiltered-web-{}.json", "triviaqa-unfiltered/unfiltered-web-{}.json", names=_NAMES)
    ONE_FORM = True
    BLIND = ("test",)
    EXTRA: ClassVar = {"normalized_aliases": List(TEXT)}

    def records(self, path: Path) -> Iterator[Record]:
        return json_list(path, key="Data")

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        row |= {"id": record.get("QuestionId"), "question": _QUESTION.check(record)["Question"]}
        if "Answer" not in record and "SearchResults" in record:  # the blind test split
            return
        answer = _ANSWERED.check(record)["Answer"]
        row["answers"] = open_answers([answer["Value"], *answer["Aliases"], *(answer.get("HumanAnswers") or ())], "Answer")
        row["normalized_aliases"] = list(dict.fromkeys(answer.get("NormalizedAliases") or ()))


BUILDER = TriviaQA
