"""Foreign formats, one file each. A new one is a new file here; `annotate.exchange.base` says what is in it."""
