"""The server, a proxy in front of it that fails on demand, and studies to push."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from annotate.cli import main
from tests.cli.helpers import Done
from tests.label_studio import server as servers
from tests.label_studio.proxy import Proxy
from tests.real import require
from tests.tui.studies import batch, build


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
    path = build(
        tmp_path / "s.db", items=6, texts={"tricky": "A \U0001f9ea trial <b>x</b>.\r\nIt says 42 & more."}
    )
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
