"""Method × seed × corpus: what training on counterfactuals does to a verifier, in tables and a figure."""
