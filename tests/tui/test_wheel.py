"""The mouse wheel scrolls what it is over, and labels nothing."""

from pathlib import Path

import pytest
from textual import events

from judge.store import Store
from tests.tui.screens import sitting
from tests.tui.studies import batch, build, labels

LONG = "A sentence of a claim that goes on and on. " * 70
"""About 3,000 characters."""


@pytest.mark.parametrize("pane", ["head-scroll", "body-scroll"])
async def test_the_wheel_scrolls_the_pane_below_it(pane: str, tmp_path: Path) -> None:
    path = build(tmp_path / "s.db", texts={"long": LONG}, items=1, each=1)
    with Store.open(path) as store, store.transaction() as conn:
        conn.execute("UPDATE items SET claim = ?", [LONG])
    batch(path, n=1)
    async with sitting(path) as pilot:
        box = pilot.app.screen.query_one(f"#{pane}")
        for event, moved in ((events.MouseScrollDown, True), (events.MouseScrollUp, False)):
            for _ in range(4):
                await pilot._post_mouse_events([event], widget=box, offset=(2, 1), button=0)
                await pilot.pause(0.1)
            assert (box.scroll_y > 0) == moved
        assert labels(path) == {}
