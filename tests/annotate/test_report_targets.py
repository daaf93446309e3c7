"""Where a report goes: every target is looked at before anything is computed, and all are written or none."""

import os
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from annotate.cli import _targets
from tests.annotate.agreement_helpers import annotate
from tests.annotate.report_helpers import U, study

S, R = "support", "refute"


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = [U(S if i % 2 else R, {}, {"m/judge": S if i % 3 else R}) for i in range(12)]
    return study(tmp_path_factory.mktemp("study") / "study.db", made)


@pytest.fixture
def nothing_computed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The test fails when the report is computed all the same."""

    def computed(*_: object) -> None:
        raise AssertionError("computed before the targets were looked at")

    monkeypatch.setattr("annotate.report.build", computed)
    yield


@pytest.mark.usefixtures("nothing_computed")
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ("-o", "{t}/a.docx"),
            "the file extension must be one of .html, .md, .json, .csv, .tex, .htm, .markdown, .xml",
        ),
        (("-o", "{t}/a.html", "-o", "{t}/../{n}/a.html"), "the same file as -o {t}/a.html"),
        (("-o", "{t}/a.md", "-o", "{t}/link.md"), "-o {t}/link.md: the same file as -o {t}/a.md"),
        (("-o", "{db}"), "the file extension must be"),
    ],
)
def test_a_target_that_cannot_be_is_refused_before_anything_is_computed(
    db: Path, tmp_path: Path, args: tuple[str, ...], message: str
) -> None:
    (tmp_path / "link.md").symlink_to(tmp_path / "a.md")
    before = db.read_bytes()
    places = {"t": tmp_path, "n": tmp_path.name, "db": db}
    done = annotate("report", "-d", db, *(a.format(**places) for a in args), code=2)
    assert message.format(**places) in done.stderr and done.stderr.count("\n") == 1
    assert ".part" not in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["link.md"]
    assert db.read_bytes() == before


def test_a_pipe_is_written_into_and_stays_a_pipe(db: Path, tmp_path: Path) -> None:
    pipe, file = tmp_path / "pipe.md", tmp_path / "report.md"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text("utf-8")), daemon=True)
    reader.start()
    annotate("report", "-d", db, "-o", pipe, "-o", file)
    reader.join(30)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert read == [file.read_text("utf-8")] and read[0].startswith("# How far can this judge")


def test_a_write_that_fails_changes_no_file(db: Path, tmp_path: Path) -> None:
    # A socket in the file system exists, is no regular file, and cannot be opened for writing.
    old, dead = tmp_path / "old.html", tmp_path / "dead.md"
    old.write_text("as it was")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(dead))
        done = annotate("report", "-d", db, "-o", old, "-o", dead, code=1)
        assert stat.S_ISSOCK(dead.stat().st_mode)
    assert f"-o {dead}: " in done.stderr and "no file was changed" in done.stderr
    assert old.read_text() == "as it was"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["dead.md", "old.html"]


def test_a_link_is_followed_and_the_mode_of_a_file_is_kept(tmp_path: Path) -> None:
    target, link = tmp_path / "real.md", tmp_path / "link.md"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    _targets.write({link: "new\n", tmp_path / ("n" * 250 + ".md"): "long\n"})
    assert link.is_symlink() and target.read_text() == "new\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert not list(tmp_path.glob(".*"))


def test_the_formats_of_the_command_are_those_there_are_renderers_for() -> None:
    from annotate.report import FORMATS

    assert set(FORMATS) == set(_targets.FORMATS)
