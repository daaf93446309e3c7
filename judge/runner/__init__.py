"""Run a task: units in, judgements in the study, with retries, budgets and rate limits."""

from judge.runner.opening import open_patiently
from judge.runner.plan import Live, Plan, RunReport
from judge.runner.run import run_task
