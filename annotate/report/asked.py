"""What annotators were asked: the task of each version under which labels were given, and its guidelines."""

from __future__ import annotations

from annotate.guidelines import GuidelineText, guideline_texts
from annotate.report.subject import Subject
from judge.document.blocks import Block, Facts, Paragraph, Table, heads
from judge.document.cells import format_count
from judge.labels import relation
from judge.prompts.load import Task
from judge.prompts.render import instructions
from judge.store import Store
from judge.store.export import read_stored_task

UNKNOWN = "not recorded"


def describe_tasks(store: Store, subject: Subject) -> list[Block]:
    """Return the question, the instructions and the guidelines of each version of the task that has labels.

    Without labels from a batch, the version is that of the subject. The list is empty if no task defines the field.
    """
    task, field = subject.panel.task, subject.panel.field
    if task is None:
        return []
    by_version = {} if subject.table else relation.count_by_version(store.conn, field, subject.options.batch)
    names = sorted(
        (name for name in by_version if name), key=lambda name: (name.rpartition(".v")[0], -_number(name))
    )
    tasks = [read_stored_task(store, name) for name in names] or [task]
    blocks: list[Block] = []
    if len(tasks) > 1:
        rows = [(t.name, format_count(by_version[t.name], "label")) for t in tasks]
        if by_version.get(None):
            rows.append((UNKNOWN, format_count(by_version[None], "label")))
        blocks.append(Facts("versions", "People's labels by version of the task", rows))
    for version in tasks:
        several = len(tasks) > 1
        blocks += _describe_task(store, subject, version, f" ({version.name})" if several else "")
    return blocks


def _number(name: str) -> int:
    return int(name.rpartition(".v")[2])


def _describe_task(store: Store, subject: Subject, task: Task, which: str) -> list[Block]:
    field = subject.panel.field
    question = task.question(field) if field not in task.spec.derive else None
    rows = [("task", f"{task.name}: {task.spec.title}"), ("unit", task.spec.unit)]
    rows.append(("shown", ", ".join(task.input_names)))
    if question and question.ask:
        rows.append(("question", question.ask))
    if question is None:
        source = task.spec.derive[field]
        origin = f"from '{source.source}'" + (f" and gold '{source.gold}'" if source.gold else "")
        rows.append(("derived", f"{origin}: " + "; ".join(f"{k} gives {v}" for k, v in source.table.items())))
    for label in question.labels if question else ():
        rows.append((f"label '{label.value}'", label.meaning or "no meaning given"))
    rows.append(("level", subject.panel.level))
    # The keys of blocks differ, so that a link to one of them is unambiguous.
    key = f"task_{task.name}" if which else "task"
    blocks: list[Block] = [Facts(key, f"The question, as worded in the task file{which}", rows)]
    if text := instructions(task):
        blocks += [Paragraph(f"Instructions for people and judges{which}:"), Paragraph(text, "quote")]
    if task.spec.guidelines:
        blocks += [
            Paragraph(f"Guidelines for people{which}:"),
            Paragraph(task.spec.guidelines.strip(), "quote"),
        ]
    batches = store.conn.execute("SELECT batch FROM batches WHERE task = ? ORDER BY created", [task.name])
    for (batch,) in batches.fetchall() if not subject.table else ():
        if subject.options.batch in (None, batch):
            blocks += _describe_changes(store, batch, task, field)
    return blocks


def _describe_changes(store: Store, batch: str, task: Task, field: str) -> list[Block]:
    """Return the texts that the guidelines of a batch have had, with the number of labels given under each.

    The list is empty if the guidelines were never changed.
    """
    texts = guideline_texts(store.conn, batch, task)
    if len(texts) == 1:
        return []
    counts = count_by_text(store, batch, task, field, texts)
    rows: list[list[str | int | float | None]] = [
        [
            n,
            text.since[:16].replace("T", " ") or "the draw",
            text.why or "the text of the task",
            counts[n - 1],
        ]
        for n, text in enumerate(texts, 1)
    ]
    if counts[-1]:
        rows.append([None, UNKNOWN, "labelled in another program after the change", counts[-1]])
    columns = (
        heads("number", "text")
        + heads("text", "since (UTC)", "reason")
        + heads("number", "labels given under it")
    )
    note = "A screen that was open during a change showed the earlier text until it was closed."
    blocks: list[Block] = [
        Table(
            f"guidelines_{batch}",
            f"Guidelines of batch {batch}, as they were changed",
            columns,
            rows,
            (note,),
        )
    ]
    for n, text in enumerate(texts[1:], 2):
        blocks += [
            Paragraph(f"Guidelines of batch {batch}, text {n}:"),
            Paragraph(text.text.strip(), "quote"),
        ]
    return blocks


def count_by_text(store: Store, batch: str, task: Task, field: str, texts: list[GuidelineText]) -> list[int]:
    """Return how many labels of a batch's sample were given under each text, and how many under an unknown one."""
    question = task.spec.derive[field].source if field in task.spec.derive else field
    query = """
        SELECT n.guidelines, e.at FROM assignments AS a JOIN events AS e ON e.seq = (SELECT max(l.seq) FROM events AS l
            WHERE l.batch = a.batch AND l.annotator_id = a.annotator_id AND l.position = a.position AND l.kind = 'label'
            AND l.field = ?2 AND NOT EXISTS (SELECT 1 FROM events AS x WHERE x.undoes = l.event_id))
        JOIN sessions AS n USING (session_id)
        WHERE a.batch = ?1 AND a.role = 'sample' AND a.status = 'done'
    """
    counts = [0] * (len(texts) + 1)
    for sha, at in store.conn.execute(query, [batch, question]):
        if at < texts[1].since:
            # Before the first change, there was only one text.
            counts[0] += 1
            continue
        # A text may come back: the label was then given under the latest one with this hash.
        matches = [i for i, text in enumerate(texts) if text.sha256 == sha and text.since <= at]
        counts[matches[-1] if matches else -1] += 1
    return counts
