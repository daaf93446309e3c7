"""Units in, judgements in the study: asking, retrying, parsing, and committing before counting."""

from judge.runner.opening import open_patiently
from judge.runner.plan import Live, Plan, RunReport
from judge.runner.run import run_task
