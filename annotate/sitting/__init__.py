"""One annotator's session: the units shown, the events stored, and the state of each unit."""
