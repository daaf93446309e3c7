"""Run a task: call a model for each unit and store its judgements, with retries, budgets and rate limits."""

from judge.runner.opening import open_patiently
from judge.runner.plan import Live, Plan, RunReport
from judge.runner.run import run_task
