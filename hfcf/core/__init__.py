"""What every system stands on: the stage contract, schema, edits, models, recipes, verdicts, splits."""
