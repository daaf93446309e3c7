"""annotate: people validate the judge's labels. It reads the same study as `judge`."""
