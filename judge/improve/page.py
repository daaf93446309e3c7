"""Present the outcome of a search as sentences, as JSON or as a document, and write the recipe file."""

from collections.abc import Iterator
from pathlib import Path

from judge.commands import command
from judge.document.blocks import Block, Cell, Document, Figure, Notes, Paragraph, Section, Table, heads
from judge.document.cells import difference as signed
from judge.document.cells import interval
from judge.improve.outcome import Improved
from judge.improve.recipe import Recipe
from judge.prompts.load import Task, find_tasks, with_constant
from judge.store.study import get_time
from judge.types import Json, attributes

MOST_PAIRS = 8


def add_evidence(improved: Improved) -> Recipe:
    """Return the winner's recipe, with the evidence for the improvement."""
    assert improved.winner is not None and improved.difference is not None and improved.proof is not None
    value, low, high = improved.difference
    look = improved.proof.look
    made: dict[str, Json] = {
        "at": get_time(),
        "model": improved.model,
        "reference": improved.reference,
        "look": look.look if look else None,
        "test_units": improved.proof.n_shared,
        "test_questions": improved.proof.n_clusters,
        "difference": round(value, 4),
        "low": None if low is None else round(low, 4),
        "high": None if high is None else round(high, 4),
    }
    return improved.winner.model_copy(update={"made": made})


def write_recipe(improved: Improved, path: Path | None = None) -> Path:
    """Write the winning recipe to a file (default: TASK.recipe.yaml) and return its path.

    If the recipe has new instructions, a new version of the task file is written to the same folder.
    """
    target = path or Path(f"{improved.task.task_id}.recipe.yaml")
    target.write_text(add_evidence(improved).text(), encoding="utf-8")
    task = next_version(improved, target.parent)
    if task is not None:
        file = target.parent / f"{task.name}.md"
        file.write_text(task.text, encoding="utf-8")
        improved.notes.append(
            f"to use the new instructions with people or other models, see the new version of the task: {file}"
        )
    return target


def next_version(improved: Improved, folder: Path) -> Task | None:
    """Return the task with the winner's instructions, as the next unused version.

    Return None if the instructions are unchanged.
    """
    assert improved.winner is not None
    text = improved.winner.instructions
    if text is None:
        return None
    known, version = find_tasks(), improved.task.version + 1
    # A study rejects a version whose text has changed, so version numbers must not be reused.
    while (name := f"{improved.task.task_id}.v{version}") in known or (folder / f"{name}.md").exists():
        version += 1
    return with_constant(improved.task, text, version)


NOTHING_TRIED = (
    "no candidate was tried: the judge agrees with people as well as people agree with each other, so their labels cannot show "
    "which judge is better (to search nevertheless: --anyway). First improve the guidelines for the labels that people confuse:"
)
NOTHING_BETTER = "no improvement shown: no candidate is better than the current task on the tuning questions, so the sealed test was not opened"


def sentences(improved: Improved, path: Path | None = None) -> list[str]:
    """Describe the outcome in sentences."""
    tokens = improved.spent["input_tokens"] + improved.spent["output_tokens"]
    spent = f"spent: {tokens:,} tokens" + (f", ${improved.cost:.4f}" if improved.cost is not None else "")
    return [*_people(improved), *_search(improved, path), spent]


def _search(improved: Improved, path: Path | None) -> Iterator[str]:
    if improved.refused:
        return
    if improved.stopped:
        yield f"the search stopped early: {improved.stopped}; to resume it, repeat the command with a higher limit"
    if improved.winner is None:
        yield NOTHING_BETTER
        return
    yield f"best on the tuning questions: {improved.winner.words}"
    if improved.proof is None:
        return
    yield from _proof(improved)
    if improved.proved and path:
        again = command("judge run", improved.task.name, "-m", improved.model, "--recipe", path)
        yield f"the recipe is in {path}: {again}"
    elif improved.proved:
        yield "the recipe was written"


def _proof(improved: Improved) -> Iterator[str]:
    proof, difference = improved.proof, improved.difference
    assert proof is not None
    look = proof.look.look if proof.look else 0
    where = f"on the sealed test ({proof.n_shared:,} units in {proof.n_clusters:,} questions, look {look}, tested at {improved.level:.4g})"
    if difference is None:
        yield f"no improvement shown {where}: the difference is undefined"
        return
    value, low, high = difference
    span = interval(low, high) or "no interval"
    head = "improved" if improved.proved else "no improvement shown"
    yield f"{head} {where}: kappa {signed(value)} ({span} at {100 * (1 - improved.level):.4g} %) compared with the current task"
    if not improved.proved:
        if improved.needed is not None:
            yield (
                f"with about {improved.needed:,} labelled units in the test, the next look would detect a difference of this size "
                "with a probability of 80 %"
            )
        else:
            yield "the observed difference is not above 0, so more labels are not expected to show an improvement"


def _people(improved: Improved) -> Iterator[str]:
    people = improved.people
    if people is None:
        return
    yield f"kappa on the learning and tuning questions: {people.judge:.3f} between judge and people, {people.people:.3f} among people"
    if not people.as_well:
        return
    if improved.refused:
        yield NOTHING_TRIED
    else:
        yield "the judge agrees with people as well as people agree with each other; labels that people confuse:"
    for label, other, n in people.pairs[:MOST_PAIRS]:
        yield f"  {label} / {other}: {n:,} unit{'s' if n != 1 else ''}"
    if people.clauses:
        yield "the task describes these labels as follows:"
        yield from (f"  {text}" for text in people.clauses)
    if people.notes:
        yield "notes by the lead:"
        yield from (f"  {text}" for text in people.notes)


def as_json(improved: Improved, path: Path | None = None) -> dict[str, Json]:
    """Return the result in the documented JSON form."""
    value, low, high = improved.difference or (None, None, None)
    proof = improved.proof
    return {
        "task": improved.task.name,
        **attributes(improved, "field", "model", "reference"),
        "tried": [
            {
                "step": t.rung,
                "candidate": t.recipe.words,
                "run": t.run_id,
                **attributes(t, "kappa", "coverage"),
                "units": t.n_units,
                "questions": t.n_questions,
                "tokens_per_unit": t.tokens,
            }
            for t in improved.tried
        ],
        "people": None
        if improved.people is None
        else {
            **attributes(improved.people, "judge", "people"),
            "differ_on": [{"labels": [a, b], "units": n} for a, b, n in improved.people.pairs],
            "clauses": list(improved.people.clauses),
            "notes": list(improved.people.notes),
        },
        "refused": improved.refused,
        "winner": improved.winner.words if improved.winner else None,
        "test": None
        if proof is None
        else {
            "look": proof.look.look if proof.look else None,
            "level": improved.level,
            "units": proof.n_shared,
            "questions": proof.n_clusters,
            "runs": [c.run_id for c in proof.contenders],
            "difference": value,
            "low": low,
            "high": high,
            "units_needed": improved.needed,
        },
        "improved": improved.proved,
        "recipe": None if path is None else str(path),
        "tokens": improved.spent["input_tokens"] + improved.spent["output_tokens"],
        "cost_usd": improved.cost,
        "stopped": improved.stopped,
        "said": sentences(improved, path),
        "notes": list(improved.notes),
    }


def as_document(improved: Improved, path: Path | None = None) -> Document:
    """Return the outcome, the difference on the sealed test, the new instructions, and all candidates."""
    about = [
        ("field", f"{improved.field}, compared with {improved.reference}"),
        ("questions", "candidates are chosen on the tuning questions and tested on the sealed test"),
    ]
    outcome, *others = _outcome_first(improved, path)
    sections = [
        Section("outcome", "Outcome", [Paragraph(outcome), *_difference(improved), Notes(others)]),
        Section("instructions", "The instructions of the best candidate", _instructions(improved)),
        Section("tried", "What was tried", [_tabulate_tried(improved)] if improved.tried else []),
        Section("notes", "Notes", [Notes(improved.notes)] if improved.notes else []),
    ]
    title = f"Improving {improved.task.name} with {improved.model}"
    return Document(title, about, sections=sections)


def _difference(improved: Improved) -> Iterator[Figure]:
    """Yield the difference of kappa on the sealed test, if it has an interval."""
    value, low, high = improved.difference or (None, None, None)
    if value is None or low is None or high is None:
        return
    text = f"Difference of kappa on the sealed test: {signed(value)}, from {signed(low)} to {signed(high)}; 0 is as good as today."
    row = {
        "label": "best candidate minus the current task",
        "value": value,
        "low": low,
        "high": high,
        "own": None,
    }
    data = {"rows": [{**row, "mark": ""}], "range": [min(-0.1, low - 0.05), max(0.1, high + 0.05)]}
    yield Figure("difference", "Difference of kappa on the sealed test", text, "dots", data)


def _instructions(improved: Improved) -> list[Block]:
    text = improved.winner.instructions if improved.winner else None
    return [Paragraph(text, "quote")] if text else []


def _tabulate_tried(improved: Improved) -> Table:
    best = improved.winner.words if improved.winner else "as it is today"
    most = max(t.n_questions for t in improved.tried)
    rows: list[list[Cell]] = [
        [
            t.rung,
            t.recipe.words + (" *" if t.recipe.words == best and t.n_questions == most else ""),
            "undefined" if t.kappa is None else t.kappa,
            t.coverage,
            t.n_units,
            t.n_questions,
            None if t.tokens is None else round(t.tokens),
        ]
        for t in improved.tried
    ]
    columns = (
        heads("text", "step", "candidate")
        + heads("number", "kappa")
        + heads("share", "labelled")
        + heads("number", "units", "tune questions", "tokens per unit")
    )
    return Table("tried", "", columns, rows, ["* marks the best candidate."])


def _outcome_first(improved: Improved, path: Path | None) -> list[str]:
    """Return the sentences, beginning with the result on the sealed test or the reason why the test was not opened."""
    lines = sentences(improved, path)
    # The sentence is identified by its source, because its wording may change.
    if improved.refused:
        head = NOTHING_TRIED
    elif improved.winner is None:
        head = NOTHING_BETTER
    elif improved.proof is not None:
        head = next(_proof(improved))
    else:
        return lines
    return [text for text in lines if text == head] + [text for text in lines if text != head]
