"""Texts: mentions of names, entities and their substitutes, pieces of evidence as one text."""
