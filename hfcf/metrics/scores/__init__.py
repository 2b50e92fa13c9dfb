"""Scores of models against gold answers: relations, translations, rationales."""
