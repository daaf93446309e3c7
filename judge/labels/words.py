"""The words that select a reference in every command.

This module has no heavy imports, because `--help` loads it.
"""

MAJORITY = "majority"
DECIDED = "decided"
# A lead's decisions alone are the hardest units, so `adjudicated` includes the labels on which people agree.
ALIASES = {"adjudicated": DECIDED}
HELP = (
    "gold, decided (the lead's decision or, without one, the label on which people agree), majority (of the human "
    "labels), or an annotator's name"
)
