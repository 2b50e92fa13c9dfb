"""Language models that are asked by prompts: behind an OpenAI-compatible endpoint (`llm:NAME`) or in this process (`chat:NAME`)."""
