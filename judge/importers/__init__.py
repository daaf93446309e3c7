"""Foreign formats in, items out. A new format is one new file here with NAME, HELP and `read`."""
