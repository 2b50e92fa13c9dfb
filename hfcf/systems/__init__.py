"""The published systems and the baselines they are compared with."""
