"""An option or a command of an earlier version ends with 2 and one line that names what to type instead."""

from collections.abc import Iterator

import click
import pytest

from annotate.cli import main as annotate
from judge import removed
from judge.cli import main as judge
from judge.removed import explain_command, explain_option, table
from tests.test_commands import COMMANDS, check

PROGRAMS = {"judge": judge, "annotate": annotate}
REMOVED_OPTIONS, REMOVED_COMMANDS = table()


def printed(words: list[str], capfd: pytest.CaptureFixture[str]) -> str:
    """What a command line that is refused prints on stderr."""
    with pytest.raises(SystemExit) as ended:
        PROGRAMS[words[0]](words[1:], prog_name=words[0])
    assert ended.value.code == 2
    return capfd.readouterr().err


def options(command: click.Command) -> set[str]:
    return {name for param in command.params for name in (*param.opts, *param.secondary_opts)}


def places(key: str) -> Iterator[str]:
    """The commands for which an entry of REMOVED_OPTIONS counts."""
    *words, _ = key.split()
    instead = REMOVED_OPTIONS[key]
    for name, command in COMMANDS.items():
        if words and name.split()[: len(words)] == words:
            yield name
        if not words and instead.startswith("-") and instead.split()[0] in options(command):
            yield name


@pytest.mark.parametrize("key", REMOVED_OPTIONS)
def test_a_removed_option_names_its_replacement(key: str, capfd: pytest.CaptureFixture[str]) -> None:
    found, option = list(places(key)), key.split()[-1]
    assert found, "no command is meant"
    for name in found:
        assert option not in options(COMMANDS[name]), f"{name} still has it"
        told = printed([*name.split(), option], capfd)
        assert told == f"{name.split()[0]}: {explain_option(name, option, options(COMMANDS[name]))}\n"
        assert REMOVED_OPTIONS[key] in told


@pytest.mark.parametrize("key", REMOVED_COMMANDS)
def test_a_removed_command_names_its_replacement(key: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert key not in COMMANDS
    told = printed(key.split(), capfd)
    assert told == f"{key.split()[0]}: {explain_command(key)}\n"
    assert REMOVED_COMMANDS[key] in told


@pytest.mark.parametrize("instead", [*REMOVED_OPTIONS.values(), *REMOVED_COMMANDS.values()])
def test_what_to_type_instead_exists(instead: str) -> None:
    words = instead.split()
    if words[0] in PROGRAMS:
        check([word for word in words if word not in ("-d", "STUDY")])
    elif words[0].startswith("-"):
        assert any(words[0] in options(command) for command in COMMANDS.values())
    else:
        assert instead.endswith(".")


def test_an_option_is_looked_up_by_its_command_first(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {
        "--cost": "--max 5usd",
        "judge suite --cost": "--limit 5",
        "judge runs --gone": "It had no user.",
    }
    monkeypatch.setattr(removed, "table", lambda: (rows, {}))
    assert (
        explain_option("judge run", "--cost", {"--max"})
        == "judge run --cost was removed. Type instead: --max 5usd"
    )
    assert explain_option("judge run", "--cost", {"--db"}) is None, "this command never had it"
    assert (
        explain_option("judge suite urag", "--cost", set())
        == "judge suite urag --cost was removed. Type instead: --limit 5"
    )
    assert (
        explain_option("judge runs show", "--gone", set())
        == "judge runs show --gone was removed. It had no user."
    )
    assert explain_option("judge run", "--new", set()) is None


def test_other_wrong_words_are_click_s_errors(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removed, "table", lambda: ({}, {"judge runs old": "judge runs list"}))
    assert (
        printed(["judge", "runs", "old"], capfd)
        == "judge: judge runs old was removed. Type instead: judge runs list\n"
    )
    assert "No such command 'nothing'" in printed(["judge", "runs", "nothing"], capfd)
    assert "No such option" in printed(["judge", "runs", "list", "--nothing"], capfd)
