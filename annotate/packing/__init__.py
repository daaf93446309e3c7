"""A batch for another machine, and its labels brought back."""
