"""Sentences of README.md and docs/ are short, and a how-to guide says its purpose first and ends within 900 words."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.real import ROOT

LONGEST = 35
LONGEST_GUIDE = 900
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MENU: list[dict[str, Any]] = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
GUIDES = re.findall(r"([\w-]+)\.md", json.dumps(MENU[2]))
_ABBREVIATED = re.compile(r"\b(e\.g|i\.e|et al|vs|approx|etc)\.")


def sentences(text: str) -> list[str]:
    """The sentences of a Markdown page: of its paragraphs, headings, items of lists, and cells of tables.

    Fenced blocks and comments are no prose. Inline code counts as one word, a link as its text.
    """
    text = re.sub(r"^(```+|~~~+).*?^\1\s*$|<!--.*?-->", "\n\n", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"(`+)[^`]+?\1", "CODE", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"<[^>]+>|[*_]{2}", "", text)
    text = _ABBREVIATED.sub(lambda m: m[1], text)
    text = re.sub(r"^(\s*([-*+]|\d+\.)\s|#+ |\|)", r"\n\n\1", text, flags=re.MULTILINE)
    found = []
    for block in re.split(r"\n\s*\n", text):
        cells = re.split(r"(?<!\\)\|", block) if block.lstrip().startswith("|") else [block]
        for cell in cells:
            plain = re.sub(r"^\s*([-*+]|\d+\.|#+)\s", "", " ".join(cell.split()))
            found += re.split(r"(?<=[.!?])[)\"']?\s+(?=[\"'(]?[A-Z0-9])", plain)
    return [s for s in found if re.search(r"\w", s)]


def words(sentence: str) -> list[str]:
    """The words of a sentence; a dash or an ellipsis alone is none."""
    return [w for w in sentence.split() if re.search(r"\w", w)]


def test_sentences_are_read_from_markdown() -> None:
    text = (
        "# A title\n\nOne sentence\nover two lines. Another, `judge run x -m y`, ends!\n\n- an item\n- [a link](x.md) of two\n\n"
        "| a cell | of a row. Two |\n|---|---|\n```console\n$ judge run\n```\n<!-- a note -->\nSnow et al. say so. 0.5 stays.\n"
    )
    assert sentences(text) == [
        "A title", "One sentence over two lines.", "Another, CODE, ends!", "an item", "a link of two", "a cell",
        "of a row.", "Two", "Snow et al say so.", "0.5 stays.",
    ]  # fmt: skip


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_no_sentence_is_longer_than_35_words(path: Path) -> None:
    found = [s for s in sentences(path.read_text("utf-8")) if len(words(s)) > LONGEST]
    assert found == []


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_begins_with_its_purpose_and_has_at_most_900_words(name: str) -> None:
    text = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
    assert text.splitlines()[2].startswith("This guide "), "its purpose, in the line after the title"
    assert len(text.split()) <= LONGEST_GUIDE


def test_the_menu_has_the_four_kinds_of_page() -> None:
    """Diátaxis: each page is a tutorial, a how-to guide, reference or explanation. A page stands in the menu once."""
    titles = [next(iter(group)) for group in MENU]
    assert titles == ["Home", "Tutorials", "How-to guides", "Reference", "Explanation"]
    listed = re.findall(r"[\w/-]+\.md", json.dumps(MENU))
    assert len(listed) == len(set(listed))


def test_the_readme_has_one_screen_and_a_half() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 75 and len(text.split()) <= 600
    assert "uv run judge demo" in text and "uv run pytest" in text


def test_the_links_of_the_pages_lead_somewhere() -> None:
    """Files; `mkdocs build --strict` (tests/test_site.py) also tests the headings."""
    found = [
        (path, link)
        for path in PAGES
        for link in re.findall(r"\]\(([^)#\s]+)", path.read_text("utf-8"))
        if "://" not in link and not link.startswith("reference/")
    ]
    assert len(found) > 100
    assert [(p.name, link) for p, link in found if not (p.parent / link).is_file()] == []
