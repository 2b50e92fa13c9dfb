"""Intrinsic metrics of counterfactuals."""
