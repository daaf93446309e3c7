"""Importers for foreign formats. Each module defines NAME, HELP and `read_rows`."""
