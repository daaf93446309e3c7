"""Compute measures from tables of labels. There is one file per paper or kind of measure.

Each measure has an interval, the number of units and the coverage.
"""
