"""The agreement between people and judges on a field, as data."""
