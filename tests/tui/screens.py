"""Run the real app on a small study and press keys."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.widgets import Static

from annotate.leading.adjudication import fill_queue
from annotate.sitting.blind import BUSY_MS
from annotate.sitting.desk import Desk
from annotate.store import open_study
from annotate.tui.app import AnnotateApp
from annotate.tui.label import LabelScreen


@asynccontextmanager
async def sitting(
    path: Path,
    person: str = "alice",
    *,
    size: tuple[int, int] = (80, 24),
    adjudicate: bool = False,
    keymap: dict[str, str] | None = None,
    busy_ms: int = BUSY_MS,
) -> AsyncIterator[Pilot[None]]:
    """The app for one annotator."""
    with open_study(path) as store:
        if adjudicate:
            fill_queue(store, "pilot", person)
        with Desk.open(store, "pilot", person, adjudicate=adjudicate, busy_ms=busy_ms) as desk:
            app = AnnotateApp(desk, keymap=keymap)
            async with app.run_test(size=size) as pilot:
                await pilot.pause()
                yield pilot


async def press(pilot: Pilot[None], *keys: str) -> None:
    """Press keys one after the other, waiting for each."""
    for key in keys:
        await pilot.press(key)
        await pilot.pause()


async def type_in(pilot: Pilot[None], text: str) -> None:
    """Type text into the input that has the focus, then Enter."""
    await pilot.press(*text)
    await pilot.press("enter")
    await pilot.pause()
    await pilot.pause()


def screen(pilot: Pilot[Any]) -> LabelScreen:
    """The labelling screen."""
    app = pilot.app
    assert isinstance(app, AnnotateApp)
    return app.labelling


def text_of(pilot: Pilot[Any], name: str) -> str:
    """What a part of the labelling screen says."""
    result: Static = screen(pilot).query_one(f"#{name}", Static)
    return str(result.content)


def rows(pilot: Pilot[None]) -> list[str]:
    """The rows of the terminal."""
    return ["".join(s.text for s in strip) for strip in pilot.app.screen._compositor.render_strips()]
