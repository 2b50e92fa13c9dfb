"""RACE (Zhu et al. 2023, "EXPLAIN, EDIT, GENERATE", EMNLP): counterfactuals for multi-hop fact verification."""
