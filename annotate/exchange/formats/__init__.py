"""The exchange formats, one file each. A new format is a new file here; `annotate.exchange.base` describes
its contents.
"""
