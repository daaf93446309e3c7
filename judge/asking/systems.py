"""Import outputs of systems under test, for `judge systems import`, `Study.answers` and `Study.rankings`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.commands import command
from judge.errors import BadInput, UsageError
from judge.store import Store

if TYPE_CHECKING:
    from judge.importers.base import Bad, Options
    from judge.store.imports import ImportReport
    from judge.types import AnswerRow

COUNTS = ("answers", "empty", "sentences", "citations", "claims", "labels")
RANKING_COUNTS = ("lists", "entries")
STAGES = ("retrieve", "rerank", "top-k")
"""The stages of a retrieval pipeline that can produce a ranking."""
_TREC = re.compile(r"\S+\s+Q0\s+\S+\s+\S+\s+\S+\s+\S+\s*$")


@dataclass(frozen=True, slots=True)
class Outputs:
    """The user's description of the imported files.

    `system`, `condition` and `paper` describe answers and verdicts, and `stage` describes rankings.
    """

    system: str | None = None
    condition: str | None = None
    paper: str | None = None
    stage: str | None = None
    name: str | None = None
    skip_bad: bool = False


@dataclass(slots=True)
class FilesImported:
    """The imported files, with the number of new rows from each.

    `lacks` contains sentences that name the data that the paper's protocol requires but the study does not have yet.
    """

    reports: list[tuple[Path, ImportReport]] = field(default_factory=list)
    lacks: list[str] = field(default_factory=list)

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per file: its path, the number of new rows of each kind, and the number of skipped rows."""
        return [
            {"file": str(path), **report.counts, "skipped": len(report.skipped)}
            for path, report in self.reports
        ]

    @property
    def skipped(self) -> list[str]:
        """The skipped rows, each with its file, line and reason."""
        return [str(error) for _, report in self.reports for error in report.skipped]


def is_ranking(path: Path) -> bool:
    """Return whether a file is a TREC run: its first line has six columns, and the second column is Q0."""
    from judge.files import open_input

    if not path.is_file():
        # The importer, which is chosen by the file's extension, reports a missing file.
        return path.suffix in (".run", ".trec")
    with open_input(path) as handle:
        first = next((line for line in handle if line.strip()), b"")
    return _TREC.match(first.decode("utf-8", "replace")) is not None


def import_files(store: Store, paths: Sequence[Path], options: Options, outputs: Outputs) -> FilesImported:
    """Import files of answers, verdicts and rankings, one transaction per file.

    Raises UsageError for invalid options. Raises BadInput for an invalid file, with the line in the message.
    """
    from judge.importers import answers
    from judge.importers.importing import import_each

    done = FilesImported()
    # Only rankings have a stage.
    rankings = [path for path in paths if outputs.stage is not None or is_ranking(path)]
    if options.correct is not None and len(rankings) < len(paths):
        raise UsageError("--correct replaces only rankings; import a changed answer under another condition")
    others = [path for path in paths if path not in rankings]
    check_rankings(rankings, outputs)
    done.reports += import_each(
        store,
        others,
        _info(options, outputs),
        outputs.skip_bad,
        lambda path, bad: answers.read_answers(path, options, outputs.system, outputs.condition, bad),
        partial(_add, paper=outputs.paper),
    )
    done.reports += _import_rankings(store, rankings, options, outputs)
    _note_missing(store, done)
    return done


def import_rows(
    store: Store,
    name: str,
    rows: Iterable[Mapping[str, Any]],
    options: Options,
    outputs: Outputs,
    *,
    cells: bool,
) -> FilesImported:
    """Import answers and verdicts that are in memory, as if they came from a file.

    `cells` is True if the records are rows of a table. Raises the same errors as `import_files`.
    """
    from judge.importers import answers
    from judge.importers.importing import skipping
    from judge.importers.records import Records

    path = Path(name)
    skipped, bad = skipping(outputs.skip_bad)
    numbered = ((number, dict(row)) for number, row in enumerate(rows, 1))
    records = answers.read_records(
        Records(path, "row", numbered), options, outputs.system, outputs.condition, cells, bad
    )
    done = FilesImported([(path, _add(store, records, _info(options, outputs), skipped, bad, outputs.paper))])
    _note_missing(store, done)
    return done


def check_rankings(paths: Sequence[Path], outputs: Outputs) -> None:
    """Raise UsageError if the stage of rankings is missing. The message suggests the most likely stage."""
    # A TREC file does not contain its stage, and retrieval measures of reranked lists would be wrong without any warning.
    if not paths or outputs.stage is not None:
        return
    names = " ".join(path.name.lower() for path in paths)
    likely = "rerank" if "rerank" in names else "top-k" if re.search(r"top[-_]?(k|\d)", names) else "retrieve"
    system = ["--system", outputs.system] if outputs.system else []
    raise UsageError(
        "specify the stage of these rankings with --stage: retrieve (as retrieved), rerank (reordered) or top-k (as used); for "
        f"example: {command('judge systems import', '--stage', likely, *paths, *system)}"
    )


def _info(options: Options, outputs: Outputs) -> Any:
    from judge.store.imports import ImportInfo

    given = {"--system": outputs.system, "--condition": outputs.condition}
    # The log of imports shows the values that the options added to every row.
    constants = {name: value for name, value in given.items() if value}
    return ImportInfo("answers", {}, options.dataset, {**options.maps, **constants}, options.label_maps)


def _add(
    store: Store,
    rows: Iterable[AnswerRow],
    info: Any,
    skipped: list[BadInput],
    bad: Bad,
    paper: str | None,
) -> ImportReport:
    """Store outputs. Answers become answers of the system, and verdicts on single documents become runs of the system."""
    from judge.importers.verdicts import Verdicts
    from judge.store.answers import add_answers

    verdicts = Verdicts(store, info.dataset, paper)
    report = add_answers(
        store, verdicts.apart(rows, bad), info, skipped, bad, lambda conn: verdicts.keep(conn, info.files)
    )
    if verdicts.counts:
        report.counts.update({"verdicts": 0, **verdicts.counts})
    report.datasets = sorted({*report.datasets, *verdicts.datasets})
    return report


def _import_rankings(
    store: Store, paths: Sequence[Path], options: Options, outputs: Outputs
) -> Iterator[tuple[Path, ImportReport]]:
    from judge.importers import rankings
    from judge.importers.importing import import_each
    from judge.store.imports import ImportInfo
    from judge.store.rankings import Ids, add_rankings

    if not paths:
        return
    # A ranking with the name of a system belongs to that system.
    name, stage = outputs.name or outputs.system, str(outputs.stage)
    info = ImportInfo("rankings", {}, options.dataset, {"stage": stage, **({"name": name} if name else {})})
    ids, add = Ids(store, options.dataset), partial(add_rankings, correct=options.correct)
    read_rows = partial(rankings.read_rankings, stage=stage, name=name, ids=ids, note=options.note)
    yield from import_each(
        store, paths, info, outputs.skip_bad, lambda path, bad: read_rows(path, bad=bad), add
    )


def _note_missing(store: Store, done: FilesImported) -> None:
    from judge.importers.needs import lacking

    done.lacks = lacking(store, {name for _, report in done.reports for name in report.datasets})
