"""The page people work on, in a real browser: texts, keys, marking evidence, and what comes back of it."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.annotate.report_browser import Page, browser
from tests.cli.helpers import Done
from tests.label_studio.conftest import document, tasks_of
from tests.label_studio.server import Server
from tests.real import require
from tests.tui.studies import drawn, labels, rows_of

pytestmark = pytest.mark.real
TEXT = "The \U0001f9ea trial <img src=x onerror=\"document.title='RAN'\"> found\r\nthat it says 42 & <b>more</b>."
# Where the page shows a word last: the list of tasks, which comes first, has the passage too.
WHERE = """(() => {
  let at = null;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const i = walker.currentNode.data.indexOf('found');
    if (i < 0) continue;
    const range = document.createRange();
    range.setStart(walker.currentNode, i); range.setEnd(walker.currentNode, i + 5);
    const box = range.getBoundingClientRect();
    if (box.width) at = [box.x, box.y + box.height / 2, box.width];
  }
  return at;
})()"""


async def until(page: Page, expression: str, what: str, seconds: float = 60) -> Any:
    """The first value of an expression that is true."""
    for _ in range(int(seconds * 4)):
        if result := await page.script(expression):
            return result
        await asyncio.sleep(0.25)
    raise AssertionError(f"{what}: {await page.script('document.body.innerText')}")


async def press(page: Page, key: str, **more: Any) -> None:
    """One key down and up, as a keyboard sends it."""
    code = {"key": key, "code": f"Key{key.upper()}" if len(key) == 1 else key, **more}
    code.setdefault("windowsVirtualKeyCode", 13 if key == "Enter" else ord(key.upper()))
    text = {"text": key} if len(key) == 1 else {}
    await page.call("Input.dispatchKeyEvent", type="keyDown", **code, **text)
    await page.call("Input.dispatchKeyEvent", type="keyUp", **code)


async def drag(page: Page, x: float, y: float, width: float) -> None:
    """Mark what stands between two places of a line."""

    async def mouse(kind: str, at: float, **more: Any) -> None:
        await page.call("Input.dispatchMouseEvent", type=kind, x=at, y=y, **more)

    await mouse("mouseMoved", x + 1)
    await mouse("mousePressed", x + 1, button="left", clickCount=1)
    for step in range(1, 6):
        await mouse("mouseMoved", x + width * step / 5, button="left", buttons=1)
    await mouse("mouseReleased", x + width, button="left", clickCount=1)


async def visit(page: Page, server: Server, project: int, task: Any) -> None:
    """Open a task as alice, who is logged in."""
    for domain in ("Network", "Page", "Runtime"):
        await page.call(f"{domain}.enable")
    for cookie in server.admin.client.cookies.jar:
        await page.call("Network.setCookie", name=cookie.name, value=cookie.value or "", url=server.url)
    await page.look(width=1500)
    await page.call("Page.navigate", url=f"{server.url}/projects/{project}/data?task={task.id}")


def test_a_person_labels_with_keys_and_marks_evidence(
    label_studio: Server, tmp_path: Path, annotate: Callable[..., Done]
) -> None:
    require("chromium")
    study = drawn(tmp_path, items=1, each=1, texts={"nasty": TEXT}, n=1, annotators=["alice"])
    key = label_studio.keys["alice"]
    words = ("pilot", "--url", label_studio.url, "--json")
    project = document(annotate("push", *words, db=study, key=key))["project"]
    task = tasks_of(label_studio, project)[0]
    picture = tmp_path / "page.png"

    async def work() -> None:
        async with browser() as page:
            await visit(page, label_studio, project, task)
            labelled = "document.body.innerText.includes('neutral[n]') && document.body.innerText"
            text = await until(page, labelled, "no task")
            assert "<img src=x" in text and "<b>more</b>" in text, "markup is shown as text"
            assert await page.script("document.title") != "RAN"
            shown = " ".join(text.split())
            for label, hotkey in (("support", "s"), ("refute", "r"), ("neutral", "n"), ("evidence", "e")):
                assert f"{label} {hotkey}" in shown or f"{label}[{hotkey}]" in shown, (label, shown)
            marked = "document.querySelectorAll('[class*=htx-highlight]').length"
            await asyncio.sleep(2)  # the page draws before it listens to keys
            await press(page, "e")
            await asyncio.sleep(0.5)
            await drag(page, *await until(page, WHERE, "the word is not there"))
            await until(page, marked, "nothing was marked", 20)
            await press(page, "s")
            checked = "[...document.querySelectorAll('input[name=support]:checked')].length"
            await until(page, checked, "the key chose nothing", 20)
            await page.screenshot(picture, whole=False)
            await press(page, "Enter", modifiers=2)
            for _ in range(80):
                if tasks_of(label_studio, project)[0].total_annotations:
                    break
                await asyncio.sleep(0.25)

    asyncio.run(work())
    came = document(annotate("pull", *words, db=study, key=key))
    assert came["new"] == {"alice": 1} and came["problems"] == [] and came["spans"] == 1
    assert set(labels(study).values()) == {"support"}
    row = rows_of(study, "SELECT a.spans, a.active_ms, p.text FROM assignments AS a, passages AS p")[0]
    [[name, start, end]] = json.loads(row[0])
    assert name == "passage" and row[2][start:end] == "found" and row[1] > 0


IN_SIGHT = """(() => {
  const seen = ['support', 'refute', 'neutral'].map(name => {
    const input = document.querySelector(`input[name=${name}]`);
    if (!input) return false;
    const box = input.getBoundingClientRect();
    return box.top >= 0 && box.bottom <= innerHeight &&
      document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2)?.closest('label, span, div') !== null;
  });
  return seen.every(Boolean);
})()"""


SLIVER = """(() => {
  let foot = document.querySelector('input[name=support]');
  while (foot && getComputedStyle(foot).position !== 'sticky') foot = foot.parentElement;
  let pane = foot && foot.parentElement;
  while (pane && !(pane.scrollHeight > pane.clientHeight && /auto|scroll/.test(getComputedStyle(pane).overflowY))) pane = pane.parentElement;
  if (!pane) return null;
  const box = foot.getBoundingClientRect(), text = [];
  for (let y = Math.ceil(box.top) + 2; y < pane.getBoundingClientRect().bottom; y++) {
    const there = document.elementFromPoint(box.x + box.width / 2, y);
    if (there && pane.contains(there) && !foot.contains(there)) text.push(y);
  }
  return {rows: text.length};
})()"""
"""Rows of pixels below the foot's upper edge in which the passage is to be seen."""


def test_labels_stay_in_sight_beside_a_long_passage(
    label_studio: Server, tmp_path: Path, annotate: Callable[..., Done]
) -> None:
    """Before: the choices stood below 30,000 characters."""
    require("chromium")
    study = drawn(
        tmp_path, items=1, each=1, texts={"long": "A long word or two. " * 1500}, n=1, annotators=["alice"]
    )
    words = ("pilot", "--url", label_studio.url, "--json")
    project = document(annotate("push", *words, db=study, key=label_studio.keys["alice"]))["project"]
    task = tasks_of(label_studio, project)[0]

    async def work() -> None:
        async with browser() as page:
            await visit(page, label_studio, project, task)
            await until(page, "document.querySelectorAll('input[name=support]').length", "no task")
            await until(page, IN_SIGHT, "the labels are out of sight", 15)
            below = await until(page, SLIVER, "nothing scrolls")
            await page.screenshot(tmp_path / "long.png", whole=False)
            assert below["rows"] == 0, f"a strip of the passage is below the foot: {below}"
            # At the end of the passage too: the note, the last thing of the foot, is whole in sight.
            await page.script(
                "document.querySelector('textarea, [name=adjudge_note]')?.scrollIntoView({block: 'end'})"
            )
            assert await page.script(IN_SIGHT)

    asyncio.run(work())
