"""Improve a judge, and prove the improvement on questions that were not used in the search.

`climb` contains the steps of the search, cheapest first, and `ladder` contains the candidates of each step. `bench` runs
candidates on the tuning questions within cost limits. `improve` is the whole search, which ends with a single comparison of
the best candidate and the current task on the sealed test. `outcome` is the result, and `page` presents it. `recipe` is the
file from which `judge run --recipe` creates a judge, and `panel` is a recipe for several judges.
"""
