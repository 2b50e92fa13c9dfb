"""What a corpus is made of: its front matter (`CorpusInfo`), its builder (`Corpus`), and helpers that read a record's values."""

from hfcf.corpora.base.builder import Corpus, Files
from hfcf.corpora.base.info import CorpusConfig, CorpusInfo, choice
from hfcf.corpora.base.splits import split_files
from hfcf.corpora.base.values import as_text, need, text_of
from hfcf.corpora.formats.read import BadRow, CorpusError

__all__ = [
    "BadRow", "Corpus", "CorpusConfig", "CorpusError", "CorpusInfo", "Files", "as_text", "choice", "need", "split_files", "text_of",
]  # fmt: skip
