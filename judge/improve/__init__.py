"""Improve a judge, with proof on questions that no choice was based on.

`climb` has the steps, cheapest first, and `ladder` the candidates of each. `bench` runs candidates on the tune
questions within limits of cost. `improve` is the whole search: it compares the best candidate with today's task on
the sealed test, once. The `outcome` is shown by `page`; its `recipe` is a file from which `judge run --recipe` makes a
judge. `panel` is a recipe of several judges.
"""
