"""Importers for the file formats of other tools. Each module defines NAME, HELP and `read_rows`."""
