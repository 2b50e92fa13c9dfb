"""Argument structures (CheckWhy, section 2.2): the model, its three notations, the legality check, repair and the drawing."""
