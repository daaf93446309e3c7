"""judge: label passages and score answers in bulk with an LLM. People label with the program `annotate`."""
