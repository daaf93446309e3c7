"""Functions for the lead of a batch. They manage annotators, report progress and reading pace, and decide units
on which people disagree.
"""
