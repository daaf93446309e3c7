"""One person at work: what is shown, what is kept, and how a unit stands."""
