"""What a log gets of a run: whole lines, one every 30 s."""

import io
from pathlib import Path

import pytest

from judge.cli import progress
from judge.runner import Live
from tests.runner.helpers import Fake, make_study, numbered, plan, run


async def test_a_line_every_30_s_where_stderr_is_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = make_study(tmp_path / "s.db", numbered(3))
    seen: list[Live] = []
    await run(db, Fake(), plan(), watch=seen.append)
    live = seen[-1]
    # A whole number, because a sum of seconds would otherwise round to just below 30.
    now = [float(round(live.started) + 1)]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    log = io.StringIO()
    show = progress.Progress(log)
    for _ in range(91):  # a call a second, from 0 to 90
        show(live)
        now[0] += 1
    show.end()
    lines = log.getvalue().splitlines(keepends=True)
    assert [line.split(" ")[0] for line in lines] == ["3/3"] * 3, "at 30, 60 and 90"
    assert all(line.endswith("\n") and "\r" not in line and "\x1b" not in line for line in lines)
