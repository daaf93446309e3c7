"""Import nuggets and their assignments to answers, for `judge nuggets import` and Python."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.asking.systems import FilesImported
from judge.errors import UsageError
from judge.importers import nuggets as files
from judge.importers.base import Bad
from judge.importers.importing import import_each, skipping
from judge.importers.records import Records
from judge.store import Store
from judge.store.imports import ImportInfo, ImportReport, add_rows
from judge.store.nuggets import Assigner, NuggetAdder, NuggetRow


def assigner(judge: str | None, annotator: str | None, condition: str | None) -> Assigner:
    """Return the source of the assignments. Raises UsageError if both a judge and an annotator are given."""
    if judge and annotator:
        raise UsageError(
            "use either --judge or --annotator, because the assignments in a file come from one source"
        )
    return Assigner(judge, annotator, condition)


def import_files(
    store: Store, paths: Sequence[Path], whose: Assigner, dataset: str | None, skip_bad: bool
) -> FilesImported:
    """Import nuggets and assignments, one transaction per file.

    Invalid rows are skipped if `skip_bad` is true. Otherwise, they raise BadInput.
    """

    def add(
        store: Store, rows: Iterable[NuggetRow], info: ImportInfo, skipped: list[Any], bad: Bad
    ) -> ImportReport:
        # An adder records the hash of its file, so each file needs its own.
        adder = NuggetAdder(store, dataset, whose, info.files)
        return add_rows(store, adder, rows, info, skipped, bad, adder.keep)

    info = ImportInfo("nuggets", {}, dataset)
    return FilesImported([*import_each(store, paths, info, skip_bad, files.read_nuggets, add)])


def import_rows(
    store: Store,
    name: str,
    rows: Iterable[Mapping[str, Any]],
    whose: Assigner,
    dataset: str | None,
    skip_bad: bool,
) -> FilesImported:
    """Import rows in memory, as if they came from a file called `name`."""
    path = Path(name)
    skipped, bad = skipping(skip_bad)
    numbered = ((number, dict(row)) for number, row in enumerate(rows, 1))
    adder = NuggetAdder(store, dataset, whose, {})
    records = files.read_records(Records(path, "row", numbered), bad)
    info = ImportInfo("nuggets", {}, dataset)
    return FilesImported([(path, add_rows(store, adder, records, info, skipped, bad, adder.keep))])
