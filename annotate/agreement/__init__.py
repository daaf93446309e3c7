"""How far people and judges agree on a field, as data."""
