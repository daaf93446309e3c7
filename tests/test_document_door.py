"""Tables, figures and pages are written in one place."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOORS = {
    "tabulate": ("judge/document/",),
    "matplotlib": ("judge/document/",),
    "jinja2": ("judge/document/", "judge/prompts/"),
    "markupsafe": ("judge/document/",),
}


def _imports(path: Path) -> set[str]:
    """The top-level packages that a module imports, also inside functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


@pytest.mark.parametrize("library", DOORS)
def test_a_library_that_writes_output_is_imported_in_its_room_only(library: str) -> None:
    modules = {
        path.relative_to(ROOT).as_posix(): _imports(path)
        for package in ("judge", "annotate", "adjudge")
        for path in (ROOT / package).rglob("*.py")
    }
    users = [name for name, imported in modules.items() if library in imported]
    assert users and [name for name in users if not name.startswith(DOORS[library])] == []


def test_every_module_that_writes_csv_guards_against_formulas() -> None:
    modules = {
        path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
        for package in ("judge", "annotate", "adjudge")
        for path in (ROOT / package).rglob("*.py")
    }
    writers = {
        name: text for name, text in modules.items() if re.search(r"csv\.(Dict)?[wW]riter|to_csv", text)
    }
    assert "judge/document/csv.py" in writers
    assert [name for name, text in writers.items() if not re.search("csv_cell|guard_formula", text)] == []


HELP = {
    # click writes the help texts, and these modules only make its columns equally wide.
    "judge/console.py",
    "judge/cli/options.py",
    "judge/cli/score.py",
}
"""The modules that may pad a name, because it is part of a help text."""
PADDING = {"ljust", "rjust", "center", "expandtabs"}
WIDTH = re.compile(r"(.?[<>^=])?[1-9*{]")
"""A format specification with a width, such as `>6`, `<20`, `12.3f` or a width from a variable. Zeros as in `02` are digits
of a number, and no column.
"""


def _find_padding(source: str) -> list[str]:
    """The places where a module pads text: a method such as ljust, or a format with a width."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in PADDING:
            found.append(f"{node.lineno}: {node.attr}")
        elif isinstance(node, ast.FormattedValue) and isinstance(node.format_spec, ast.JoinedStr):
            parts = node.format_spec.values
            spec = "".join(str(part.value) if isinstance(part, ast.Constant) else "{" for part in parts)
            if WIDTH.match(spec):
                found.append(f"{node.lineno}: {spec}")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found += [
                f"{node.lineno}: {m[0]}"
                for m in re.finditer(r"%-?[1-9]\d*[sd]|\{\w*:.?[<>^]\d+\}", node.value)
            ]
    return found


def test_padding_is_found() -> None:
    assert [bool(_find_padding(text)) for text in ('"a".ljust(3)', "f'{a:>6}'", "f'{a:{w}}'", "f'{a:<{w}}'", "f'{a:12.3f}'",
            "'%5d' % a", "'{:>5}'.format(a)", "f'{a:,}'", "f'{a:.3f}'", "f'{a:02}'", "f'{a:+.3f}'", "f'{a:z.3f}'")] == [
        *[True] * 7, *[False] * 5]  # fmt: skip


def test_no_other_module_pads_columns() -> None:
    padded = {
        name: places
        for package in ("judge", "annotate", "adjudge")
        for path in (ROOT / package).rglob("*.py")
        # A screen of Textual has lines of a fixed width, which no document has.
        if not (name := path.relative_to(ROOT).as_posix()).startswith(("judge/document/", "annotate/tui/"))
        if name not in HELP and (places := _find_padding(path.read_text("utf-8")))
    }
    assert padded == {}


def test_the_example_for_contributors_is_in_the_code() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    examples = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    # The example of a paper is run by tests/suites.
    figures = [example for example in examples if "compute_scores" not in example]
    code = (ROOT / "annotate/report/rulings.py").read_text("utf-8")
    assert figures and all(example in code for example in figures)
    assert all(len(x.splitlines()) <= 25 for x in examples)
