"""The words for references that every command accepts.

Without heavy imports, because `--help` loads this module.
"""

MAJORITY = "majority"
DECIDED = "decided"
# A lead's decisions alone are the hardest units, so `adjudicated` includes the labels on which people agree.
ALIASES = {"adjudicated": DECIDED}
HELP = "gold, decided (the lead's decisions, else labels on which people agree), majority (of the human labels), or a name"
