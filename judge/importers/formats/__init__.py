"""Foreign formats: one file each, with NAME, HELP and `read_rows`."""
