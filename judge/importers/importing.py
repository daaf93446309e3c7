"""From paths to a stored import: one transaction per file, or per set of files that belong together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from judge.errors import BadInput, UsageError
from judge.files import file_sha
from judge.importers.base import Bad, Importer, Options
from judge.store import Store
from judge.store.imports import ImportInfo, ImportReport
from judge.store.items import add_items

T = TypeVar("T")


def import_files(
    db: Path, name: str, importer: Importer, paths: Sequence[Path], options: Options, skip_bad: bool
) -> list[tuple[list[str], ImportReport]]:
    """Import the paths and report each transaction with its files.

    Raises UsageError for a path that is no file, BadInput for the first bad row unless `skip_bad`;
    the file it stands in then leaves nothing in the study.
    """
    for path in paths:
        _check_file(path)
    together = bool(getattr(importer, "TOGETHER", False))
    groups = [list(paths)] if together else [[p] for p in paths]
    reports = []
    with Store.open(db) as store:
        for group in groups:
            skipped, bad = skipping(skip_bad)
            info = ImportInfo(
                name, {str(p): file_sha(p) for p in group}, options.dataset, options.maps, options.label_maps
            )
            rows = importer.read(group, options, bad)
            reports.append(([str(p) for p in group], add_items(store, rows, info, skipped, bad)))
    return reports


def import_each(
    store: Store,
    paths: Sequence[Path],
    info: ImportInfo,
    skip_bad: bool,
    read: Callable[[Path, Bad], Iterator[T]],
    add: Callable[[Store, Iterable[T], ImportInfo, list[BadInput], Bad], ImportReport],
) -> Iterator[tuple[Path, ImportReport]]:
    """Import files of answers or rankings: what `read` yields of each, by `add`, in a transaction a file.

    Raises UsageError for a path that is no file, BadInput for the first bad row unless `skip_bad`.
    """
    for path in paths:
        _check_file(path)
        skipped, bad = skipping(skip_bad)
        own = replace(info, files={str(path): file_sha(path)})
        yield path, add(store, read(path, bad), own, skipped, bad)


def skipping(skip_bad: bool) -> tuple[list[BadInput], Bad]:
    """The bad rows that are skipped, and what each is given to: it raises the first one unless `skip_bad`."""
    skipped: list[BadInput] = []

    def bad(error: BadInput) -> None:
        if not skip_bad:
            raise error
        skipped.append(error)

    return skipped, bad


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise UsageError(f"{path}: {'a folder: name its files' if path.is_dir() else 'no such file'}")
