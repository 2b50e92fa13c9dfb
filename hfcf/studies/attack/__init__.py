"""Adversarial test sets for relation classifiers, made as CCG's paper made RE-Attack."""
