"""Whole studies, simulated: seeded steps through the real commands, and after each what every person meant must be there.

`python -m tests.simulation` runs for as long as one likes; `test_simulation.py` runs fixed seeds.
"""
