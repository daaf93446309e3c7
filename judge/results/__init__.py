"""One table of results: a row for each answer, passage, sentence or claim, with its texts, labels and scores."""

KINDS = ("answer", "item", "passage", "sentence", "citation", "claim", "nugget", "pair")
"""The kinds of rows. If a paper scores several, the first one is the default."""
