"""Foreign formats in, items out. A new format is one new file in `formats` with NAME, HELP and `read`."""
