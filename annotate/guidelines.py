"""Describe a task to annotators, and clarify the guidelines of a batch.

The description contains the codebook that the judge also reads, the keys for the labels, and the guidelines.

A study refuses other text under a task version that it has used. The guidelines of a batch are the one exception: a
lead can clarify them while people label. The task keeps its text, because runs of judges may have shown it. The
batch's texts are in `guideline_changes`, and each session records which of them it showed.
"""

import hashlib
import sqlite3
from dataclasses import dataclass, replace
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase

from judge.commands import command
from judge.errors import BadInput, UsageError
from judge.prompts.load import Task, parse_task
from judge.prompts.render import instructions
from judge.prompts.spec import Question
from judge.store import Store
from judge.store.export import read_stored_task
from judge.store.study import get_time

SPARE = "123456789" + ascii_lowercase + ascii_uppercase
"""The keys for labels to which the task gives no key."""


def label_keys(task: Task) -> dict[str, dict[str, str]]:
    """Return a map from each field to {key: label}. Labels to which the task gives no key get digits as keys.

    Raises UsageError if there are more labels than keys.
    """
    taken = {label.key for q in task.spec.questions for label in q.labels if label.key}
    # Each question has its own digits, because one question is answered at a time. A key that the task gives
    # to a label keeps this meaning on the whole screen.
    spare = [c for c in SPARE if c not in taken]
    return {q.field: _keys(q, list(spare)) for q in task.spec.questions}


def _keys(question: Question, spare: list[str]) -> dict[str, str]:
    without = sum(label.key is None for label in question.labels)
    if without > len(spare):
        raise UsageError(
            f"field '{question.field}' has {len(question.labels)} labels, more than there are keys"
        )
    return {label.key or spare.pop(0): label.value for label in question.labels}


def markdown(task: Task) -> str:
    """Return the title, instructions, questions with keys and meanings, guidelines and citation.

    The instructions, questions and meanings are, word for word, the text that a judge reads.
    """
    parts = [f"# {task.spec.title}"]
    if text := instructions(task):
        parts.append(text)
    keys = label_keys(task)
    for question in task.spec.questions:
        parts.append(f"## {question.ask or question.field}")
        meaning = {label.value: label.meaning for label in question.labels}
        lines = [f"- `{key}` **{value}**: {meaning[value]}" for key, value in keys[question.field].items()]
        kind = "a number" if question.level == "interval" else "free text"
        parts.append("\n".join(lines) or f"Answer with {kind}.")
    if task.spec.guidelines.strip():
        parts.append(f"## Guidelines\n\n{task.spec.guidelines.strip()}")
    if task.spec.citation:
        c = task.spec.citation
        parts.append(f"*{c.paper} ({c.year}){', ' + c.where if c.where else ''}*")
    return "\n\n".join(parts)


@dataclass(frozen=True)
class GuidelineText:
    """One text of a batch's guidelines, with the time since which it applies and the reason for the change.

    The first text of a batch is that of its task, so its time and its reason are empty.
    """

    sha256: str
    text: str
    since: str = ""
    why: str = ""


def keep_guidelines(conn: sqlite3.Connection, text: str) -> str:
    """Store the text of guidelines, unless it is stored already. Return its hash."""
    sha = hashlib.sha256(text.encode()).hexdigest()
    conn.execute("INSERT OR IGNORE INTO prompts VALUES (?, ?)", [sha, text])
    return sha


def guideline_texts(conn: sqlite3.Connection, batch: str, task: Task) -> list[GuidelineText]:
    """Return the texts of a batch's guidelines, the first one first. `task` is the task as the study stores it."""
    first = task.spec.guidelines
    texts = [GuidelineText(hashlib.sha256(first.encode()).hexdigest(), first)]
    query = (
        "SELECT c.new, p.text, c.at, c.why FROM guideline_changes AS c JOIN prompts AS p ON p.sha256 = c.new "
        "WHERE c.batch = ? ORDER BY c.at, c.seq"
    )
    return texts + [GuidelineText(*row) for row in conn.execute(query, [batch])]


def with_guidelines_of(conn: sqlite3.Connection, batch: str, task: Task) -> Task:
    """Return the task with the current guidelines of a batch."""
    text = guideline_texts(conn, batch, task)[-1].text
    return replace(task, spec=task.spec.model_copy(update={"guidelines": text}))


def clarify(store: Store, batch: str, path: Path, why: str) -> GuidelineText:
    """Change the guidelines of a batch to the text in a file, and return the new text.

    The file contains the text alone, or it is a task file that differs from the stored task only in its
    guidelines. Raises UsageError without a reason, for an empty or unchanged text, and for an unknown batch.
    Raises BadInput for a task file that differs in anything else.
    """
    if not why.strip():
        raise UsageError("--why requires a reason, e.g. --why 'examples for dates'; the report shows it")
    row = store.conn.execute("SELECT task FROM batches WHERE batch = ?", [batch]).fetchone()
    if row is None:
        raise UsageError(f"no batch '{batch}'; to list the batches: {command('annotate batches show')}")
    task = read_stored_task(store, row[0])
    text = _read_guidelines(path, task)
    with store.transaction() as conn:
        now = guideline_texts(conn, batch, task)[-1]
        if text.strip() == now.text.strip():
            raise UsageError(f"{path}: batch '{batch}' already has these guidelines")
        # The first change refers to the task's own text, which is stored only inside the task.
        _add_change(conn, batch, keep_guidelines(conn, now.text), keep_guidelines(conn, text), why.strip())
        return guideline_texts(conn, batch, task)[-1]


def carry_guidelines(conn: sqlite3.Connection, batch: str, task: Task) -> None:
    """Give a new batch the newest guidelines of its task, if a lead has clarified those of an earlier batch."""
    query = (
        "SELECT c.batch, c.new FROM guideline_changes AS c JOIN batches AS b USING (batch) WHERE b.task = ? "
        "ORDER BY c.at DESC, c.seq DESC LIMIT 1"
    )
    row = conn.execute(query, [task.name]).fetchone()
    if row is not None:
        _add_change(conn, batch, keep_guidelines(conn, task.spec.guidelines), row[1], f"as in batch {row[0]}")


def copy_changes(source: sqlite3.Connection, target: sqlite3.Connection, batch: str) -> None:
    """Copy the texts of a batch's guidelines to a pack."""
    rows = source.execute(
        "SELECT old, new, why, at FROM guideline_changes WHERE batch = ? ORDER BY at, seq", [batch]
    ).fetchall()
    for sha in {sha for row in rows for sha in row[:2]}:
        text = source.execute("SELECT text FROM prompts WHERE sha256 = ?", [sha]).fetchone()[0]
        keep_guidelines(target, text)
    target.executemany(
        "INSERT INTO guideline_changes (batch, old, new, why, at) VALUES (?, ?, ?, ?, ?)",
        [(batch, *row) for row in rows],
    )


def _add_change(conn: sqlite3.Connection, batch: str, old: str, new: str, why: str) -> None:
    conn.execute(
        "INSERT INTO guideline_changes (batch, old, new, why, at) VALUES (?, ?, ?, ?, ?)",
        [batch, old, new, why, get_time()],
    )


def _read_guidelines(path: Path, stored: Task) -> str:
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as e:
        raise UsageError(f"{path}: cannot be read as text: {e}") from e
    if text.lstrip().startswith("---"):
        # A file elsewhere may have any name, so it is parsed as this version of the task.
        task = parse_task(text, f"{stored.name}.md", str(path))
        for part, ours, theirs in (
            ("template", (stored.constant, stored.unit), (task.constant, task.unit)),
            *(
                (name, getattr(stored.spec, name), getattr(task.spec, name))
                for name in type(stored.spec).model_fields
            ),
        ):
            if part != "guidelines" and ours != theirs:
                problem = (
                    f"differs from {stored.name} in more than its guidelines; save it as a new version, "
                    f"{stored.task_id}.v{stored.version + 1}.md"
                )
                raise BadInput(problem, path=str(path), field=part)
        text = task.spec.guidelines
    if not text.strip():
        raise UsageError(f"{path}: there is no text of guidelines in this file")
    return text
