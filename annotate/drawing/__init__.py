"""Draw the units that people label, assign them to annotators, and select the units on which verdicts rest."""
