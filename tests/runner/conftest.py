"""The study that most tests of runs begin with."""

from tests.runner.helpers import db

__all__ = ["db"]
