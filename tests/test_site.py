"""The documentation as a site: it builds without a warning, holds every command, and loads nothing from elsewhere."""

import asyncio
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import pytest
import yaml

import annotate.cli
import judge.cli
from docs import reference
from tests.annotate.report_browser import Page, browser
from tests.real import ROOT, require

PICTURES = ROOT / "docs" / "pictures"
LOADED = {
    "script": "src", "link": "href", "img": "src", "source": "src", "iframe": "src", "object": "data", "embed": "src",
    "video": "src", "audio": "src", "track": "src", "use": "href", "image": "href",
}  # fmt: skip
"""What a page loads by itself, and where it says so."""
KEPT = {"canonical", "alternate", "next", "prev", "license", "author"}
"""Links of a head that name something and load nothing."""


class Loads(HTMLParser):
    """The addresses that a page would load, and those in its styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self._style = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._style = tag == "style"
        if tag in LOADED and given.get(LOADED[tag]) and given.get("rel") not in KEPT:
            self.found.append(str(given[LOADED[tag]]))
        for candidate in (given.get("srcset") or "").split(","):
            self.found += candidate.split()[:1]
        self.found += in_style(given.get("style") or "")

    def handle_data(self, data: str) -> None:
        if self._style:
            self.found += in_style(data)

    def handle_endtag(self, tag: str) -> None:
        self._style = False


def in_style(text: str) -> list[str]:
    """What a style sheet loads."""
    found = re.findall(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)", text)
    return [one or other for one, other in found]


def is_elsewhere(address: str) -> bool:
    return bool(re.match(r"(https?:)?//", address.strip(), re.IGNORECASE))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: a broken link or anchor, or a page of the list that is not there, ends it."""
    folder = tmp_path_factory.mktemp("site") / "built"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.real
def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        loads = Loads(page.read_text("utf-8")).found
        assert loads, page.name
        assert [a for a in loads if is_elsewhere(a)] == [], page.name
        for address in loads:
            path = unquote(re.split(r"[?#]", address)[0])
            if path and not path.startswith("data:") and page.name != "404.html":
                assert (page.parent / path).exists(), f"{page.name} loads {address}, which is not in the site"
    for sheet in site.rglob("*.css"):
        assert [a for a in in_style(sheet.read_text("utf-8")) if is_elsewhere(a)] == [], sheet.name
    for picture in site.rglob("*.svg"):
        found = re.findall(r"(?:href|src)=\"([^\"]+)|url\(['\"]?([^)'\"]+)", picture.read_text("utf-8"))
        assert not any(is_elsewhere(one or other) for one, other in found), picture.name


@pytest.mark.real
def test_the_search_works_from_the_disk(site: Path) -> None:
    """The index is a script beside the pages: a browser reads no JSON from file://."""
    index = (site / "search" / "search_index.js").read_text("utf-8")
    assert index.startswith("var __index = ")
    held = json.loads((site / "search" / "search_index.json").read_text("utf-8"))["docs"]
    assert any("krippendorff" in one["text"].lower() for one in held)


FOCUS = "(i => { i.value = ''; i.focus(); })(document.querySelector('input.md-search__input'))"
FOUND = "[...document.querySelectorAll('.md-search-result__link')].map(a => a.href)"


@pytest.mark.real
def test_opened_in_a_browser_no_request_leaves_it(site: Path) -> None:
    """From the disk, as somebody without a network has it; the search finds its pages too."""
    require("chromium")

    async def look() -> None:
        for name in ("index", "tutorial", "statistics", "reference/judge", "demo"):
            async with browser() as page:
                await page.open(site / f"{name}.html")
                if name == "index":
                    assert any("intake.html" in link for link in await searched(page, "quarantine"))
                assert page.requests, "the page itself"
                away = [
                    url for url in page.requests if not url.startswith(("file:", "data:", "blob:", "about:"))
                ]
                assert away == [], name

    asyncio.run(look())


async def searched(page: Page, word: str) -> list[str]:
    """The pages that the search finds. What is typed before its script has come is typed again."""
    for n in range(240):
        if n % 40 == 0:
            await page.script(FOCUS)
            await page.call("Input.insertText", text=word)
        if found := await page.script(FOUND):
            return list(found)
        await asyncio.sleep(0.25)
    raise AssertionError(f"the search found nothing: {page.complaints}")


@pytest.mark.real
@pytest.mark.parametrize("name", ["judge", "annotate"])
def test_every_command_is_on_its_page(site: Path, name: str) -> None:
    main = {"judge": judge.cli.main, "annotate": annotate.cli.main}[name]
    text = (site / "reference" / f"{name}.html").read_text("utf-8")
    for words, command in reference.commands(main, (name,)):
        assert f'id="{"-".join(words)}"' in text, words
        for option in command.params:
            for flag in getattr(option, "opts", []) if option.param_type_name == "option" else []:
                assert flag in text, (words, flag)


def test_the_reference_is_of_the_code() -> None:
    made = reference.pages()
    for path in (ROOT / "tests" / "schemas").glob("*.json"):
        if path.stem != "shared":
            assert f"## adjudge/{path.stem}/1\n" in made["reference/json.md"], path.name
    for path in (ROOT / "prompts").glob("*.v*.md"):
        assert f"## {path.name.split('.')[0]}\n" in made["reference/tasks.md"]
    for table in ("items", "judgements", "labels", "events", "exposures", "given_for_corrected"):
        assert f"## {table}\n\n{reference.TABLES[table]}\n" in made["reference/schema.md"]
    assert "| `unit_id` | TEXT | key |" in made["reference/schema.md"]
    assert str(ROOT) not in "".join(made.values()), "no path of this machine"


@pytest.mark.real
def test_every_page_is_in_the_menu(site: Path) -> None:
    """A page that nobody can find from the menu is not a page."""
    menu = (site / "index.html").read_text("utf-8")
    written = [p.relative_to(ROOT / "docs").with_suffix("").as_posix() for p in (ROOT / "docs").glob("*.md")]
    made = [name.removesuffix(".md") for name in reference.pages()]
    assert [name for name in (*written, *made) if f'href="{name}.html"' not in menu] == []


def test_a_page_that_the_menu_lacks_comes_at_its_end() -> None:
    listed = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    assert reference.on_config(SimpleNamespace(nav=[*listed])).nav[: len(listed)] == listed
    [home, *others] = listed
    assert "tutorial.md" in json.dumps(others)
    without = reference.on_config(SimpleNamespace(nav=[home])).nav
    assert "tutorial.md" in without[-1]["More"] and "index.md" not in without[-1]["More"]


def test_pictures_are_small_and_load_nothing() -> None:
    pictures = sorted(PICTURES.iterdir())
    assert {p.stem for p in pictures} >= {"labelling", "verdict", "label-studio", "demo"}
    for path in pictures:
        assert path.stat().st_size < 150_000, path.name
        if path.suffix == ".svg":
            assert "http" not in path.read_text("utf-8").replace("http://www.w3.org/2000/svg", ""), path.name
    used = "".join(p.read_text("utf-8") for p in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
    assert [p.name for p in pictures if f"pictures/{p.name}" not in used] == []


@pytest.mark.parametrize(
    ("word", "page"),
    [
        ("langchain", "other-tools"),
        ("hallucination", "glossary"),
        ("glossary", "glossary"),
        ("web", "glossary"),
        ("groundedness", "glossary"),
    ],
)
@pytest.mark.real
def test_the_index_of_the_search_has_words_of_other_tools(site: Path, word: str, page: str) -> None:
    """The index holds the words of titles and texts, in small letters, cut where the site says."""
    index = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    cuts = re.compile(index["config"]["separator"])
    pages = {
        one["location"].partition(".html")[0]
        for one in index["docs"]
        if word in cuts.split(re.sub(r"<[^>]+>", " ", f"{one['title']} {one['text']}").lower())
    }
    assert page in pages
