"""Define corpora: their front matter (`CorpusInfo`), their builder (`Corpus`), types of a record's `Fields`, readers of files."""

from hfcf.corpora.base.builder import Corpus, Files
from hfcf.corpora.base.info import CorpusConfig, CorpusInfo, choice, split_files
from hfcf.corpora.base.values import Fields, as_text
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
    "BadRow", "Corpus", "CorpusConfig", "CorpusError", "CorpusInfo", "Fields", "Files", "Record", "as_text", "choice", "csv_rows",
    "json_lines", "json_list", "split_files", "split_records", "text_lines",
]  # fmt: skip
