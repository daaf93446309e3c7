"""Store imported labels without a batch, as rows of `label_sources`. Each import is a separate source.

`log` stores labels that belong to a batch. If two imports give different labels, both are stored, and a lead
resolves the conflict (`annotate conflicts`).
"""

import sqlite3
from collections import Counter
from collections.abc import Sequence

from annotate.exchange import result
from annotate.exchange.proof import Unproven
from annotate.exchange.responses import Response
from annotate.sitting import exposure
from annotate.sitting.events import ASSISTED, UNDECLARED
from annotate.sitting.standing import is_stopped
from judge.commands import command
from judge.errors import BadInput
from judge.prompts.load import Task
from judge.store import Store, label_sources
from judge.store.export import read_stored_task
from judge.store.label_sources import SourceLabel
from judge.store.study import get_time


class DirectImport:
    """Stores labels without a batch, each with its source. Each label is checked against every batch that
    contains the unit.
    """

    def __init__(
        self,
        store: Store,
        conn: sqlite3.Connection,
        task: Task | None,
        how: result.ImportOptions,
        done: result.ImportResult,
        source: str,
    ) -> None:
        self._store, self._conn, self._task, self._how, self._done = store, conn, task, how, done
        self._source = source
        self._closed_batches: dict[str, list[tuple[str, list[str], str | None, set[str]]]] = {}
        self.sessions: list[str] = []
        self._in_file: dict[tuple[str, str, str, int], str] = {}
        """The label in the file by (unit, field, annotator, repeat), including labels that the study already has."""

    def store(self, response: Response) -> None:
        """Store the labels of a response. If BadInput is raised, none of them is stored."""
        done = self._done
        for kind, present in (("skips", response.skipped), ("spans", response.spans), ("notes", response.note),
                            ("flags", response.flag)):  # fmt: skip
            if present:
                done.left_out[kind] += 1
        # Every check that could refuse the response comes before the first row is written.
        fresh = [
            (name, value, known)
            for name, value in response.answers.items()
            if (known := self._sources_of_new(response, name, value)) is not None
        ]
        kinds: Counter[str] = Counter()
        if fresh:
            result.check_person(self._conn, response.annotator, create=True)
        for name, value, known in fresh:
            kinds[self._store_label(response, name, value, known)] += 1
        done.blind += kinds
        if response.weight is not None:
            for name in response.answers:
                done.weights.setdefault(name, set()).add(response.weight)
        if response.answers:
            done.units.add(response.unit)
        # A person who labelled a unit elsewhere has seen its text: in a later batch, that person would not see
        # it for the first time.
        for content in [*(["text"] if response.answers else []), *(["judge"] if kinds[ASSISTED] else [])]:
            exposure.note_unit(
                self._conn, response.annotator, response.unit, content, "", "import", response.at
            )

    def _sources_of_new(self, response: Response, name: str, value: str) -> list[SourceLabel] | None:
        """Return the person's known labels from all sources if the new label `value` must be stored.

        Return None if it need not be stored, e.g. because it is already known.

        Raises BadInput if an earlier row of the file has a different label, unless the import option `latest`
        is set.
        """
        key = (response.unit, name, response.annotator, response.repeat)
        known = label_sources.read_labels(self._conn, *key)
        same = [s for s in known if s.value == value]
        kind = result.kind_of(response, name, self._how)
        earlier = self._in_file.setdefault(key, value)
        if earlier != value and not self._how.latest:
            # Two imports may differ, and a lead then resolves the conflict. Two labels in one file are a
            # mistake in the file.
            raise result.conflict(response, name, earlier, value)
        if kind != UNDECLARED and any(s.layer == UNDECLARED for s in same):
            self._declare(key, kind, same)
            return None
        contrary = [s for s in known if _is_import(s) and s.value != value]
        # `latest` replaces other imports only: the log of a batch is not overwritten from outside.
        replaces = bool(contrary) and self._how.latest
        # The same label with the same time is the same answer, as when an export is imported again. It is
        # stored again only if it was overridden and must count again.
        if not replaces and any(
            _is_import(s) or (response.at is not None and s.given == response.at) for s in same
        ):
            self._done.unchanged += 1
            return None
        if replaces and any(response.at and s.given and s.given > response.at for s in contrary):
            self._done.older += 1
            return None
        if not same:
            self._check_batches(response, name)
        return known

    def _store_label(self, response: Response, name: str, value: str, known: list[SourceLabel]) -> str:
        """Store a label in addition to the known labels. Return "blind", "assisted" or "undeclared"."""
        who, unit, conn = response.annotator, response.unit, self._conn
        seen = exposure.is_exposed(conn, self._task, who, unit, response.at)
        kind = ASSISTED if seen else result.kind_of(response, name, self._how)
        earlier = [s for s in known if _is_import(s) and s.value != value and self._how.latest]
        # A file may contradict itself: its first label is kept as an additional source.
        number = sum(s.source.partition("/")[0] == self._source for s in known)
        source = f"{self._source}/{number}" if number else self._source
        row = (
            unit,
            name,
            who,
            _layer(kind),
            response.repeat,
            value,
            None,
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
            label_sources.resolve(conn, [replaced], lambda _: value)
            self._done.replaced += 1
        others = {s.value for s in known if s not in earlier}
        self._done.conflicts += bool(others - {value})
        self._done.confirmed += value in others
        self._done.new[who] += value not in others
        return kind

    def _check_batches(self, response: Response, name: str) -> None:
        """Raise BadInput if the label belongs to a closed batch, or to a batch in which the person was stopped."""
        # Without this check, an import without --batch would bypass the lead's decision.
        who, unit = response.annotator, response.unit
        if who not in self._closed_batches:
            self._closed_batches[who] = self._find_closed(who)
        for batch, fields, reason, units in self._closed_batches[who]:
            if name not in fields or unit not in units:
                continue
            if reason is not None:
                raise Unproven(
                    "person", f"{who} was stopped in batch '{batch}' ({reason})", field="annotator"
                )
            where = f"'{unit}' is assigned to {who} in batch '{batch}', which is closed"
            raise BadInput(
                f"{where}; to reopen it: {command('annotate batches close', batch, '--undo')}", field="unit"
            )

    def _find_closed(self, who: str) -> list[tuple[str, list[str], str | None, set[str]]]:
        """Return the batches that no longer accept labels from this person, as tuples (name, fields, reason, units).

        The reason says why the person was stopped, and is None if the batch is closed.
        """
        closed_batches = []
        batches = "SELECT batch, task, closed FROM batches"
        assigned = (
            "SELECT unit_id FROM assignments WHERE batch = ? AND annotator_id = ? AND role <> 'adjudication'"
        )
        for batch, task, closed in self._conn.execute(batches).fetchall():
            reason = is_stopped(self._conn, batch, who)
            if reason is not None:
                rows = self._conn.execute("SELECT unit_id FROM batch_units WHERE batch = ?", [batch])
            elif closed:
                rows = self._conn.execute(assigned, [batch, who])
            else:
                continue
            fields = read_stored_task(self._store, task).fields
            closed_batches.append((batch, fields, reason, {unit for (unit,) in rows}))
        return closed_batches

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
