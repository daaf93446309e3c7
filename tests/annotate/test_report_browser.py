"""The report's page in a real browser: nothing complains, nothing is loaded, everybody can read it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from textual.color import Color

from annotate.report import FORMATS, ReportOptions, build
from annotate.tui.colours import contrast, luminance
from judge.console import visible
from judge.store import Store
from tests.annotate.report_browser import Page, check_page
from tests.annotate.report_helpers import NASTY, U, add_label, study

pytestmark = pytest.mark.real
LABELS = ("support", "refute", "neutral")

# Contrast by WCAG 2: (L1 + .05) / (L2 + .05) of every piece of text against the first opaque colour behind it.
CONTRAST = """(() => {
  const rgb = (s) => (s.match(/[\\d.]+/g) || []).map(Number);
  const lum = (c) => { const f = (v) => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; };
    return .2126 * f(c[0]) + .7152 * f(c[1]) + .0722 * f(c[2]); };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] > 0) return c; } return [255, 255, 255]; };
  const bad = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, e = node.parentElement;
    if (!node.data.trim() || e.closest('svg') || e.closest('.skip')) continue;
    const a = lum(rgb(getComputedStyle(e).color)), b = lum(behind(e));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) bad.push(e.className + ' ' + e.tagName + ' ' + ratio.toFixed(2));
  }
  return [...new Set(bad)];
})()"""
# The same of the text in drawings against the page; cells and bars are worked out in test_report_plots.
DRAWN = """(() => [...document.querySelectorAll('svg text')].map((e) => getComputedStyle(e).fill))()"""


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with every section, and a passage that would run if it could."""
    folder = tmp_path_factory.mktemp("page")
    made = []
    for i in range(48):
        gold = LABELS[i % 3]
        wrong = LABELS[(i + 1) % 3]
        people = {n: wrong if i % 12 == k else gold for k, n in enumerate(("ann", "bob", "cy"))}
        answers: dict[str, Any] = {
            "m/good": (wrong if i % 16 == 5 else gold, 0.7 + i % 3 / 10, f"Because {NASTY}"),
            "m/bad": wrong if i % 3 else gold,
        }
        made.append(U(gold, people, answers, f"Claim {i // 2}", f"Passage {i}: {NASTY}", f"q{i // 2}"))
    db = study(folder / "study.db", made)
    add_label(db, "study:1/p", "stance", "ann", "support", layer="revised")
    add_label(db, "study:1/p", "stance", "ann", LABELS[1], repeat=1)
    with Store.open(db, create=False) as store:
        text = FORMATS["html"](build(store, ReportOptions()))
    path = folder / "report.html"
    path.write_text(text, encoding="utf-8")
    return path


def test_nothing_complains_nothing_is_loaded_and_scripts_are_text(page_file: Path) -> None:
    async def check(page: Page) -> None:
        assert page.requests == [page_file.as_uri()]
        assert page.complaints == []
        assert await page.script("document.querySelectorAll('iframe, img, link, [onerror]').length") == 0
        # The one script is the one that sorts tables.
        scripts = "[...document.querySelectorAll('script')].map(s => s.textContent.slice(0, 29))"
        assert await page.script(scripts) == ["// Sort a table by the column"]
        text = await page.script("document.body.textContent")
        assert visible(f"Passage 1: {NASTY}") in text and visible(f"Because {NASTY}") in text
        assert await page.script("document.title") == "How far can these judges be trusted on 'stance'?"
        # The policy holds: what a passage would do if it were markup is refused.
        await page.script(
            "document.body.insertAdjacentHTML('beforeend', '<img src=\"http://127.0.0.1:9/x.png\"><p style=\"color:red\">x</p>')"
        )
        await asyncio.sleep(0.3)
        await page.script("0")
        assert page.blocked == ["csp"], "refused by the page, not by the network"
        assert any("Content Security Policy" in c or "ContentSecurityPolicy" in c for c in page.complaints)

    check_page(check, page_file)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(page_file: Path, scheme: str) -> None:
    async def check(page: Page) -> None:
        await page.look(scheme)
        background = await page.script("getComputedStyle(document.body).backgroundColor")
        ground = Color.parse(background)
        assert (luminance(ground) < 0.05) == (scheme == "dark")
        assert await page.script(CONTRAST) == []
        for colour in {Color.parse(c) for c in await page.script(DRAWN)}:
            # Labels inside a bar or a cell are on another ground.
            if abs(luminance(colour) - luminance(ground)) > 0.2:
                assert contrast(colour, ground) >= 4.5, colour

    check_page(check, page_file)


def test_nothing_sticks_out_on_a_telephone(page_file: Path) -> None:
    async def check(page: Page) -> None:
        await page.look(width=360)
        assert await page.script("document.documentElement.scrollWidth") == 360
        wide = await page.script(
            "[...document.querySelectorAll('table, svg')].filter(e => e.getBoundingClientRect().right > 361 "
            "&& !e.closest('.scroll') && !e.closest('details:not([open])')).length"
        )
        assert wide == 0, "what is wider scrolls in its own box"

    check_page(check, page_file)


def test_drawings_and_tables_can_be_read_on_a_telephone(page_file: Path) -> None:
    async def check(page: Page) -> None:
        await page.look(width=400)
        drawings = await page.script(
            "[...document.querySelectorAll('figure svg:not(.wide)')].map(e => [e.getBoundingClientRect().right, "
            "e.closest('.scroll').getBoundingClientRect().right, e.getBoundingClientRect().width / e.viewBox.baseVal.width])"
        )
        assert len(drawings) >= 4
        for right, edge, scale in drawings:
            assert right <= edge + 1, "the whole drawing is seen"
            # Labels are 9 units high in the drawing; below 9 pixels they are hard to read.
            assert 9 * scale >= 9
        points = (
            "[...document.querySelectorAll('#f-forest svg use')].map(e => e.getBoundingClientRect().right)"
        )
        result = await page.script(points)
        assert len(result) >= 6 and max(result) < 400
        # Where a table is wider than the screen, a shadow at its edge says so; it goes when the end is reached,
        # because the covers move with the content.
        hint = "(e => [e.backgroundImage.split('linear-gradient').length - 1, e.backgroundAttachment])"
        wide = "[...document.querySelectorAll('.scroll')].find(e => e.scrollWidth > e.clientWidth + 1)"
        assert await page.script(f"{hint}(getComputedStyle({wide}))") == [4, "local, local, scroll, scroll"]
        named = f"{wide}.getAttribute('role') === 'region' && {wide}.tabIndex === 0 && !!{wide}.ariaLabel"
        assert await page.script(named) is True
        # A table of one value with its counts needs no scrolling: labels, value, units, questions, coverage.
        assert (
            await page.script(
                "(e => e.scrollWidth - e.clientWidth)(document.querySelector('#t-class_agreement').closest('.scroll'))"
            )
            <= 0
        )

    check_page(check, page_file)


def test_the_keyboard_reaches_everything(page_file: Path) -> None:
    async def check(page: Page) -> None:
        await page.press("Tab")
        assert await page.script("document.activeElement.className") == "skip"
        await page.script("document.querySelector('summary').focus()")
        await page.press("Enter")
        assert await page.script("document.querySelector('details').open") is True
        reachable = await page.script(
            "[...document.querySelectorAll('.scroll')].every(e => e.tabIndex === 0)"
        )
        assert reachable is True
        order = await page.script("[...document.querySelectorAll('h1,h2,h3')].map(e => e.tagName)")
        assert order[0] == "H1" and set(order[1:]) == {"H2"}

    check_page(check, page_file)


def test_it_prints_light_and_without_what_is_only_for_the_screen(page_file: Path, tmp_path: Path) -> None:
    async def check(page: Page) -> None:
        await page.look("dark", media="print")
        assert await page.script("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert await page.script("getComputedStyle(document.querySelector('nav')).display") == "none"
        await page.look("dark", media="")
        await page.pdf(tmp_path / "report.pdf")

    check_page(check, page_file)
    pages = (tmp_path / "report.pdf").read_bytes().count(b"/Type /Page\n")
    assert 5 <= pages <= 30
