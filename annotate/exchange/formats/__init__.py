"""The exchange formats, one module each. To add a format, add a module to this folder;
`annotate.exchange.base` describes its contents.
"""
