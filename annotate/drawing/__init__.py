"""Draw units, assign them to annotators, and select the units that determine the verdicts."""
