"""Draw the units that people label, assign these units to annotators, and select the units on which verdicts rest."""
