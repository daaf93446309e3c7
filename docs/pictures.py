"""The pictures of the pages, made anew from the real screens and pages, so that they cannot lie.

    uv run python -m docs.pictures                   # all of them; needs Chromium and Label Studio, as the tests do
    uv run python -m docs.pictures labelling demo    # some

labelling      the terminal screen on a question of the shipped sample, by Textual's own export
demo           what `judge demo` prints
verdict        the top of a report, in Chromium
label-studio   a batch on a real Label Studio server, in Chromium
"""

from __future__ import annotations

import asyncio
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
MOST_BYTES = 150_000
"""A picture is no heavier than that."""


def program(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """`python -m judge ...`, as typed in a folder."""
    # A width of a page, and no colours that depend on who asks.
    environment = {**os.environ, "COLUMNS": "110", "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )


def labelling(folder: Path) -> None:
    """The labelling screen, on the third unit."""
    _batch(folder)
    from tests.tui.screens import press, sitting

    async def take() -> str:
        async with sitting(folder / "study.db", "alice", size=(100, 26)) as pilot:
            await press(pilot, "3", "0")
            return pilot.app.export_screenshot(title="annotate open pilot --as alice")

    _write_svg("labelling", asyncio.run(take()))


def _batch(folder: Path) -> None:
    sample = ROOT / "data" / "noveleval" / "questions.jsonl"
    program("judge", "items", "import", "jsonl", str(sample), folder=folder)
    program(
        "annotate", "batches", "new", "pilot", "relevance_graded", "-n", "30", "--annotators", "alice,bob", folder=folder
    )  # fmt: skip


def demo(folder: Path) -> None:
    """What the demo draws. It takes most of a minute."""
    shown = program("judge", "demo", "--no-page", folder=folder).stdout.splitlines()
    start = next(i for i, line in enumerate(shown) if line.startswith("Agreement between judge and people"))
    # How long it took is this machine's business.
    end = next(
        i for i, line in enumerate(shown) if " units in " in line and line.startswith(tuple("0123456789"))
    )
    _terminal("demo", "judge demo", shown[start:end])


def _terminal(name: str, title: str, lines: list[str]) -> None:
    console = Console(record=True, width=max(map(len, lines)) + 1, file=io.StringIO())
    for line in lines:
        console.print(Text(line))
    _write_svg(name, console.export_svg(title=title))


def _write_svg(name: str, text: str) -> None:
    """Without the fonts that the exporters name on a server elsewhere; the page's own monospace will do."""
    local = re.sub(r"@font-face\s*{[^}]*}|<!--.*?-->", "", text, flags=re.DOTALL)
    local = local.replace("Fira Code, monospace", "monospace").replace(
        "font-family: Fira Code", "font-family: monospace"
    )
    assert "http" not in local.replace("http://www.w3.org/2000/svg", ""), "a picture loads nothing"
    (PICTURES / f"{name}.svg").write_text(local, encoding="utf-8")


def verdict(folder: Path) -> None:
    """The top of the report on the made-up votes."""
    told = "--judge gpt -o votes.html"
    program(
        "annotate", "report", str(ROOT / "data" / "examples" / "votes.csv"), *shlex.split(told), folder=folder
    )
    from tests.annotate.report_browser import browser

    async def take() -> bytes:
        async with browser() as page:
            await page.look(width=1000)
            await page.open(folder / "votes.html")
            await page.screenshot(folder / "verdict.png", x=0, y=0, width=1000, height=802)
        return (folder / "verdict.png").read_bytes()

    _write_png("verdict", asyncio.run(take()))


def label_studio(folder: Path) -> None:
    """A unit of a batch on a real server, as alice sees it."""
    sample = ROOT / "data" / "scifact"
    paths = [str(sample / "claims.jsonl"), str(sample / "corpus.jsonl")]
    program("judge", "items", "import", "scifact", *paths, folder=folder)
    people = "-n 12 --seed 3 --annotators alice,bob"
    program("annotate", "batches", "new", "pilot", "stance", *shlex.split(people), folder=folder)
    from tests.annotate.report_browser import browser
    from tests.label_studio.conftest import tasks_of
    from tests.label_studio.server import server
    from tests.label_studio.test_page import until
    from tests.real import require

    async def take(url: str, project: int, task: int, cookies: Mapping[str, str]) -> bytes:
        async with browser() as page:
            for domain in ("Network", "Page", "Runtime"):
                await page.call(f"{domain}.enable")
            for name, value in cookies.items():
                await page.call("Network.setCookie", name=name, value=value, url=url)
            await page.look(width=1500)
            await page.call("Page.navigate", url=f"{url}/projects/{project}/data?task={task}")
            await until(page, "document.querySelectorAll('input[type=radio]').length", "no task")
            await asyncio.sleep(3)  # it draws in pieces
            await page.screenshot(folder / "page.png", whole=False)
        return (folder / "page.png").read_bytes()

    with server(require("label-studio")) as there:
        os.environ["LABEL_STUDIO_API_KEY"] = there.keys["alice"]
        program("annotate", "push", "pilot", "--url", there.url, folder=folder)
        projects = there.client("alice").projects.list()
        project = next(iter(projects)).id
        cookies = {c.name: c.value or "" for c in there.admin.client.cookies.jar}
        taken = asyncio.run(take(there.url, project, tasks_of(there, project)[0].id, cookies))
    _write_png("label-studio", taken)


def _write_png(name: str, picture: bytes) -> None:
    """With a palette: text on plain ground loses nothing by it."""
    image = Image.open(io.BytesIO(picture)).convert("RGB").quantize(64)
    image.save(PICTURES / f"{name}.png", optimize=True)


MADE: dict[str, Callable[[Path], None]] = {
    "labelling": labelling,
    "demo": demo,
    "verdict": verdict,
    "label-studio": label_studio,
}


def main() -> None:
    """Make the pictures that are named, or all."""
    from tests import real

    real.is_marked = True  # what a picture needs is not optional
    PICTURES.mkdir(exist_ok=True)
    for name in sys.argv[1:] or MADE:
        with TemporaryDirectory() as folder:
            os.environ["HOME"] = folder if name == "labelling" else os.environ["HOME"]
            MADE[name](Path(folder))
        for path in PICTURES.glob(f"{name}.*"):
            size = path.stat().st_size
            print(f"{path.relative_to(ROOT)}: {size:,} bytes")
            if size > MOST_BYTES:
                sys.exit(f"{path.name} is over {MOST_BYTES:,} bytes")


if __name__ == "__main__":
    main()
