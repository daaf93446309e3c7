"""Import items from files that other tools have written.

To add a format, add a module to `formats` that defines NAME, HELP and `read_rows`.
"""
