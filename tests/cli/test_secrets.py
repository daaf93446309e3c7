"""A key or a password is used, and neither printed nor stored."""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.helpers import process, write_rows
from tests.loopback.process import ServerProcess
from tests.store.helpers import import_jsonl

KEY, USER, PASSWORD = "sk-canary-0123456789", "canary-user", "canary-password"
# The password travels as base64 of `user:password`.
SECRETS = (KEY, USER, PASSWORD, "canary", base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode())
KEYS = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a study."""
    import_jsonl(tmp_path / "study.db", write_rows(tmp_path / "pairs.jsonl"))
    return tmp_path


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    with ServerProcess("openai") as started:
        yield started


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def assert_nowhere(folder: Path, *texts: str) -> None:
    files = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert "study.db" in files
    for secret in SECRETS:
        for text in texts:
            assert secret not in text
        for name, content in files.items():
            assert secret.encode() not in content, name


def with_password(url: str) -> str:
    return url.replace("http://", f"http://{USER}:{PASSWORD}@")


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
@pytest.mark.parametrize("words", [["run", "stance", "-m"], ["models", "check"]], ids=["run", "check"])
def test_a_server_that_is_not_there(folder: Path, vendor: str, words: list[str]) -> None:
    url = with_password(f"http://127.0.0.1:{unused_port()}/v1")
    done = process(*words, f"{vendor}/m", "--base-url", url, cwd=folder, code=3, env=KEYS)
    assert "127.0.0.1" in done.stderr
    assert_nowhere(folder, done.stdout, done.stderr)


def test_a_run_with_a_password_in_its_address(folder: Path, server: ServerProcess) -> None:
    url = with_password(server.url)
    words = ["run", "stance", "-m", "openai/m", "--base-url", url, "--answers", "json"]
    done = process(*words, cwd=folder, env=KEYS)
    shown = process("runs", "show", cwd=folder)
    listed = process("runs", "list", "--json", cwd=folder)
    exported = process("runs", "export", cwd=folder)
    assert server.url.rstrip("/") in shown.stdout, "the address itself is kept"
    assert_nowhere(folder, done.stdout, done.stderr, shown.stdout, listed.stdout, exported.stdout)


def test_the_line_to_resume_does_not_repeat_a_password(folder: Path, server: ServerProcess) -> None:
    words = ["run", "stance", "-m", "openai/m", "--base-url", with_password(server.url), "--answers", "json"]
    done = process(*words, "--max-tokens", "1", cwd=folder, code=4, env=KEYS)
    assert "to resume: the same command" in done.stderr
    assert_nowhere(folder, done.stdout, done.stderr)
    equals = [w for w in words if w != "--base-url" and "://" not in w] + [f"--base-url={words[5]}"]
    done = process(*equals, "--max-tokens", "1", cwd=folder, code=4, env=KEYS)
    assert_nowhere(folder, done.stdout, done.stderr)


def test_a_key_that_is_refused_is_not_repeated(folder: Path) -> None:
    # Like the real ones, the server puts the key it was given into its answer.
    wrong = {"OPENAI_API_KEY": "sk-canary-wrong"}
    with ServerProcess("openai", "--key", KEY) as strict:
        words = ["openai/m", "--base-url", strict.url]
        done = process("run", "stance", "-m", *words, cwd=folder, code=3, env=wrong)
        checked = process("models", "check", *words, cwd=folder, code=3, env=wrong)
    assert "OPENAI_API_KEY" in done.stderr
    assert_nowhere(folder, done.stdout, done.stderr, checked.stdout, checked.stderr)


def test_a_dry_run_and_the_listings_do_not_show_them(folder: Path) -> None:
    url = with_password("http://127.0.0.1:9/v1")
    dry = process("run", "stance", "-m", "openai/m", "--base-url", url, "--dry-run", cwd=folder, env=KEYS)
    models = process("models", "list", "--json", cwd=folder, env=KEYS)
    assert_nowhere(folder, dry.stdout, dry.stderr, models.stdout, models.stderr)
