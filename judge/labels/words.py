"""The words that every command has for what judges are held against. Nothing heavy is imported: `--help` reads this."""

MAJORITY = "majority"
DECIDED = "decided"
ALIASES = {"adjudicated": DECIDED}
"""Decisions of a lead alone are the hardest units: who asks for them gets what people agree on beside them."""
HELP = "gold, decided (a lead's decisions, and what people agree on elsewhere), majority (of the people), or a name"
