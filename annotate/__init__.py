"""annotate: people validate what the judge did. Reads the same study as `judge`."""
