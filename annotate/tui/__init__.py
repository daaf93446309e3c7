"""The terminal screens; the only rooms that know Textual."""
