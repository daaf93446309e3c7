"""Read files in foreign formats as items. A new format is one new file in `formats` with NAME, HELP and
`read_rows`.
"""
