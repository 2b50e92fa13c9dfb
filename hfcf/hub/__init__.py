"""Dataset repositories and their cards."""
