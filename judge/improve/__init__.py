"""Improve a judge, with proof on questions that no choice was based on.

`climb` has the steps, cheapest first, and `ladder` the candidates for each step. `bench` runs candidates on the tune
questions within cost limits. `improve` is the whole search: it compares the best candidate with the current task on
the sealed test, once. `page` shows the `outcome`; its `recipe` is a file from which `judge run --recipe` creates a
judge. `panel` is a recipe for several judges.
"""
