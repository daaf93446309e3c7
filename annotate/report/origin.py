"""The origin of the labels (judge runs, imports, the task's paper), and the methods to cite (`works.toml`)."""

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from annotate.report.subject import Subject
from judge.document.blocks import Block, Cell, Facts, Paragraph, Section, Table, heads
from judge.document.cells import format_count, format_stored
from judge.files import file_sha
from judge.labels.origin import describe_origin
from judge.prompts.load import Task
from judge.stats import MISSING
from judge.store import Store
from judge.store.export import read_stored_task, run_counts
from judge.store.listing import dicts, list_imports
from judge.store.runs import SERVERS
from judge.types import Json, Status


def runs(store: Store, subject: Subject) -> Section:
    """Return the section on each judge: its model, resolved version, prompt and options, and the status of its replies."""
    title = "The judges"
    if not subject.panel.judges:
        return Section("runs", title, absent="no judge has a run for this field")
    if subject.table:
        reason = "the labels come from a table, which does not record the model, its prompt, or the statuses of its replies"
        return Section("runs", title, absent=reason)
    blocks: list[Block] = []
    rows: list[list[Cell]] = []
    for i, judge in enumerate(subject.panel.judges, 1):
        (run,) = dicts(store.conn, "SELECT * FROM runs WHERE run_id = ?", [subject.run_ids[judge]])
        counts = run_counts(store, run["run_id"])
        n = counts["units"]
        cells: list[Cell] = [judge, n]
        for status in Status:
            cells.append(f"{counts[status]:,} ({counts[status] / n:.1%})" if n else "0")
        rows.append([*cells, counts["input_tokens"], counts["output_tokens"], counts["mean_latency"]])
        blocks.append(Facts(f"run_{i}", judge, _facts(store, run)))
    columns = heads("text", "judge") + heads("number", "replies") + heads("text", *map(str, Status))
    columns += heads("number", "tokens in", "tokens out", "seconds per call")
    note = (
        "This counts the latest attempt for each unit and repeat. Only replies with the status ok have labels; all others "
        "lower the coverage."
    )
    return Section("runs", title, [Table("statuses", "How replies ended", columns, rows, (note,)), *blocks])


def _facts(store: Store, run: Mapping[str, Json]) -> list[tuple[str, str]]:
    task = read_stored_task(store, run["task"])
    prefixes = [
        sha
        for (sha,) in store.conn.execute(
            "SELECT DISTINCT prefix_sha FROM requests WHERE request_sha IN "
            "(SELECT request_sha FROM judgements WHERE run_id = ?)",
            [run["run_id"]],
        )
    ]
    # A server's capabilities are stored for the next run, and have no effect on these labels.
    provider = {k: v for k, v in json.loads(run["provider"]).items() if k != SERVERS}
    # The description has a remark if the run's parents have changed since.
    origin = describe_origin(store, run["run_id"])
    return [
        ("run", run["run_id"]),
        ("model", run["model"]),
        *([("origin", f"{origin}; adjudge did not call a model")] if origin else []),
        ("resolved model", run["resolved_model"] or "not reported by the provider"),
        ("task", task.name),
        ("task file sha256", task.sha256),
        ("constant prompt part sha256", ", ".join(prefixes) or "no request is stored"),
        ("options", _pairs(json.loads(run["options"]))),
        ("provider", _pairs(provider)),
        *(
            [("fence", "none: a raw prompt does not separate passages from instructions")]
            if task.spec.raw
            else []
        ),
        ("rationale", task.spec.rationale),
        ("few-shot examples", _examples(task, json.loads(run["options"]))),
        ("started", run["started"]),
        ("finished", run["finished"] or "not finished"),
    ]


def _examples(task: Task, options: Mapping[str, Json]) -> str:
    """Return the number of examples in a run's prompt, as text. A run without its own examples uses those in the task."""
    # A run without the option used the examples in its task file.
    chosen = options.get("examples")
    n = len(task.spec.examples) if chosen is None else len(list(filter(None, chosen.split(","))))
    nearest = options.get("nearest_examples")
    return (
        str(n)
        if nearest is None
        else f"for each unit, the {nearest} nearest examples of each label by BM25, chosen from {n}"
    )


def _pairs(values: Mapping[str, Json]) -> str:
    return (
        ", ".join(f"{name} {format_stored(value, 'none')}" for name, value in sorted(values.items()))
        or "none"
    )


def imports(store: Store, subject: Subject) -> Section:
    """Return the section on imports: the files, and how their fields and labels were renamed."""
    title = "The data, as imported"
    blocks: list[Block] = [_table(subject, subject.table)] if subject.table else []
    for i, record in enumerate(list_imports(store), 1):
        rows = [("format", record["format"]), ("imported", record["imported_at"])]
        rows += [("file", f"{path} (sha256 {sha})") for path, sha in record["files"].items()]
        rows.append(("read", ", ".join(f"{n:,} {noun}" for noun, n in record["counts"].items())))
        rows += [("field map", f"{ours} from {theirs}") for ours, theirs in record["maps"].items()]
        for field, words in record["label_maps"].items():
            rows += [("label map", f"{field}: {old} becomes {new}") for old, new in words.items()]
        if record["skipped"]:
            rows.append(
                ("bad rows left out", f"{len(record['skipped']):,}; the first: {record['skipped'][0]}")
            )
        blocks.append(Facts(f"import_{i}", f"Import {i}: {record['dataset'] or record['format']}", rows))
    blocks += [Paragraph(text, "note") for text in subject.panel.notes]
    if not blocks:
        return Section("imports", title, absent="nothing was imported")
    return Section("imports", title, blocks)


def _table(subject: Subject, path: Path) -> Facts:
    panel = subject.panel
    n_labels = int((panel.ratings.codes != MISSING).sum())
    rows = [("labels", f"{n_labels:,} of {format_count(panel.ratings.n_units, 'unit')}")]
    # A pipe can be read only once, so it has no hash.
    if path.is_file():
        rows.insert(0, ("file", f"{path} (sha256 {file_sha(path)})"))
    return Facts("table", f"Table {path.name}", rows)


def citations(subject: Subject, sections: Iterable[Section]) -> Section:
    """Return the section with the works that the sections cite, and the paper that defines the labels."""
    blocks: list[Block] = []
    task = subject.panel.task
    if task is not None and task.spec.citation is not None:
        c = task.spec.citation
        where = f" ({c.where})" if c.where else ""
        text = f"The labels of {task.name} are defined in: {c.paper}, {c.year}{where}. {c.url}".strip()
        blocks.append(Paragraph(text))
        blocks.append(
            Paragraph(
                "The numbers in this report were measured with a different judge, so they are not the paper's numbers.",
                "note",
            )
        )
    used = {key for section in sections for key in section.cites}
    works = tomllib.loads((Path(__file__).parent / "works.toml").read_text("utf-8"))
    rows: list[list[Cell]] = [
        [work["use"], work["reference"], work["link"]] for key, work in works.items() if key in used
    ]
    columns = heads("text", "for", "cite", "link")
    if rows:
        blocks.append(Table("citations", "Methods used in this report", columns, rows))
    return Section("citations", "How to cite", blocks)
