"""Gates: the conditions that a build rests on, with exit code 5, a JUnit file and a Markdown summary.

Every command that can stop a build makes a list of `Gate` and hands it to `decide`. What a gate tests is the command's
affair; how it is reported is the same for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar
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


def _undecided(context: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    """Write the JUnit file at once, as an error, until `decide` replaces it with the outcome.

    So a command that is killed, stopped by a limit or ended by an error leaves neither an old "passed" nor no file at all.
    """
    if path is not None:
        if path.suffix != ".xml":
            raise UsageError(f"--junit {path}: name a file that ends in .xml")
        why = "the command ended before its gates were decided: see what it printed"
        path.write_text(_junit(context.command_path, [Gate("decided", False, why)], "error"), "utf-8")
    return path


def _markdown_file(context: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a file that is no Markdown: the summary is appended, and the study's name is easily typed here."""
    # GitHub names its own file without an ending.
    if path is not None and path.suffix not in {"", ".md"}:
        raise UsageError(f'--summary {path}: name a file that ends in .md, or "$GITHUB_STEP_SUMMARY"')
    return path


gate_options = together(
    click.option(
        "--junit",
        type=TO_WRITE,
        callback=_undecided,
        help="Write the outcome of the gates as JUnit XML: FILE.xml.",
    ),
    click.option(
        "--summary",
        type=TO_WRITE,
        callback=_markdown_file,
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
        files.junit.write_text(_junit(title, gates, "failure"), encoding="utf-8")
    if files.summary is not None:
        with files.summary.open("a", encoding="utf-8") as file:
            file.write(_summary(title, gates))
    for gate in gates:
        if gate.passed:
            note(f"passed: {gate.why}")
    failed = [gate.why for gate in gates if not gate.passed]
    if failed:
        raise BelowThreshold("below what was asked for: " + "; ".join(failed))


def _junit(title: str, gates: Sequence[Gate], kind: Literal["failure", "error"]) -> str:
    """One test suite with one case a gate: the form that GitLab, Jenkins and GitHub actions read.

    `kind` says what a gate that did not pass is: a failed test, or one that could not be carried out.
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
