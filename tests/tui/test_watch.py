"""A lead watches a batch: live numbers beside people at work, nothing written, no label told."""

import asyncio
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from annotate.leading.lead import close_batch, stop_person
from annotate.leading.watch import URGENT, look, sections, title
from annotate.sitting.desk import Desk
from annotate.sitting.unit import TimeSpent
from annotate.store import open_study
from annotate.tui.watch import WatchApp
from judge.document.cells import format_duration
from judge.document.terminal import section_lines
from tests.annotate.agreement_helpers import annotate
from tests.forks import together
from tests.tui.line import Line
from tests.tui.screens import rows
from tests.tui.studies import batch, build, drawn

FLAG = "[bold]who[/] wrote \x1b[31mthis?"


def work(
    path: Path, person: str, labels: dict[int, str], ms: int = 4000, flags: tuple[int, ...] = ()
) -> None:
    """Label positions, each after so many milliseconds on the screen."""
    with open_study(path) as store, Desk.open(store, "pilot", person) as desk:
        for position, value in labels.items():
            desk.label(position, "stance", value, TimeSpent(ms, 0, ms))
        for position in flags:
            desk.flag(position, FLAG)


def text(pilot: Pilot[None], name: str) -> str:
    return str(pilot.app.screen.query_one(f"#{name}", Static).content)


async def until(pilot: Pilot[None], true: Callable[[], bool], seconds: float = 30) -> None:
    """Wait for something, however slow the machine is."""
    for _ in range(int(seconds / 0.05)):
        if true():
            return
        await asyncio.sleep(0.05)
        await pilot.pause()
    raise AssertionError(text(pilot, "people-text"))


def dump(path: Path) -> list[str]:
    conn = sqlite3.connect(path)
    result = list(conn.iterdump())
    conn.close()
    return result


@pytest.mark.parametrize("size", [(80, 24), (160, 40)])
async def test_the_screen_follows_the_people(tmp_path: Path, size: tuple[int, int]) -> None:
    path = drawn(tmp_path, n=6, annotators=["alice", "bob"])
    app = WatchApp(path, "pilot", every=0.05)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: "0/12 done (0 %)" in text(pilot, "top"))
        assert "no unit has the labels of two people yet" in text(pilot, "people-text")
        work(path, "alice", {1: "support", 2: "refute"}, flags=(2,))
        beside = size[0] >= 130
        flagged = "flags-text" if beside else "people-text"
        await until(pilot, lambda: "Flags (1)" in text(pilot, flagged))
        assert "2/12 done (16 %)   1 at work" in text(pilot, "top")
        shown = text(pilot, "people-text")
        # alice: 2 of 6 at 4 s each: 900 an hour, and 4 open ones take 16 s.
        assert [line.split()[:5] for line in shown.splitlines() if line.startswith("  alice  █")] == [
            ["alice", "███░░░░░░░", "2/6", "900", "16"]
        ]
        flags = text(pilot, flagged)
        assert "[bold]who[/] wrote \\x1b[31mthis?" in flags, "shown as it was written, obeyed by nothing"
        assert ("Flags" in shown) is not beside
        assert pilot.app.screen.query_one("#flags").display is beside
        assert "support" not in shown + flags, "whoever watches may label in it"
        work(path, "bob", {1: "support"})
        await until(pilot, lambda: "3/12" in text(pilot, "top"))
        again = dump(path)
        await pilot.press("down", "pagedown", "end", "x", "s")
        await pilot.pause(0.2)
        assert dump(path) == again
        await pilot.press("q")
    assert app.return_code == 0


async def test_everything_can_be_scrolled_to(tmp_path: Path) -> None:
    path = build(tmp_path / "s.db", items=10)
    people = [f"person{n:02}" for n in range(12)]
    batch(path, n=20, annotators=people)
    for person in people[:3]:
        work(path, person, {1: "support"}, flags=tuple(range(1, 9)))
    async with WatchApp(path, "pilot", every=0.05).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "Flags (24)" in text(pilot, "people-text"))
        pane = pilot.app.screen.query_one("#people")
        await until(pilot, lambda: pane.max_scroll_y > 0)
        await pilot.press("end")
        await until(pilot, lambda: pane.scroll_y == pane.max_scroll_y)
        assert any("person00, d:" in row for row in rows(pilot)[1:-1])


async def test_a_study_that_goes_away_is_said_and_what_was_read_stays(tmp_path: Path) -> None:
    path = drawn(tmp_path, n=6, annotators=["alice"])
    async with WatchApp(path, "other", every=0.05).run_test() as pilot:
        await until(pilot, lambda: "no batch 'other'" in text(pilot, "keys"))
        await pilot.press("escape")


def test_what_is_to_be_looked_at_comes_first(tmp_path: Path) -> None:
    path = drawn(tmp_path, items=10, n=10, annotators=["alice", "bob"], training=2, attention=0.2)
    # Training comes first; gold alternates, so one label for all units is wrong somewhere.
    work(path, "alice", dict.fromkeys(range(1, 15), "support"), ms=10)
    work(path, "bob", dict.fromkeys(range(1, 15), "refute"))
    with open_study(path) as store:
        stop_person(store, "pilot", "bob", "left the project")
        document = look(store, "pilot")
    first = sections(document, datetime.now(UTC))[0]
    people = {p["annotator"]: p for p in document["annotators"]}
    assert first.title == "To look at" and first.key == URGENT
    message = "\n".join(section_lines(first))
    assert "bob is stopped: left the project" in message
    assert "alice labelled 14 of 14 units faster than they could be read" in message
    missed = people["alice"]["attention_answered"] - people["alice"]["attention_right"]
    assert (
        f"alice missed {missed} of {people['alice']['attention_answered']} attention checks" in message
    ) is bool(missed)
    failed = [who for who, p in people.items() if p["training_passed"] is False]
    assert failed and all(f"{who} failed the training" in message for who in failed)


def test_without_a_terminal_it_prints_how_it_stands(tmp_path: Path) -> None:
    path = drawn(tmp_path, n=6, annotators=["alice", "bob"])
    work(path, "alice", {1: "support", 2: "refute"}, flags=(1,))
    before = dump(path)
    for more in ([], ["--once"]):
        message = annotate("watch", "pilot", *more, "-d", path).stdout
        assert message.splitlines()[0].startswith("pilot   2/12 done (16 %)   1 at work   at least 16 s left")
        assert (
            "Flags (1)" in message
            and "[bold]who[/] wrote \\x1b[31mthis?" in message
            and "\x1b" not in message
        )
    assert dump(path) == before
    with open_study(path) as store:
        close_batch(store, "pilot")
        assert "closed 2" in title(look(store, "pilot"), datetime.now(UTC))
    assert "no batch 'nothing'" in annotate("watch", "nothing", "-d", path, code=2).stderr


@together
def test_a_real_terminal_of_80_columns(tmp_path: Path) -> None:
    path = drawn(tmp_path, n=6, annotators=["alice", "bob"])
    line = Line("watch", "pilot", "-d", str(path))
    try:
        line.until("0/12 done")
        work(path, "alice", {1: "support"})
        line.until("1/12 done")
        line.burst(["q"])
        assert line.ended() == 0
    finally:
        line.close()


def test_lengths_of_time() -> None:
    assert [format_duration(s) for s in (-1, 0, 59, 60, 5399, 5400, 172800)] == [
        "0 s", "0 s", "59 s", "1 min", "90 min", "1.5 h", "2 d",
    ]  # fmt: skip


async def test_a_study_that_is_moved_away_is_said_and_found_again(tmp_path: Path) -> None:
    """An open file can be read after it has gone: old numbers would pass for present ones."""
    path = drawn(tmp_path, n=6, annotators=["alice"])
    async with WatchApp(path, "pilot", every=0.05).run_test() as pilot:
        await until(pilot, lambda: "alice" in text(pilot, "people-text"))
        path.rename(tmp_path / "away.db")
        await until(pilot, lambda: "cannot be read" in text(pilot, "keys"))
        assert "alice" in text(pilot, "people-text")
        (tmp_path / "away.db").rename(path)
        await until(pilot, lambda: "nothing is written" in text(pilot, "keys"))
