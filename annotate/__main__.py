"""`python -m annotate`."""

from annotate.cli import main

main(prog_name="annotate")
