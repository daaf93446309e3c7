"""Units in, judgements in the study: asking, retrying, parsing, and committing before counting."""

from judge.runner.run import Plan, Report, run_task

__all__ = ["Plan", "Report", "run_task"]
