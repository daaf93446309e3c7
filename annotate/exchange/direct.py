"""Store imported labels without a batch, as rows of `label_sources`. Each import is a separate source.

`log` stores labels that belong to a batch. If two imports give different labels, both are stored, and a lead
resolves the conflict (`annotate conflicts`).
"""

import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from annotate.exchange import result
from annotate.exchange.proof import Unproven
from annotate.exchange.responses import Response
from annotate.sitting import exposure
from annotate.sitting.events import ASSISTED, UNDECLARED
from judge.errors import BadInput
from judge.prompts.load import Task
from judge.store import label_sources
from judge.store.closed_batches import ClosedBatches
from judge.store.label_rows import OLD_TEXT
from judge.store.label_sources import SourceLabel
from judge.store.row_counts import REJECTED, Outcome, RowOutcome
from judge.store.study import get_time

CHECKS = ("training", "attention")
"""The roles of units that are only checks."""


class _NewLabel(NamedTuple):
    """A label to store, with the person's known labels for the same field and unit."""

    field: str
    value: str
    known: list[SourceLabel]
    revised: bool


class DirectImport:
    """Stores labels without a batch, each with its source. Each label is checked against every batch that
    contains the unit.
    """

    def __init__(
        self,
        conn: sqlite3.Connection,
        task: Task | None,
        how: result.ImportOptions,
        done: result.ImportResult,
        source: str,
    ) -> None:
        self._conn, self._task, self._how, self._done = conn, task, how, done
        self._source = source
        self._closed_batches = ClosedBatches(conn)
        self.sessions: list[str] = []
        self._in_file: dict[tuple[str, str, str, int, bool], str] = {}
        """The label in the file by (unit, field, annotator, repeat, whether it is revised), including labels that the
        study already has.
        """

    def store(self, response: Response) -> Outcome:
        """Store the labels of a response, and return the outcome and its reason. If BadInput is raised, none of the
        labels is stored.
        """
        done = self._done
        # Outside its batch, the answer to a check would look like an ordinary label.
        if response.role in CHECKS:
            return RowOutcome.LEFT_OUT, "answer to a check, which only its batch stores"
        parts = {
            "skips": response.skipped,
            "spans": response.spans,
            "notes": response.note,
            "flags": response.flag,
        }
        others = [kind for kind, present in parts.items() if present]
        done.left_out.update(others)
        answers = [(False, response.answers), (True, response.revised)]
        # Every check that could refuse the response comes before the first row is written.
        compared = [
            self._compare(response, name, value, revised)
            for revised, labels in answers
            for name, value in labels.items()
        ]
        fresh = [label for label in compared if isinstance(label, _NewLabel)]
        outcomes = [label for label in compared if not isinstance(label, _NewLabel)]
        if fresh:
            result.ensure_annotator(self._conn, response)
        kinds: Counter[str] = Counter()
        for label in fresh:
            kind, outcome = self._store_label(response, label)
            kinds[kind] += 1
            outcomes.append((outcome, ""))
        done.blind += kinds
        if response.weight is not None:
            for name in response.answers:
                done.weights.setdefault(name, set()).add(response.weight)
        if compared:
            done.units.add(response.unit)
        # A person who labelled a unit elsewhere has seen its text: in a later batch, that person would not see
        # it for the first time.
        seen = ["text"] * bool(compared) + ["judge"] * bool(kinds[ASSISTED] or response.revised)
        for content in seen:
            exposure.note_unit(
                self._conn, response.annotator, response.unit, content, "", "import", response.at
            )
        if not outcomes and others:
            return RowOutcome.LEFT_OUT, f"{', '.join(others)}, which only a batch stores"
        return result.combine(outcomes)

    def _compare(self, response: Response, name: str, value: str, revised: bool) -> "_NewLabel | Outcome":
        """Compare a label with the person's labels from all sources.

        Return the label if it must be stored. Otherwise, return its outcome, e.g. because it is already known.

        Raises BadInput if an earlier row of the file has a different label, unless the import option `latest`
        is set.
        """
        there = (RowOutcome.ALREADY_THERE, "")
        key = (response.unit, name, response.annotator, response.repeat)
        # Labels for the text before a correction say nothing about this one.
        known = [
            s for s in label_sources.read_labels(self._conn, *key, revised=revised) if s.layer != OLD_TEXT
        ]
        same = [s for s in known if s.value == value]
        kind = result.kind_of(response, name, self._how)
        earlier = self._in_file.setdefault((*key, revised), value)
        if earlier != value and not self._how.latest:
            # Two imports may differ, and a lead then resolves the conflict. Two labels in one file are a
            # mistake in the file.
            raise result.conflict(response, name, earlier, value)
        if not revised and kind != UNDECLARED and any(s.layer == UNDECLARED for s in same):
            self._declare(key, kind, same)
            return RowOutcome.STORED, ""
        contrary = [s for s in known if _is_import(s) and s.value != value]
        # `latest` replaces other imports only: the log of a batch is not overwritten from outside.
        replaces = bool(contrary) and self._how.latest and not revised
        # The same label with the same time is the same answer, as when an export is imported again. It is
        # stored again only if it was overridden and must count again.
        if not replaces and any(
            _is_import(s) or (response.at is not None and s.given == response.at) for s in same
        ):
            self._done.unchanged += 1
            return there
        if not revised and label_sources.is_rejected(self._conn, *key, value, response.at):
            return REJECTED
        if replaces and any(response.at and s.given and s.given > response.at for s in contrary):
            self._done.older += 1
            return result.OLDER
        if not same:
            self._check_batches(response, name)
        return _NewLabel(name, value, known, revised)

    def _store_label(self, response: Response, label: "_NewLabel") -> tuple[str, RowOutcome]:
        """Store a label in addition to the known labels. Return "blind", "assisted" or "undeclared", and the outcome."""
        who, unit, conn = response.annotator, response.unit, self._conn
        name, value, known, revised = label
        seen = exposure.is_exposed(conn, self._task, who, unit, response.at)
        kind = ASSISTED if seen or revised else result.kind_of(response, name, self._how)
        earlier = [
            s for s in known if _is_import(s) and s.value != value and self._how.latest and not revised
        ]
        # A file may contradict itself: its first label is kept as an additional source.
        number = sum(s.source.partition("/")[0] == self._source for s in known)
        source = f"{self._source}/{number}" if number else self._source
        # A lead gives the reason for a decision in the note.
        rationale = response.note if response.role == "adjudication" else None
        layer = "revised" if revised else _layer(kind)
        row = (
            unit,
            name,
            who,
            layer,
            response.repeat,
            value,
            rationale,
            None,
            source,
            response.at,
            get_time(),
        )
        label_sources.add_imported(conn, [row])
        if earlier:
            replaced = label_sources.Conflict(
                who, name, unit, response.repeat, [*earlier, SourceLabel(source, "", value, None, "")]
            )
            label_sources.resolve(conn, [replaced], lambda _: value, "latest")
            self._done.replaced += 1
        others = {s.value for s in known if s not in earlier}
        contradicts = bool(others - {value})
        self._done.conflicts += contradicts
        self._done.confirmed += value in others
        self._done.new[who] += value not in others
        return kind, RowOutcome.CONFLICT if contradicts else RowOutcome.STORED

    def _check_batches(self, response: Response, name: str) -> None:
        """Raise BadInput if the label belongs to a closed batch, or to a batch in which the person was stopped."""
        who, unit = response.annotator, response.unit
        batch = self._closed_batches.find(who, unit, name)
        if batch is not None and batch.stopped is not None:
            raise Unproven("person", batch.describe(who, unit), field="annotator")
        if batch is not None:
            raise BadInput(batch.describe(who, unit), field="unit")

    def _declare(self, key: tuple[str, str, str, int], kind: str, same: Sequence[SourceLabel]) -> None:
        """Mark undeclared labels as blind or assisted.

        Raises BadInput for a label that belongs to a batch.
        """
        unit, name, who, repeat = key
        same = [s for s in same if s.layer == UNDECLARED]
        for source in same:
            # The labels of a batch are computed from its log, so a change here would be lost.
            if source.source.startswith("batch:"):
                batch = source.source.removeprefix("batch:")
                where = f"{who} labelled '{unit}' in batch '{batch}': declare its blindness there with --batch {batch}"
                raise BadInput(where, field=name)
        for source in same:
            label_sources.clear(self._conn, who, unit, repeat, source.source, [name])
            about = (source.source, source.given, source.stored)
            label_sources.add_imported(
                self._conn, [(unit, name, who, _layer(kind), repeat, source.value, None, None, *about)]
            )
        self._done.declared += 1
        self._done.blind[kind] += 1

    def retract(self, withdrawn: result.Retracted) -> int:
        """Do nothing. Without a batch, the study does not store which record a label came from."""
        return 0

    def finish(self) -> None:
        """Do nothing: everything is already stored."""


def _is_import(label: SourceLabel) -> bool:
    """Return whether a label was imported without a batch."""
    # Studies of 0.2.0 did not record the import: there the source is "study:".
    return label.source.startswith(("import:", "study:"))


def _layer(kind: str) -> str:
    """Return the layer in which a blind, assisted or undeclared label is stored."""
    return kind if kind in (ASSISTED, UNDECLARED) else "first"
