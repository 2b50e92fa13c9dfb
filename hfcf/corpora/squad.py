"""SQuAD v1.1: questions that crowd workers wrote on paragraphs of Wikipedia, answered by a span of the paragraph.

- Files: `train-v1.1.json` and `dev-v1.1.json`. The official test split is not public.
- `data_files` may name the files of v2.0, too: a question that is impossible there is a row without an answer.
- Titles are the release's, with underscores ("Super_Bowl_50"). Group: the title; the official splits share none.
- Several answers are those of several annotators: each is right, and one that two gave stands there twice.

One row: question "Which NFL team represented the AFC at Super Bowl 50?", title "Super_Bowl_50", context "Super Bowl 50 was an
American football game …", answers {"text": ["Denver Broncos", "Denver Broncos", "Denver Broncos"], "answer_start": [177, 177,
177]}.
"""

from __future__ import annotations

from hfcf.corpora.base import CorpusInfo, split_files
from hfcf.corpora.formats.squad import SquadLayout


class Squad(SquadLayout):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="squad",
        title="SQuAD v1.1: the Stanford Question Answering Dataset",
        paper="Rajpurkar et al. (EMNLP 2016), SQuAD: 100,000+ Questions for Machine Comprehension of Text",
        citation="""@inproceedings{rajpurkar-etal-2016-squad,
  title = {{SQ}u{AD}: 100,000+ Questions for Machine Comprehension of Text},
  author = {Rajpurkar, Pranav and Zhang, Jian and Lopyrev, Konstantin and Liang, Percy},
  booktitle = {Proceedings of EMNLP},
  year = {2016}
}""",
        licence="cc-by-sa-4.0",
        hub_id="rajpurkar/squad",
        splits={"train": 87_599, "validation": 10_570},
        labels={},
        task="qa",
        release="rajpurkar.github.io/SQuAD-explorer",
        layout="`train-v1.1.json`, `dev-v1.1.json`",
        notes="the group is the article; `data_files` may be those of v2.0; not checked against the real files",
    )
    FILES = split_files("{}-v1.1.json", names=(("train", "train"), ("validation", "dev")))


BUILDER = Squad
