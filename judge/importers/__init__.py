"""Import items from files in foreign formats.

To add a format, add a module to `formats` that defines NAME, HELP and `read_rows`.
"""
