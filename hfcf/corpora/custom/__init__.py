"""A user's own rows in a user's own columns: into the library's rows (`from_dataset`) and back (`to_dataset`)."""

OWN = {
    "jsonl": "verification", "csv": "verification", "parquet": "verification", "relations": "relation", "questions": "qa",
    "texts": "classification", "structures": "structures",
}  # fmt: skip
"""The corpora that read a user's files, and the task of their rows; the first three also say the format of a file."""
