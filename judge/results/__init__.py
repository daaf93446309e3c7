"""One table of results: a row for each answer, passage, sentence or claim, with its texts, labels and scores."""
