"""The inputs that a task may use, for each kind of unit."""

ITEM_INPUTS = ("question", "question_date", "claim", "reference_answers", "options")
PASSAGE_INPUTS = ("passage", "passage_title", "passage_date", "passage_source")
ANSWER_INPUTS = ("answer", "baseline_answer", "passages", "context", "cited_passages", "relevant_passages")

INPUTS = {
    "passage": (*ITEM_INPUTS, *PASSAGE_INPUTS),
    "item": (*ITEM_INPUTS, "passages", "context", "relevant_passages", "option_probabilities"),
    "answer": (*ITEM_INPUTS, *ANSWER_INPUTS),
    "sentence": (*ITEM_INPUTS, *ANSWER_INPUTS, "sentence"),
    "citation": (*ITEM_INPUTS, *PASSAGE_INPUTS, *ANSWER_INPUTS, "sentence", "other_cited_passages"),
    "claim": (*ITEM_INPUTS, *ANSWER_INPUTS, "answer_claim"),
    "nugget": (*ITEM_INPUTS, *ANSWER_INPUTS, "nugget"),
    "pair": (*ITEM_INPUTS, "counter_claim"),
}
"""Maps each kind of unit to its inputs. A citation is a sentence with one passage that it cites. A pair is an
original claim (`claim`) with its counterclaim.
"""

LIST_INPUTS = ("passages", "context", "cited_passages", "other_cited_passages", "relevant_passages")
"""Inputs that consist of several passages. Each passage has its own fence: `[[name:marker code]]`."""

SOURCES = ("passage", *LIST_INPUTS)
"""Inputs that may be quoted as evidence. The claim is not one of them, because it cannot be evidence for
itself.
"""

NEVER_INPUTS = ("correct", "gold", "meta", "votes", "polarity", "pair_id", "labels")


def gold_input(field: str) -> str:
    """Return the name of a gold field in templates: `raguard_role` for `raguard.role`."""
    return field.replace(".", "_")
