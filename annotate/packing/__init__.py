"""Pack a batch for another machine, and merge the labels that come back."""
