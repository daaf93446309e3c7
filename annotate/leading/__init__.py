"""Functions for the lead of a batch: annotators, progress, reading pace, and the units on which people disagree."""
