"""Compute measures from tables of labels, with n, coverage and interval. There is one file per paper or kind of measure."""
