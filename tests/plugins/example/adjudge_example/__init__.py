"""One plugin of each kind for adjudge."""
