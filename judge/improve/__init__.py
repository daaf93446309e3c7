"""From today's judge to a better one, with proof on questions that nothing was chosen on.

`ladder` says what is tried, cheapest first; `search` tries it on the tune questions by successive halving; `improve`
puts the winner beside today's task on the sealed test, once; `recipe` is what comes out, a file that `judge run --recipe`
makes a judge of.
"""
