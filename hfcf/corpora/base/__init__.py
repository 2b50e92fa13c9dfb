"""Define corpora: their front matter (`CorpusInfo`), their builder (`Corpus`), readers of files and of a record's values."""

from hfcf.corpora.base.builder import Corpus, Files
from hfcf.corpora.base.info import CorpusConfig, CorpusInfo, choice, split_files
from hfcf.corpora.base.values import as_text, is_list_of, need, text_of
from hfcf.corpora.formats.read import (
    BadRow,
    CorpusError,
    Record,
    csv_rows,
    json_lines,
    json_list,
    split_records,
    text_lines,
)

__all__ = [
    "BadRow", "Corpus", "CorpusConfig", "CorpusError", "CorpusInfo", "Files", "Record", "as_text", "choice", "csv_rows",
    "is_list_of", "json_lines", "json_list", "need", "split_files", "split_records", "text_lines", "text_of",
]  # fmt: skip
