"""Agreement of people and judges on a field, as data."""
