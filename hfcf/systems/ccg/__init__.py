"""CCG (Miao, Li and Qian 2023, "Generating Commonsense Counterfactuals for Stable Relation Extraction", EMNLP)."""
