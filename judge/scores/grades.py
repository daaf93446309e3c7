"""Convert relevance labels to grades, the numbers in qrels."""

from collections.abc import Mapping

from judge.errors import UsageError
from judge.prompts.load import Task

WORDS: Mapping[str, Mapping[str, int]] = {
    "relevant": {"relevant": 1, "not_relevant": 0},
    "support": {"supported": 1, "not_supported": 0},
}
"""The grade of each label, for fields whose labels are words."""


def grades_of(task: Task, field: str | None = None, given: Mapping[str, str] | None = None) -> dict[str, int]:
    """Return the grade of each label of the task's `field`. Without `field`, the first field with grades is
    used (see `find_graded_field`).

    `given` maps labels that are neither numbers nor known words to grades. Raises UsageError if a label has no
    grade, or if `given` contains a label that the field does not have.
    """
    field = field or find_graded_field(task, given)
    if field not in task.fields:
        raise UsageError(f"{task.name} has no field '{field}'; available: {', '.join(task.fields)}")
    domain = task.domain(field)
    if strange := [label for label in given or {} if label not in domain]:
        raise UsageError(f"'{strange[0]}' is not a label of '{field}'; available: {', '.join(domain)}")
    grades = {}
    for label in domain:
        grade = (given or {}).get(label, str(WORDS.get(field, {}).get(label, label)))
        # qrels hold whole numbers, negative ones included.
        if not grade.removeprefix("-").isdecimal():
            raise UsageError(f"label '{label}' of '{field}' has no grade: set it with --grade {label}=N")
        grades[label] = int(grade)
    return grades


def find_graded_field(task: Task, given: Mapping[str, str] | None = None) -> str:
    """Return the first field (possibly a derived one) whose labels are whole numbers or known words. Raises UsageError if there
    is none."""
    if given:
        fit = [f for f in task.fields if set(given) <= set(task.domain(f))]
    else:
        fit = [
            f for f in task.fields if f in WORDS or ((d := task.domain(f)) and all(v.isdecimal() for v in d))
        ]
    if not fit:
        raise UsageError(
            f"no field of {task.name} has grades ({', '.join(task.fields)}): choose one with --field, and set its grades "
            "with --grade LABEL=N"
        )
    return fit[0]
