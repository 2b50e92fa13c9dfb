"""Language models behind an OpenAI-compatible endpoint."""
