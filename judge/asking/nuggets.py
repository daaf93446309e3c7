"""Import nuggets and assignments, for `judge nuggets import` and Python."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judge.errors import UsageError
from judge.importers import nuggets as files
from judge.importers.base import Bad
from judge.importers.importing import import_each, skipping
from judge.importers.records import Records
from judge.store import Store
from judge.store.imports import ImportInfo, ImportReport, add_rows
from judge.store.nuggets import Assigner, NuggetAdder, NuggetRow
from judge.types import Json


@dataclass(frozen=True, slots=True)
class NuggetsImported:
    """The counts of each file, and the rows that --skip-bad left out."""

    rows: list[dict[str, Json]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def add(self, name: str, report: ImportReport) -> None:
        """Add the report of a file."""
        self.rows.append({"file": name, **report.counts, "skipped": len(report.skipped)})
        self.skipped.extend(str(error) for error in report.skipped)


def assigner(judge: str | None, annotator: str | None, condition: str | None) -> Assigner:
    """Return the source of the assignments. Raises UsageError if both a judge and an annotator are named."""
    if judge and annotator:
        raise UsageError("use --judge or --annotator, not both: a file has the assignments of one of them")
    return Assigner(judge, annotator, condition)


def import_files(
    store: Store, paths: Sequence[Path], whose: Assigner, dataset: str | None, skip_bad: bool
) -> NuggetsImported:
    """Import nuggets and assignments, a transaction a file. Raises BadInput for the first bad row unless `skip_bad`."""

    def add(
        store: Store, rows: Iterable[NuggetRow], info: ImportInfo, skipped: list[Any], bad: Bad
    ) -> ImportReport:
        adder = NuggetAdder(store, dataset, whose, info.files)
        return add_rows(store, adder, rows, info, skipped, bad, adder.keep)

    done = NuggetsImported()
    info = ImportInfo("nuggets", {}, dataset)
    for path, report in import_each(store, paths, info, skip_bad, files.read_nuggets, add):
        done.add(str(path), report)
    return done


def import_rows(
    store: Store,
    name: str,
    rows: Iterable[Mapping[str, Any]],
    whose: Assigner,
    dataset: str | None,
    skip_bad: bool,
) -> NuggetsImported:
    """Import rows in memory, as those of a file called `name`."""
    skipped, bad = skipping(skip_bad)
    numbered = ((number, dict(row)) for number, row in enumerate(rows, 1))
    adder = NuggetAdder(store, dataset, whose, {})
    records = files.of_records(Records(Path(name), "row", numbered), bad)
    done = NuggetsImported()
    info = ImportInfo("nuggets", {}, dataset)
    done.add(name, add_rows(store, adder, records, info, skipped, bad, adder.keep))
    return done
