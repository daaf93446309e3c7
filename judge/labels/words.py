"""The words for references that every command accepts.

Without heavy imports, because `--help` loads this module.
"""

MAJORITY = "majority"
DECIDED = "decided"
ALIASES = {"adjudicated": DECIDED}
"""A lead's decisions alone are the hardest units, so `adjudicated` includes the labels on which people agree."""
HELP = "gold, decided (a lead's decisions, and what people agree on elsewhere), majority (of the people), or a name"
