"""judge: an LLM labels passages and scores answers in bulk. The other half is `annotate`."""
