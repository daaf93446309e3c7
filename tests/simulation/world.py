"""One simulated study: its file, the people, what is under way, and how a step is run, killed and checked."""

from __future__ import annotations

import json
import math
import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from click.testing import CliRunner

from tests.simulation.oracle import Entry, Oracle

PEOPLE = ("ann", "bob", "cat")
LEAD = "dora"
KILLED = 9
TASK = """---
title: A question
unit: passage
inputs: [claim, passage]
questions:
  - field: {field}
    labels: [{{value: {a}, key: a}}, {{value: {b}, key: b}}, {{value: {c}, key: c}}]
derive:
  grade: {{from: {field}, level: ordinal, order: ["0", "1"], table: {{{a}: "1", {b}: "0"}}}}
guidelines: {guidelines}
---
Judge.
<!-- unit -->
{{{{ claim }}}}
{{{{ passage }}}}
{{{{ answer_cue }}}}
"""
FIELDS = {"side": ("side", ("support", "refute", "neutral")), "depth": ("depth", ("deep", "flat", "none"))}
"""Task -> its field and labels; both tasks derive `grade`, 1 from the first label and 0 from the second."""
DERIVE = {name: ("grade", {labels[0]: "1", labels[1]: "0"}) for name, labels in FIELDS.values()}
WAYS = ("votes", "import", "sheet", "studio", "screen", "pack", "adopted", "merged")
"""Ways in which a label of a person comes into a study."""


class Wrong(AssertionError):
    """The study is not what was meant."""


@dataclass
class Batch:
    """A batch as the simulation knows it."""

    name: str
    task: str
    reveal: bool
    version: int = 1
    guidelines: str = ""
    """The newest text of the batch's guidelines."""
    closed: bool = False

    @property
    def field(self) -> str:
        """The question of the task."""
        return FIELDS[self.task][0]

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the task."""
        return FIELDS[self.task][1]


@dataclass
class Pack:
    """A packed batch that is out, with what was done in it."""

    path: Path
    batch: str
    person: str
    tick: int
    """When the pack was made."""
    entries: list[Entry] = field(default_factory=list)


class World:
    """A study under simulation; `steps` in `tests.simulation.steps` act on it."""

    def __init__(self, folder: Path, counts: Counter[str], pairs: Counter[tuple[str, str]]) -> None:
        self.folder, self.counts, self.pairs = folder, counts, pairs
        self.db = folder / "study.db"
        self.oracle = Oracle(DERIVE)
        self.batches: dict[str, Batch] = {}
        self.packs: list[Pack] = []
        self.ways: dict[tuple[str, str], set[str]] = {}
        self.items = 0
        self.files: list[tuple[str, list[tuple[str, str, str]], Path, list[str]]] = []
        """Files that were imported without a batch: (field, rows, file, options)."""
        self.versions: dict[str, list[str]] = {name: [] for name in FIELDS}
        """The newest guidelines of each version of a task."""
        self.records: dict[int, int] = {}
        """The tick of each record in quarantine."""
        self.serial = 0
        self.log: list[str] = []
        self._reader: tuple[Path, sqlite3.Connection] | None = None
        (folder / "prompts").mkdir(exist_ok=True)
        for name in FIELDS:
            self.add_version(name)

    def add_version(self, task: str) -> None:
        """Write the next version of a task, which differs in its guidelines."""
        asked, (a, b, c) = FIELDS[task]
        number = len(self.versions[task]) + 1
        text = TASK.format(field=asked, a=a, b=b, c=c, guidelines=f"Read {number} times.")
        self.path(task, number).write_text(text)
        self.versions[task].append(f"Read {number} times.")

    def path(self, task: str, version: int) -> Path:
        """The file of a version of a task."""
        return self.folder / "prompts" / f"{task}.v{version}.md"

    def check_guidelines(self, batch: Batch, person: str) -> None:
        """Raise Wrong unless each label from a screen is stored with the guidelines that the screen showed."""
        query = (
            "SELECT p.text, count(*) FROM events AS e JOIN sessions AS s USING (session_id) LEFT JOIN prompts AS p "
            "ON p.sha256 = s.guidelines WHERE e.batch = ? AND e.annotator_id = ? AND e.kind = 'label' "
            "AND s.version NOT GLOB '* *' GROUP BY 1"
        )
        stored = {str(text).strip(): n for text, n in self.rows(query, batch.name, person)}
        meant = Counter(e.guidelines for e in self.oracle.logs[batch.name, person] if e.guidelines)
        if stored != meant:
            raise Wrong(f"guidelines of the labels of {person} in {batch.name}: {stored}, meant {meant}")

    def number(self) -> int:
        """A new number, for names of files, batches and imports."""
        self.serial += 1
        return self.serial

    def command(
        self, program: str, *args: object, code: int | tuple[int, ...] = 0, db: Path | None = None
    ) -> Any:
        """Run `judge` or `annotate` in this process on the study; raises Wrong for another exit code."""
        from annotate.cli import main as annotate
        from judge.cli import main as judge

        words = [str(a) for a in args] + ["-d", str(db or self.db)]
        done = CliRunner().invoke(judge if program == "judge" else annotate, words)
        self.log.append(f"{program} {' '.join(words)}  # exit {done.exit_code}")
        wanted = (code,) if isinstance(code, int) else code
        # A step may be refused. With an option that its command lacks, it would always be, and test nothing.
        strange = any(text in done.stderr for text in ("unexpected", "Usage: ", " was removed. "))
        if done.exit_code not in wanted or strange:
            raise Wrong(
                f"{self.log[-1]}, expected {wanted}\n{done.stdout}\n{done.stderr}\n{done.exception!r}"
            )
        return done

    def annotate(self, *args: object, code: int | tuple[int, ...] = 0) -> Any:
        """Run `annotate`."""
        return self.command("annotate", *args, code=code)

    def judge(self, *args: object, code: int | tuple[int, ...] = 0) -> Any:
        """Run `judge`."""
        return self.command("judge", *args, code=code)

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Rows of the study, read by another connection; none before the first import."""
        if not self.items:
            return []
        if self._reader is None or self._reader[0] != self.db:
            self.stop_reading()
            self._reader = self.db, sqlite3.connect(self.db)
        return self._reader[1].execute(query, values).fetchall()

    def stop_reading(self) -> None:
        """Close the connection that `rows` keeps open: a child process must not inherit it."""
        if self._reader is not None:
            self._reader[1].close()
            self._reader = None

    def came(self, way: str, person: str, unit: str) -> None:
        """Note that a label came in by a way, and beside which others on the same person and unit."""
        known = self.ways.setdefault((person, unit), set())
        for other in known | {way}:
            self.pairs[min(way, other), max(way, other)] += way != other or way in known
        known.add(way)

    @contextmanager
    def desk(self, batch: str, person: str, db: Path | None = None, **more: Any) -> Iterator[Any]:
        """A person (or the lead) sits down."""
        from annotate.sitting.desk import Desk
        from annotate.store import open_study

        with open_study(db or self.db) as store, Desk.open(store, batch, person, **more) as desk:
            yield desk

    def killed(self, rng: Random, work: Callable[[], object]) -> bool:
        """Run `work` in a process that is killed before or after one of its commits; returns whether it was."""
        at, after = rng.randrange(1, 8), rng.random() < 0.5
        self.stop_reading()
        child = os.fork()
        if child == 0:
            _kill_at(at, after)
            try:
                work()
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status) == KILLED

    def check(self) -> None:
        """Raise Wrong unless every label and every conflict is as meant."""
        query = (
            "SELECT annotator_id, field, unit_id, repeat, value FROM labels JOIN annotators USING (annotator_id) "
            "WHERE kind IN ('human', 'adjudicated') AND layer NOT IN ('revised', 'old_text')"
        )
        stored = {tuple(row[:4]): row[4] for row in self.rows(query)}
        meant = self.oracle.labels()
        if stored != meant:
            differ = sorted(set(stored.items()) ^ set(meant.items()))[:6]
            told = [
                (k, v, "stored" if stored.get(k) == v else "meant", self.oracle.said().get(k))
                for k, v in differ
            ]
            raise Wrong(f"labels differ: {told}")
        if len(self.rows(query)) != len(stored):
            raise Wrong("one label of a person is stored twice")
        conflicts = {
            tuple(r) for r in self.rows("SELECT annotator_id, field, unit_id, repeat FROM label_conflicts")
        }
        if conflicts != self.oracle.conflicts():
            raise Wrong(f"conflicts differ: {sorted(conflicts ^ self.oracle.conflicts())[:6]}")

    def verify(self) -> None:
        """Raise Wrong unless `annotate verify` finds nothing, and `annotate conflicts` what is in conflict."""
        self.annotate("verify")
        listed = json.loads(self.annotate("conflicts", "list", "--json").stdout)["rows"]
        keys = {(row["annotator"], row["field"], row["unit"], row["repeat"]) for row in listed}
        if not keys <= self.oracle.conflicts() or bool(keys) != bool(self.oracle.conflicts()):
            raise Wrong(f"annotate conflicts lists {keys}, meant {self.oracle.conflicts()}")

    def numbers(self) -> None:
        """Raise Wrong unless command line, JSON, Python and a recomputation give the same number."""
        import krippendorff
        import pandas as pd

        import adjudge

        with closing(sqlite3.connect(self.db)) as conn:
            query = (
                "SELECT l.unit_id, l.annotator_id, l.value FROM labels AS l JOIN annotators AS a USING (annotator_id) "
                "WHERE a.kind = 'human' AND l.field = 'side' AND l.layer = 'first' AND l.repeat = 0"
            )
            table = pd.read_sql(query, conn)
        wide = table.pivot(index="annotator_id", columns="unit_id", values="value")
        if len(wide) < 2 or table["value"].nunique() < 2:
            return
        codes = wide.apply(lambda row: row.map(FIELDS["side"][1].index, na_action="ignore"))
        if (codes.notna().sum() > 1).sum() < 2:
            return
        try:
            expected = krippendorff.alpha(codes.to_numpy(dtype=float), level_of_measurement="nominal")
        except ValueError:
            return  # the labels are all the same one
        words = ("agreement", "--field", "side", "--measure", "krippendorff_alpha", "--interval", "none")
        document = json.loads(self.annotate(*words, "--json").stdout)
        found = [
            m
            for m in document["measures"]
            if m["measure"] == "krippendorff_alpha" and sorted(m["annotators"] or []) == sorted(wide.index)
        ]
        printed = self.annotate(*words).stdout
        with adjudge.Study(self.db) as study:
            frame = study.agreement(field="side", measures=["krippendorff_alpha"], interval=None)
        values = [m["value"] for m in found if m["value"] is not None]
        if math.isnan(expected) and values:
            raise Wrong(f"alpha of people is {values} in JSON, and undefined by the rows")
        if values and not any(abs(v - expected) < 1e-9 for v in values):
            raise Wrong(f"alpha of people is {values} in JSON, {expected} from the rows")
        if values and f"{values[0]:.3f}" not in printed:
            raise Wrong(f"{values[0]:.3f} is not printed:\n{printed}")
        if values and not any(abs(v - values[0]) < 1e-9 for v in frame["value"].dropna()):
            raise Wrong(f"Python gives {list(frame['value'])}, JSON {values}")

    def imported(self, done: Any) -> dict[str, Any]:
        """The document of an import, whose five counts add up to the rows that were read; {} if it was refused."""
        if not done.stdout:
            return {}
        document: dict[str, Any] = json.loads(done.stdout)
        rows = dict(document["rows"])
        read, _ = rows.pop("read"), rows.pop("reasons")
        if sum(rows.values()) != read:
            raise Wrong(f"the counts of an import do not add up to the rows: {document['rows']}")
        return document

    def held(self) -> list[tuple[int, str, str, str, str, str]]:
        """The open records of the quarantine: (number, batch, annotator, unit, code, label)."""
        query = (
            "SELECT quarantine_id, batch, annotator, unit, code, (SELECT j.value FROM json_each(response, '$.answers') AS j) "
            "FROM quarantine WHERE status = 'open' AND format IN ('csv', 'label-studio') ORDER BY 1"
        )
        return self.rows(query)

    def records_of(self, batch: str) -> list[tuple[str, str, str, str]]:
        """The records of sheets with a doubtful text: (annotator, unit, label, status)."""
        query = (
            "SELECT annotator, unit, (SELECT j.value FROM json_each(response, '$.answers') AS j), status FROM quarantine "
            "WHERE batch = ? AND format = 'csv' AND code = 'text'"
        )
        return self.rows(query, batch)

    def copy(self, name: str) -> Path:
        """The study as it is now, in another file."""
        with closing(sqlite3.connect(self.db)) as conn:
            conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return Path(shutil.copy(self.db, self.folder / name))


def _kill_at(number: int, after: bool) -> None:
    """From now on this process ends at its commit `number`, before it or with the first statement after it."""
    connect, seen = sqlite3.connect, Counter[str]()

    def traced(statement: str) -> None:
        if seen["commits"] == number:
            os._exit(KILLED)
        if statement.strip().upper().startswith("COMMIT"):
            seen["commits"] += 1
            if seen["commits"] == number and not after:
                os._exit(KILLED)

    def connected(*args: Any, **more: Any) -> sqlite3.Connection:
        conn = connect(*args, **more)
        conn.set_trace_callback(traced)
        return conn

    sqlite3.connect = connected  # type: ignore[assignment]
