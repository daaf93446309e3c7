"""From paths to a stored import: one transaction per file, or per set of files that belong together."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from judge.errors import BadInput, UsageError
from judge.importers.base import Importer, Options
from judge.store import Store
from judge.store.items import ImportInfo, ImportReport, add_items


def import_files(
    db: Path, name: str, importer: Importer, paths: Sequence[Path], options: Options, skip_bad: bool
) -> list[tuple[list[str], ImportReport]]:
    """Import the paths and report each transaction with its files.

    Raises UsageError for a path that is no file, BadInput for the first bad row unless `skip_bad`;
    the file it stands in then leaves nothing in the study.
    """
    for path in paths:
        if not path.is_file():
            raise UsageError(f"{path}: no such file")
    together = bool(getattr(importer, "TOGETHER", False))
    groups = [list(paths)] if together else [[p] for p in paths]
    reports = []
    with Store.open(db) as store:
        for group in groups:
            skipped: list[BadInput] = []

            def bad(error: BadInput, skipped: list[BadInput] = skipped) -> None:
                if not skip_bad:
                    raise error
                skipped.append(error)

            info = ImportInfo(
                name, {str(p): _sha256(p) for p in group}, options.dataset, options.maps, options.label_maps
            )
            rows = importer.read(group, options, bad)
            reports.append(([str(p) for p in group], add_items(store, rows, info, skipped, bad)))
    return reports


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
