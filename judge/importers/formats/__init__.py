"""Foreign formats in: one file each, with NAME, HELP and `read`."""
