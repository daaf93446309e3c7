"""Pack a batch for another machine, and merge the returned labels."""
