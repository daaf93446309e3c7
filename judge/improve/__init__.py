"""Improve a judge, and prove the improvement on questions that were not used in the search.

`improve` performs the whole search, which ends with a single comparison of the best candidate and the current
task on the sealed test.

- `climb` takes the steps of the search, cheapest first.
- `ladder` lists the candidates to try in each step.
- `bench` runs candidates on the tuning questions within cost limits.
- `outcome` holds the result, and `page` presents it.
- `contest` compares all runs of a task with a reference (`judge compare`), and `route` sends units to a second judge.
- `recipe` is the file from which `judge run --recipe` creates a judge. `panel` is a recipe for several
  judges.
"""
