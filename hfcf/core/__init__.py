"""The base of every system: the stage contract, schema, edits, models, recipes, verdicts, splits."""
