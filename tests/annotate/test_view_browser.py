"""The page of annotate view in a real browser: hostile texts, the keyboard alone, light, dark and a telephone."""

import asyncio
from pathlib import Path

import pytest

from judge.console import visible
from tests.annotate.agreement_helpers import annotate
from tests.annotate.report_browser import Page, browser, check_page
from tests.annotate.report_helpers import NASTY, U, study
from tests.annotate.test_report_browser import CONTRAST

pytestmark = pytest.mark.real
LABELS = ("support", "refute", "neutral")


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """150 units, more than a page of the list; the judge is surely wrong on units 5, 21, 37, ..., and text is hostile."""
    folder = tmp_path_factory.mktemp("view")
    units = [
        U(
            LABELS[i % 3],
            {"ann": LABELS[i % 3]} if i % 2 else {},
            {"m": (LABELS[(i + (i % 16 == 5)) % 3], 0.95 if i % 16 == 5 else 0.6, f"Because {NASTY}")},
            f"Claim {i}",
            f"Passage {i}: {NASTY} אבג \u202e {'long ' * (6000 if i == 7 else 1)}",
            f"q{i}",
        )
        for i in range(150)
    ]
    db = study(folder / "study.db", units)
    annotate("batches", "new", "pilot", "stance", "-n", "3", "--annotators", "cy", "-d", db)
    annotate("view", "-d", db, "-o", folder / "page.html")
    return folder / "page.html"


async def count(page: Page) -> str:
    return str(await page.script("document.getElementById('count').textContent"))


def test_nothing_is_loaded_and_scripts_are_text(page_file: Path) -> None:
    async def check(page: Page) -> None:
        assert page.requests == [page_file.as_uri()] and page.complaints == []
        assert await page.script("document.querySelectorAll('img, iframe, link').length") == 0
        assert await page.script("document.querySelectorAll('script:not([type])').length") == 1
        text = await page.script("document.getElementById('row').textContent")
        assert visible(f"Passage 0: {NASTY} אבג \u202e") in text and visible(f"Because {NASTY}") in text
        # The policy refuses what markup in a text would do.
        await page.script(
            "document.body.insertAdjacentHTML('beforeend', '<img src=\"http://127.0.0.1:9/x.png\" onerror=\"window.bad=1\">')"
        )
        await asyncio.sleep(0.3)
        assert await page.script("window.bad === undefined")
        assert page.blocked == ["csp"]

    check_page(check, page_file)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 1200), ("dark", 360)])
def test_text_has_contrast_and_fits(page_file: Path, scheme: str, width: int) -> None:
    async def main() -> None:
        async with browser() as page:
            await page.look(scheme, width)
            await page.open(page_file)
            for unit in ("study%3A0%2Fp", "study%3A7%2Fp"):
                await page.script(f"location.hash = '#{unit}'")
                await asyncio.sleep(0.1)
                assert await page.script(CONTRAST) == []
                assert await page.script("document.documentElement.scrollWidth") <= width
            assert await page.script("document.querySelector('#filters details').open") == (width > 768)

    asyncio.run(main())


def test_the_keyboard_is_enough_to_find_the_worst_units(page_file: Path) -> None:
    async def check(page: Page) -> None:
        assert await count(page) == "1 of 150 units"
        for key in "jjk":
            await page.press(key)
        assert await count(page) == "2 of 150 units"
        assert await page.script("location.hash") == "#study%3A1%2Fp"
        # "/" goes to the search, where j and k are letters.
        await page.press("/")
        for key in "jk":
            await page.press(key)
        assert await page.script("document.querySelector('[name=search]').value") == "jk"
        await asyncio.sleep(0.3)
        assert await count(page) == "no unit (of 150 on the page)"
        # Every control is reached by Tab, in order.
        reached = []
        for _ in range(8):
            await page.press("Tab")
            reached.append(await page.script("document.activeElement.name || document.activeElement.id"))
        order = ["only.Status", "only.Differences", "only.m", "only.ann", "order", "clear"]
        assert [name for name in reached if name in order] == order
        await page.script("document.getElementById('clear').focus()")
        await page.press("Enter")
        assert await count(page) == "1 of 150 units"
        # The judge is surely wrong on 10 units (5, 21, ..., 149); those that wait are not among them. Another order begins at
        # its first unit, wherever one was before.
        for _ in range(7):
            await page.press("j")
        for name, letters in (("only.Differences", "m a"), ("order", "m: s")):
            await page.script(f"document.querySelector('[name=\"{name}\"]').focus()")
            for key in letters:
                await page.press(key)
            await page.press("Tab")
        assert (await count(page)).startswith("1 of ")
        first = await page.script("document.querySelector('#row h2').textContent")
        waiting = await page.script("document.querySelector('header').textContent")
        assert "Labels of 3 of the 150 units are left out" in waiting
        n = int(first.removeprefix("study:").removesuffix("/p"))
        assert n % 16 == 5, "surely wrong"

    check_page(check, page_file)


def test_links_lead_to_units_whatever_the_filters(page_file: Path) -> None:
    async def check(page: Page) -> None:
        await page.script("location.hash = '#study%3A149%2Fp'")
        await asyncio.sleep(0.2)
        assert await count(page) == "150 of 150 units"
        assert await page.script("document.querySelector('[aria-current]').textContent.startsWith('150.')")
        await page.script("location.hash = '#gone'")
        await asyncio.sleep(0.2)
        assert "no unit gone" in await page.script("document.getElementById('missing').textContent")
        # A link has the filters and the order, too: it shows the same rows to somebody else.
        await page.script("location.hash = '#&only.Differences=m and people differ&order=m: surest first'")
        await asyncio.sleep(0.2)
        assert (await count(page)).endswith("(of 150 on the page)")
        await page.press("j")
        link = await page.script("location.href")
        seen = await count(page), await page.script("document.querySelector('#row h2').textContent")
        await page.script("document.getElementById('clear').click()")
        assert await count(page) == "1 of 150 units"
        await page.script(f"location.href = '{link}'")
        await asyncio.sleep(0.2)
        assert (await count(page), await page.script("document.querySelector('#row h2').textContent")) == seen

    check_page(check, page_file)
