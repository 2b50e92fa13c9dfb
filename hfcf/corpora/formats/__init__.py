"""Readers of file formats that several corpora share."""
