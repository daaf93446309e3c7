"""annotate: validate a judge's labels with human annotators. It uses the same study files as `judge`."""
