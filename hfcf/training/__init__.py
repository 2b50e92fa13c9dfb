"""Training what the systems need: verifiers and claim generators, with their cards."""
