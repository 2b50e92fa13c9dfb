"""Studies of finished sets: comparisons, human evaluation, adversarial sets."""
