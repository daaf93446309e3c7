"""The Python API of adjudge. It contains the functions of the commands `judge` and `annotate`.

Both work on the same study files.

from adjudge import Study

with Study("study.db") as study:
    study.items(frame)                                  # a DataFrame, or rows as dictionaries
    study.run("stance", model="openai/gpt-5-mini")
    study.agreement(field="stance")                     # a DataFrame
    study.report(field="stance")                        # in a notebook: the verdict and its drawings
"""

from adjudge.outcome import Outcome
from adjudge.report import Report
from adjudge.study import Study
from judge.errors import AdjudgeError

__all__ = ["AdjudgeError", "Outcome", "Report", "Study"]
