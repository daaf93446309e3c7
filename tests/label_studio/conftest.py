"""The server, a proxy in front of it that fails on demand, and studies to push."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from annotate.cli import main
from tests.cli.helpers import Done, checked
from tests.label_studio import server as servers
from tests.label_studio.proxy import Proxy
from tests.real import require
from tests.tui.studies import batch, build, labels, rows_of


@pytest.fixture(scope="session")
def label_studio() -> Iterator[servers.Server]:
    """One real server for all tests."""
    with servers.server(require("label-studio")) as result:
        yield result


@pytest.fixture
def proxy(label_studio: servers.Server) -> Iterator[Proxy]:
    """An address in front of the real server."""
    with Proxy(label_studio.url) as result:
        yield result


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Twelve units for alice and bob."""
    return twelve_units(tmp_path / "s.db")


def twelve_units(path: Path) -> Path:
    """A study with the batch `pilot` of twelve units for alice and bob."""
    build(path, items=6, texts={"tricky": "A \U0001f9ea trial <b>x</b>.\r\nIt says 42 & more."})
    batch(path, n=12, annotators=["alice", "bob"], name="pilot")
    return path


@pytest.fixture
def annotate(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """`annotate("push", ..., db=study, key=...)`: the command in this process; asserts its exit code."""

    def run(*words: str, db: Path, key: str | None = None, code: int | None = 0) -> Done:
        monkeypatch.delenv("LABEL_STUDIO_API_KEY", raising=False)
        if key is not None:
            monkeypatch.setenv("LABEL_STUDIO_API_KEY", key)
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([*words, "-d", str(db)])
        got = capsys.readouterr()
        done = Done(int(ended.value.code or 0), got.out, got.err)
        assert code in (None, done.code), (
            f"annotate {' '.join(words)}: exit {done.code}\n{done.out}\n{done.err}"
        )
        assert key is None or key not in got.out + got.err, "the key was printed"
        return done

    return run


@dataclass
class Pilot:
    """The batch `pilot` of a study, and the commands that send it to the server and fetch it, with alice's key."""

    server: servers.Server
    run: Callable[..., Done]
    path: Path

    def push(self, *words: str, url: str = "") -> dict[str, Any]:
        """The document of `annotate push`."""
        return self._document("push", *words, url=url)

    def pull(self, *words: str, url: str = "", code: int | None = 0) -> dict[str, Any]:
        """The document of `annotate pull`."""
        return self._document("pull", *words, url=url, code=code)

    def _document(self, command: str, *words: str, **how: Any) -> dict[str, Any]:
        result: dict[str, Any] = checked(self.done(command, "--json", *words, **how).out, command)
        return result

    def done(
        self, command: str, *words: str, url: str = "", key: str | None = "", code: int | None = 0
    ) -> Done:
        """`annotate push` or `pull`, as it ended."""
        key = self.server.keys["alice"] if key == "" else key
        return self.run(
            command, "pilot", "--url", url or self.server.url, *words, db=self.path, key=key, code=code
        )

    def client(self, person: str = "alice") -> Any:
        """The SDK as one person."""
        return self.server.client(person)

    def tasks(self, project: int) -> list[Any]:
        """Every task of a project with data, in the server's order."""
        return tasks_of(self.server, project)

    def say(self, task: Any, value: str, person: str = "alice") -> Any:
        """A person answers the question on a task; returns the annotation."""
        result = [choice("stance", value)]
        return self.client(person).annotations.create(id=task.id, result=result, lead_time=1.0)

    def stored(self, person: str = "alice") -> dict[str, str]:
        """Unit -> label in the study."""
        return {unit: value for (unit, _, _, _), value in labels(self.path, person).items()}

    def held(self, *words: str) -> list[dict[str, Any]]:
        """The records in quarantine."""
        rows: list[dict[str, Any]] = document(self.run("quarantine", "list", "--json", *words, db=self.path))[
            "rows"
        ]
        return rows

    def accept(self, record: dict[str, Any], *words: str) -> None:
        """A lead accepts a record of the quarantine."""
        self.run("quarantine", "accept", str(record["id"]), *words, db=self.path)

    def shown(self) -> dict[str, Any]:
        """The document of `annotate batches show`."""
        return document(self.run("batches", "show", "pilot", "--json", db=self.path))


@pytest.fixture
def pilot_of(label_studio: servers.Server, annotate: Callable[..., Done]) -> Callable[[Path], Pilot]:
    """`pilot_of(path)`: the batch of another study than `study`."""
    return partial(Pilot, label_studio, annotate)


@pytest.fixture
def pilot(pilot_of: Callable[[Path], Pilot], study: Path) -> Pilot:
    """The batch of `study`."""
    return pilot_of(study)


def choice(field: str, value: str, to: str = "passage") -> dict[str, Any]:
    """An answer as the page stores it."""
    return {"from_name": field, "to_name": to, "type": "choices", "value": {"choices": [value]}}


def evidence(text: str, start: int, end: int, said: str | None = None) -> dict[str, Any]:
    """Marked evidence as the page stores it."""
    value = {
        "start": start,
        "end": end,
        "text": text[start:end] if said is None else said,
        "labels": ["evidence"],
    }
    return {"from_name": "adjudge_evidence", "to_name": "passage", "type": "labels", "value": value}


def remark(text: str) -> dict[str, Any]:
    """A note as the page stores it."""
    return {"from_name": "adjudge_note", "to_name": "passage", "type": "textarea", "value": {"text": [text]}}


def tasks_of(server: servers.Server, project: int) -> list[Any]:
    """Every task of a project with data, in the server's order."""
    return list(server.client("alice").tasks.list(project=project, fields="all", page_size=200))


def document(done: Done) -> dict[str, Any]:
    """What --json printed."""
    result: dict[str, Any] = json.loads(done.out)
    return result


def dump(path: Path) -> list[tuple[Any, ...]]:
    """Every row of a study that labels can change."""
    tables = ("labels", "events", "sessions", "label_imports", "annotators", "assignments", "batches")
    return [row for table in tables for row in rows_of(path, f"SELECT * FROM {table}")]
