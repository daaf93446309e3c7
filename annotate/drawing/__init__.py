"""Which units people get: drawn once, seeded, extended, and who sits where."""
