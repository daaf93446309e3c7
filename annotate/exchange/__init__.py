"""Export batches to other tools and import their labels.

A new format is one file in `formats`; see `base`.
"""
