"""Every command that a message prints is one that the programs take, and names the study.

The messages are found in the source, so that one that no test prints is checked, too.
"""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from annotate.cli import main as annotate
from judge.cli import main as judge
from judge.commands import WITHOUT_STUDY, command, use_study
from tests.suites.helpers import Judge
from tests.test_house import HOUSE, ROOMS

PROGRAMS = {"judge": judge, "annotate": annotate}
PROSE = (
    "needs", "does", "of", "printed", "wrote", "takes", "tests", "calibrates", "goes", "writes", "opens", "or push",
)  # fmt: skip
"""What follows a command's name in a sentence about it: nothing there is to be typed."""


def every_command(group: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(group, click.Group):
        yield path, group
        return
    context = click.Context(group)
    for name in group.list_commands(context):
        member = group.get_command(context, name)
        assert member is not None
        yield from every_command(member, f"{path} {name}")


COMMANDS = dict(every for name, main in PROGRAMS.items() for every in every_command(main, name))


def split(words: list[str]) -> tuple[str, list[str]]:
    """The command's name and the words after it."""
    for n in (4, 3, 2):
        if (name := " ".join(words[:n])) in COMMANDS:
            return name, words[n:]
    raise AssertionError(f"no such command: {words}")


def check(words: list[str], whole: bool = True) -> None:
    """Raises click.UsageError for an option that the command has not, or a required one that is missing."""
    name, rest = split(words)
    found = COMMANDS[name]
    context = click.Context(found)
    given, left, _ = found.make_parser(context).parse_args(list(rest))
    assert not left, f"{words}: {left} is too much"
    if whole:
        lacking = [p.name for p in found.params if p.required and not given.get(str(p.name))]
        assert lacking == [], f"{words} lacks {lacking}"
    if any(p.name == "db" and "-d" in p.opts for p in found.params) and name != "judge demo":
        assert not name.startswith(WITHOUT_STUDY)
    else:
        assert name.startswith(WITHOUT_STUDY), f"{name} has no -d"


def literal(node: ast.expr) -> str | None:
    """A text in the source; values in it are two words, which must be quoted. None for another expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(v.value) if isinstance(v, ast.Constant) else "VALUE" for v in node.values)
    return None


def sources() -> Iterator[tuple[str, ast.Module]]:
    for room in ROOMS:
        for path in sorted((HOUSE / room).rglob("*.py")):
            yield str(path.relative_to(HOUSE)), ast.parse(path.read_text(encoding="utf-8"))


def called(node: ast.AST) -> str:
    return str(getattr(node.func, "attr", getattr(node.func, "id", ""))) if isinstance(node, ast.Call) else ""


def written() -> Iterator[tuple[str, list[str], bool]]:
    """The calls of `command` in the source: where, the words with values for what is computed, whether these are all."""
    for path, module in sources():
        for node in ast.walk(module):
            if called(node) not in ("command", "import_words") or not isinstance(node, ast.Call):
                continue
            texts = [literal(arg) for arg in node.args]
            if called(node) == "import_words":
                texts = ["judge systems import", *texts]
            elif not texts or texts[0] is None or not texts[0].startswith(tuple(PROGRAMS)):
                continue
            rest = [text if text is not None else "two words" for text in texts[1:]]
            starred = [isinstance(arg, ast.Starred) for arg in node.args]
            rest = (
                [word for word, star in zip(rest, starred[-len(rest) :], strict=True) if not star]
                if rest
                else []
            )
            yield f"{path}:{node.lineno}", [*str(texts[0]).split(), *rest], not any(starred)


def test_every_printed_command_is_one_that_the_program_takes() -> None:
    found = list(written())
    assert len(found) > 100, "the messages were read"
    wrong = []
    for where, words, whole in found:
        try:
            check(words, whole)
        except (click.UsageError, AssertionError) as error:
            wrong.append(f"{where}: {error}")
    assert wrong == []


def test_no_message_writes_a_command_by_itself() -> None:
    """A text that names a command is built by `judge.commands.command`, or is a sentence about it."""
    names = "|".join(sorted(map(re.escape, COMMANDS), key=len, reverse=True))
    pattern = re.compile(rf"(?<!a )\b({names})\b(?! (?:{'|'.join(PROSE)})\b)(?! \()(?!['`]|[^`]*`)")
    found = []
    for path, module in sources():
        if path in ("judge/commands.py", "judge/prompts/manual.py") or "/demo" in path:
            continue
        apart: set[int] = set()
        for node in ast.walk(module):
            help_of = [
                k.value for k in getattr(node, "keywords", ()) if k.arg in ("help", "short_help", "epilog")
            ]
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                help_of.append(node.value)
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "TITLE":
                help_of.append(node.value)
            if called(node) in ("command", "import_words", "decide", "option"):
                help_of.append(node)  # type: ignore[arg-type]
            apart |= {id(part) for text in help_of for part in ast.walk(text)}
        for node in ast.walk(module):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in apart:
                found += [f"{path}:{node.lineno}: {m[0]}" for m in pattern.finditer(node.value)]
    assert found == []


def test_the_study_is_named_unless_a_command_takes_it_anyway(monkeypatch: pytest.MonkeyPatch) -> None:
    assert command("judge runs list", study="study.db") == "judge runs list"
    assert command("judge runs list", study="my study.db") == "judge runs list -d 'my study.db'"
    assert command("judge tasks show", study="other.db") == "judge tasks show"
    use_study("used.db")
    assert command("judge runs show", "my run") == "judge runs show 'my run' -d used.db"
    # With the variable, a command without -d would take another study, or none in another terminal.
    monkeypatch.setenv("JUDGE_DB", "elsewhere.db")
    assert command("judge runs list", study="study.db") == "judge runs list -d study.db"
    assert command("judge runs list", study="elsewhere.db") == "judge runs list -d elsewhere.db"


def test_hints_of_a_study_of_another_name_name_it(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By -d, and by JUDGE_DB: what is printed is typed in a shell that may have neither."""
    (tmp_path / "rows.jsonl").write_text(
        '{"id": "1", "question": "Is it so?", "passages": ["It is."]}\n', "utf-8"
    )
    (tmp_path / "my list.trec").write_text("1 Q0 1/1 1 1.0 x\n", "utf-8")
    judge("items", "import", "jsonl", "rows.jsonl", "-d", "my study.db")
    hints = [
        judge("items", "show", "nothing", "-d", "my study.db", code=1).err,
        judge("systems", "import", "my list.trec", "--system", "my rag", "-d", "my study.db", code=2).err,
    ]
    monkeypatch.setenv("JUDGE_DB", "my study.db")
    hints.append(judge("runs", "show", code=None).err + judge("items", "show", "nothing", code=1).err)
    for told in hints:
        words = shlex.split(told[told.rindex("judge ", told.index(":")) :].strip())
        check(words)
        assert words[-2:] == ["-d", "my study.db"], told
    assert "'my list.trec' --system 'my rag'" in hints[1]
