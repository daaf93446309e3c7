"""Gates: the conditions that a build rests on, with exit code 5, a JUnit file and a Markdown summary.

Every command that can stop a build makes a list of `Gate` and hands it to `decide`. What a gate tests is the command's
affair; how it is reported is the same for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from xml.etree import ElementTree

import click

from judge import markdown
from judge.console import TO_WRITE, note, together, visible
from judge.errors import BelowThreshold, UsageError

F = TypeVar("F", bound=Callable[..., Any])

# XML 1.0 has no way to write these two, and `visible` leaves them.
_NOT_XML = re.compile("[\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Gate:
    """One condition: its name as it was asked for, whether it passed, and the sentence with the number or the reason."""

    name: str
    passed: bool
    why: str


@dataclass(frozen=True, slots=True)
class GateFiles:
    """Where the outcome of the gates is written, besides the exit code."""

    junit: Path | None
    summary: Path | None


def _no_old_result(context: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    """Remove the file of an earlier build: a command that fails before its gates must not leave an old "passed"."""
    if path is not None:
        if path.suffix != ".xml":
            raise UsageError(f"--junit {path}: name a file that ends in .xml")
        if not path.exists() or path.is_file():
            path.unlink(missing_ok=True)
    return path


gate_options = together(
    click.option(
        "--junit",
        type=TO_WRITE,
        callback=_no_old_result,
        help="Write the outcome of the gates as JUnit XML: FILE.xml.",
    ),
    click.option(
        "--summary",
        type=TO_WRITE,
        help='Append the outcome of the gates to this Markdown file, as "$GITHUB_STEP_SUMMARY".',
    ),
)


def decide(title: str, gates: Sequence[Gate], files: GateFiles) -> None:
    """Report the gates in words and files. Raises BelowThreshold that names all that failed.

    `title` is the command with what it was about; without gates nothing is written. Raises UsageError for files
    without a gate: a build would take the missing test for a passed one.
    """
    if not gates:
        for option, path in (("--junit", files.junit), ("--summary", files.summary)):
            if path is not None:
                raise UsageError(
                    f"{option} {path}: there is no gate to report; add one, as --fail-under MEASURE=0.6"
                )
        return
    if files.junit is not None:
        files.junit.write_text(_junit(title, gates), encoding="utf-8")
    if files.summary is not None:
        with files.summary.open("a", encoding="utf-8") as file:
            file.write(_summary(title, gates))
    for gate in gates:
        if gate.passed:
            note(f"passed: {gate.why}")
    failed = [gate.why for gate in gates if not gate.passed]
    if failed:
        raise BelowThreshold("below what was asked for: " + "; ".join(failed))


def _junit(title: str, gates: Sequence[Gate]) -> str:
    """One test suite with one case a gate: the form that GitLab, Jenkins and GitHub actions read."""
    failed = sum(not gate.passed for gate in gates)
    counts = {"name": _xml(title), "tests": str(len(gates)), "failures": str(failed), "errors": "0"}
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", counts)
    for gate in gates:
        case = ElementTree.SubElement(suite, "testcase", classname=_xml(title), name=_xml(gate.name))
        if not gate.passed:
            ElementTree.SubElement(case, "failure", message=_xml(gate.why)).text = _xml(gate.why)
        else:
            ElementTree.SubElement(case, "system-out").text = _xml(gate.why)
    ElementTree.indent(suites)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"
    )


def _xml(text: str) -> str:
    """Text without the characters that XML cannot hold; ElementTree escapes the markup."""
    return _NOT_XML.sub("\ufffd", visible(text))


def _summary(title: str, gates: Sequence[Gate]) -> str:
    """A heading and a table. A file may hold the summaries of several commands, one after the other."""
    rows = [
        f"| {'passed' if gate.passed else '**failed**'} | {markdown.text(gate.name)} | {markdown.text(gate.why)} |"
        for gate in gates
    ]
    return "\n".join(
        [f"### {markdown.text(title)}", "", "| | gate | result |", "|---|---|---|", *rows, "", ""]
    )
