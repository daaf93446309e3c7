"""The terminal screens; the only package that imports Textual."""
