"""Export batches to other tools and import their labels.

To add a format, add a module to `formats`, as described in `base`.
"""
