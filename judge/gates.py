"""Gates: pass/fail conditions for a build, with exit code 5, a JUnit file and a Markdown summary.

Every command with gates creates a list of `Gate` objects and passes it to `decide`. The conditions differ
between commands, but they are reported in the same way.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar
from xml.etree import ElementTree

import click

from judge import markdown
from judge.console import TO_WRITE, note, visible
from judge.errors import BadInput, BelowThreshold, UsageError

F = TypeVar("F", bound=Callable[..., Any])

# XML 1.0 cannot represent these two, and `visible` does not escape them.
_NOT_XML = re.compile("[\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Gate:
    """One condition: its name as typed, whether it passed, and a sentence with the number or the reason."""

    name: str
    passed: bool
    why: str


@dataclass(frozen=True, slots=True)
class Files:
    """The files given with `--output`, grouped by file extension.

    The command itself writes `pages`. `decide` writes the results of the gates to `junit` and `summaries`.
    """

    pages: tuple[Path, ...] = ()
    junit: tuple[Path, ...] = ()
    summaries: tuple[Path, ...] = ()


def output_option(*endings: str, help: str, gates: bool = True) -> Callable[[F], F]:
    """Return the option `-o/--output FILE`, which may be repeated.

    The command receives a `Files` object as `output`. `endings` are the extensions (such as ".html") of files
    that the command itself writes.

    If `gates` is true, two more kinds of files are accepted. A .xml file becomes a JUnit file. A .md file, or
    a file without an extension, is a Markdown file, to which the results of the gates are appended. If the
    command itself writes a Markdown page, the results are appended to that page.
    """

    def sorted_out(context: click.Context, option: click.Parameter, paths: tuple[Path, ...]) -> Files:
        pages, junit, summaries = [], [], []
        # Duplicates are removed, because the results would be appended twice.
        for path in dict.fromkeys(paths):
            ending = path.suffix.lower()
            if ending in endings:
                pages.append(path)
            elif gates and ending == ".xml":
                junit.append(path)
            # GitHub's file for step summaries has no extension.
            elif gates and ending in ("", ".md"):
                summaries.append(path)
            else:
                known = ", ".join(dict.fromkeys([*endings, *([".xml", ".md"] if gates else [])]))
                raise UsageError(f"--output {path}: the file extension must be one of {known}")
            # Checked while options are parsed, because the computation may take long.
            if not path.resolve().parent.is_dir():
                raise BadInput(f"--output {path}: the folder '{path.resolve().parent}' does not exist")
        for path in junit:
            _write_undecided(context, path)
        return Files(tuple(pages), tuple(junit), tuple(summaries))

    return click.option(
        "-o", "--output", multiple=True, type=TO_WRITE, metavar="FILE", callback=sorted_out, help=help
    )


def _write_undecided(context: click.Context, path: Path) -> None:
    """Write a JUnit file that reports an error. `decide` later replaces it with the results.

    If the command is killed or fails before that, the file reports the error instead of the results of an
    earlier build.
    """
    reason = "the command ended before its gates were evaluated; see its output"
    path.write_text(_junit(context.command_path, [Gate("decided", False, reason)], "error"), "utf-8")


def decide(title: str, gates: Sequence[Gate], files: Files) -> None:
    """Report the gates as text and in files. Raises BelowThreshold, which names all failed gates.

    `title` is the command with its arguments. If there are no gates, nothing is written. Raises UsageError if
    files were requested but there are no gates.
    """
    # Gates are reported on stderr. The flush makes the result appear before them, even if stdout is a pipe.
    sys.stdout.flush()
    if not gates:
        # Without this error, a build would regard the missing test as passed.
        for path in (*files.junit, *files.summaries):
            raise UsageError(f"{path}: there is no limit to report on; add an option that begins with --fail")
        return
    for path in files.junit:
        path.write_text(_junit(title, gates, "failure"), encoding="utf-8")
    for path in (*files.summaries, *(page for page in files.pages if page.suffix.lower() == ".md")):
        # Appended, because several commands of a build share one summary.
        with path.open("a", encoding="utf-8") as file:
            file.write(_summary(title, gates))
    for gate in gates:
        if gate.passed:
            note(f"passed: {gate.why}")
    failed = [gate.why for gate in gates if not gate.passed]
    if failed:
        raise BelowThreshold("failed: " + "; ".join(failed))


def _junit(title: str, gates: Sequence[Gate], kind: Literal["failure", "error"]) -> str:
    """Return a JUnit test suite with a case for each gate, in the form that GitLab, Jenkins and GitHub
    Actions read.

    `kind` determines how a gate that did not pass is reported: as a failed test, or as a test with an error.
    """
    failed = sum(not gate.passed for gate in gates)
    counts = {"name": _xml(title), "tests": str(len(gates)), "failures": "0", "errors": "0"}
    counts[f"{kind}s"] = str(failed)
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", counts)
    for gate in gates:
        case = ElementTree.SubElement(suite, "testcase", classname=_xml(title), name=_xml(gate.name))
        if not gate.passed:
            ElementTree.SubElement(case, kind, message=_xml(gate.why)).text = _xml(gate.why)
        else:
            ElementTree.SubElement(case, "system-out").text = _xml(gate.why)
    ElementTree.indent(suites)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"
    )


def _xml(text: str) -> str:
    """Replace the characters that XML cannot represent. ElementTree escapes the markup."""
    return _NOT_XML.sub("\ufffd", visible(text))


def _summary(title: str, gates: Sequence[Gate]) -> str:
    """Return a Markdown heading and table. A file may contain the summaries of several commands."""
    rows = [
        f"| {'passed' if gate.passed else '**failed**'} | {markdown.text(gate.name)} | {markdown.text(gate.why)} |"
        for gate in gates
    ]
    return "\n".join(
        [f"### {markdown.text(title)}", "", "| | gate | result |", "|---|---|---|", *rows, "", ""]
    )
