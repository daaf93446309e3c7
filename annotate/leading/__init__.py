"""The lead's work: people, progress, pace, and the units on which people disagree."""
