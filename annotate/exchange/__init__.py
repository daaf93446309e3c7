"""Batches out to other tools and their labels back. A new format is one file in `formats`; see `base`."""
