"""Train the models that systems and comparisons need."""
