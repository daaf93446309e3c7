"""annotate: have people validate a judge's labels. It uses the same study files as `judge`."""
