"""A user's own claims as CSV files; `hfcf.corpora.formats.records` says which fields and forms are read."""

from hfcf.corpora.formats.records import Records as BUILDER

__all__ = ["BUILDER"]
