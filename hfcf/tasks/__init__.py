"""The tasks of this library, one module each with its `TASK`; other packages add theirs as entry points `hfcf.tasks`."""

DEFAULT = "verification"
"""The task of a stage for which no task is given."""
