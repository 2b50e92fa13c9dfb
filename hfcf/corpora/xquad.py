"""XQuAD in English: the questions of SQuAD v1.1's dev split that were chosen for translation.

- File: `xquad.en.json`, in SQuAD's layout. The other languages are not read.
- One answer a question. Group: the article's title. The rows are rows of SQuAD's validation split, under the same ids.

One row: question "How many points did the Panthers defense surrender?", title "Super_Bowl_50", context "The Panthers defense gave
up just 308 points, …", answers {"text": ["308"], "answer_start": [34]}.
"""

from __future__ import annotations

from hfcf.corpora.base import CorpusInfo
from hfcf.corpora.squad import SquadLayout


class XQuad(SquadLayout):
    """Release files → rows."""

    INFO = CorpusInfo(
        name="xquad",
        title="XQuAD: the Cross-lingual Question Answering Dataset, its English part",
        paper="Artetxe, Ruder and Yogatama (ACL 2020), On the Cross-lingual Transferability of Monolingual Representations",
        citation="""@inproceedings{artetxe-etal-2020-cross,
  title = {On the Cross-lingual Transferability of Monolingual Representations},
  author = {Artetxe, Mikel and Ruder, Sebastian and Yogatama, Dani},
  booktitle = {Proceedings of ACL},
  year = {2020}
}""",
        licence="cc-by-sa-4.0",
        hub_id="google/xquad",
        splits={"validation": 1_190},
        task="qa",
        release="github.com/google-deepmind/xquad",
        layout="`xquad.en.json`",
        notes="a part of SQuAD's validation split; English only",
    )
    FILES = (("validation", "xquad.en.json"),)


BUILDER = XQuad
