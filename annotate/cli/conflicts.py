"""annotate conflicts and annotate verify: resolve conflicting labels, and check a study's consistency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from annotate.cli._named import with_study
from judge.commands import command
from judge.console import json_option, note
from judge.document.terminal import emit_rows
from judge.errors import Exit, UsageError

if TYPE_CHECKING:
    from sqlite3 import Connection

    from judge.store import Store

COLUMNS = ["unit", "annotator", "field", "repeat", "label", "layer", "source", "given", "stored"]
DIFFERENCES = ["what", "where", "expected", "stored"]


@click.group()
def conflicts() -> None:
    """List and resolve conflicting labels.

    A conflict means that two sources have different labels by the same person. Sources are batches, imports and
    other studies.

    Until you resolve the conflict, its unit counts as unlabelled, and no verdict is decided.
    """


@conflicts.command("list")
@click.option("--field", help="Use only labels of this field.")
@with_study
@json_option
def list_(field: str | None, store: Store, as_json: bool) -> None:
    """List the conflicting labels, with the label from each source.

    The earliest source comes first.
    """
    from judge.store import label_sources

    rows: list[dict[str, Any]] = [
        {
            "unit": c.unit, "annotator": c.annotator, "field": c.field, "repeat": c.repeat, "label": s.value,
            "layer": s.layer, "source": s.source, "given": s.given, "stored": s.stored,
        }
        for c in label_sources.conflicts(store.conn, None if field is None else [field])
        # A row for each source, because the lead chooses between them.
        for s in c.said
    ]  # fmt: skip
    # The other columns are for programs, because a terminal has no room for them.
    shown = [c for c in COLUMNS if c not in ("repeat", "layer", "stored")]
    emit_rows("conflicts", rows, shown, as_json)


@conflicts.command("resolve")
@click.argument("unit", required=False)
@click.option(
    "--keep",
    required=True,
    metavar="LABEL",
    help="Label to keep: earliest, latest, or the label itself.",
)
@click.option("--all", "every", is_flag=True, help="Resolve all conflicts.")
@click.option("--annotator", help="Use only labels by this annotator.")
@click.option("--field", help="Use only labels of this field.")
@with_study
def resolve(
    unit: str | None, keep: str, every: bool, annotator: str | None, field: str | None, store: Store
) -> None:
    """Choose the label to keep for UNIT, or for all conflicts.

    The other labels stay in the log.

    \b
    annotate conflicts resolve d:q1/a --keep support
    annotate conflicts resolve --all --keep latest

    A label without a timestamp gets the time of its import. If a source changes its label later, the conflict
    is reopened.
    """
    from judge.store import label_sources
    from judge.store.label_sources import pick_by_time, pick_by_value

    if every == (unit is not None):
        raise UsageError(
            f"specify a unit or pass --all; to list the conflicts: {command('annotate conflicts list')}"
        )
    by = (
        pick_by_time("earliest" if keep == "earliest" else "latest")
        if keep in ("earliest", "latest")
        else pick_by_value(keep)
    )
    # Of two conflicts, the one on another field may not even have such a label.
    if every and keep not in ("earliest", "latest"):
        raise UsageError(
            "--all requires --keep earliest or --keep latest: a single label cannot resolve every conflict"
        )
    with store.transaction() as conn:
        open_conflicts = label_sources.conflicts(conn, None if field is None else [field])
        wanted = [c for c in open_conflicts if (every or c.unit == unit) and annotator in (None, c.annotator)]
        if unit is not None and not wanted:
            raise _nothing(conn, unit, field, annotator)
        n = label_sources.resolve(conn, wanted, by)
    note(f"{n} resolved; {len(label_sources.conflicts(store.conn))} labels are still in conflict")


def _nothing(conn: Connection, unit: str, field: str | None, annotator: str | None) -> UsageError:
    """Return the error for a unit whose labels are not in conflict."""
    listed = f"; to list the conflicts: {command('annotate conflicts list')}"
    if conn.execute("SELECT 1 FROM units WHERE unit_id = ?", [unit]).fetchone() is None:
        return UsageError(
            f"the study has no unit '{unit}'; to list the conflicts: {command('annotate conflicts list')}"
        )
    of = "".join(f" {word} {name}" for word, name in (("on", field), ("by", annotator)) if name is not None)
    return UsageError(f"no label of '{unit}'{of} is in conflict{listed}")


@click.command("verify")
@with_study
@json_option
def verify(store: Store, as_json: bool) -> int:
    """Recompute all stored results, and list the differences.

    Nothing is changed.

    The command checks labels, weights of drawn units, splits and the record of what each person saw. It also
    lists labels without a source. If anything differs, the command prints the rows and exits with code 1.
    """
    from annotate.leading.verify import verify as check

    findings = check(store)
    if findings or as_json:
        emit_rows("verify", [dict(zip(DIFFERENCES, d, strict=True)) for d in findings], DIFFERENCES, as_json)
    note(f"{store.path}: {len(findings)} differences" if findings else f"{store.path}: no differences found")
    # The migration that recorded the sources of labels changed them, so they are no fault of the study.
    changed = store.conn.execute("SELECT count(*) FROM label_changes").fetchone()[0]
    if changed:
        note(
            f"{changed} labels have a different status than in adjudge 0.2.0; the table label_changes lists them"
        )
    return Exit.ERROR if findings else Exit.DONE
