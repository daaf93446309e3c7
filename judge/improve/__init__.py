"""From today's judge to a better one, with proof on questions that nothing was chosen on.

`climb` has the steps, cheapest first, and `ladder` what they try; `bench` asks it about the tune questions within `limits`,
by successive halving (`search`); `proof` puts the winner beside today's task on the sealed test, once. `improve` is the whole
way. `recipe` is what comes out, a file that `judge run --recipe` makes a judge of; `panel` one of several judges.
"""
