"""A key or a password is used, and neither printed nor stored."""

import base64
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.helpers import Judge, write_rows
from tests.loopback.process import ServerProcess
from tests.store.helpers import import_jsonl

KEY, USER, PASSWORD = "sk-canary-0123456789", "canary-user", "canary-password"
# The password travels as base64 of `user:password`.
SECRETS = (KEY, USER, PASSWORD, "canary", base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode())
KEYS = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch, no_way_out: None) -> None:
    """Keys in the environment."""
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a study: the one that the command runs in."""
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
@pytest.mark.parametrize("words", [["run", "stance", "-m"], ["models", "show"]], ids=["run", "check"])
def test_a_server_that_is_not_there(judge: Judge, folder: Path, vendor: str, words: list[str]) -> None:
    url = with_password(f"http://127.0.0.1:{unused_port()}/v1")
    done = judge(*words, f"{vendor}/m", "--base-url", url, code=3)
    assert "127.0.0.1" in done.err
    assert_nowhere(folder, done.out, done.err)


def test_a_run_with_a_password_in_its_address(judge: Judge, folder: Path, server: ServerProcess) -> None:
    url = with_password(server.url)
    words = ["run", "stance", "-m", "openai/m", "--base-url", url, "--answers", "json"]
    done = judge(*words)
    shown = judge("runs", "show")
    listed = judge("runs", "list", "--json")
    exported = judge("runs", "export")
    assert server.url.rstrip("/") in shown.out, "the address itself is kept"
    assert_nowhere(folder, done.out, done.err, shown.out, listed.out, exported.out)


def test_the_line_to_resume_does_not_repeat_a_password(
    judge: Judge, folder: Path, server: ServerProcess
) -> None:
    words = ["run", "stance", "-m", "openai/m", "--base-url", with_password(server.url), "--answers", "json"]
    done = judge(*words, "--max", "1000tokens", code=4)
    assert "to resume: the same command" in done.err
    assert_nowhere(folder, done.out, done.err)
    equals = [w for w in words if w != "--base-url" and "://" not in w] + [f"--base-url={words[5]}"]
    done = judge(*equals, "--max", "1000tokens", code=4)
    assert_nowhere(folder, done.out, done.err)


def test_a_key_that_is_refused_is_not_repeated(
    judge: Judge, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Like the real ones, the server puts the key it was given into its answer.
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-wrong")
    with ServerProcess("openai", "--key", KEY) as strict:
        words = ["openai/m", "--base-url", strict.url]
        done = judge("run", "stance", "-m", *words, code=3)
        checked = judge("models", "show", *words, code=3)
    assert "OPENAI_API_KEY" in done.err
    assert_nowhere(folder, done.out, done.err, checked.out, checked.err)


def test_a_dry_run_and_the_listings_do_not_show_them(judge: Judge, folder: Path) -> None:
    url = with_password("http://127.0.0.1:9/v1")
    dry = judge("run", "stance", "-m", "openai/m", "--base-url", url, "--estimate")
    models = judge("models", "show", "--json")
    assert_nowhere(folder, dry.out, dry.err, models.out, models.err)


def test_headers_and_query_from_the_environment(
    judge: Judge, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATE_PASS", "Bearer canary-header-77")
    monkeypatch.setenv("QUERY_KEY", "canary+query/88")
    monkeypatch.setenv("OTHER_KEY", KEY)
    options = ["--option", "header.X-Gate=env:GATE_PASS", "--option", "query.token=env:QUERY_KEY"]
    options += ["--option", "key=env:OTHER_KEY", "--option", 'body.provider.order=["a"]']
    with ServerProcess("openai", "--key", KEY, "--record") as strict:
        monkeypatch.setenv("OPENAI_API_KEY", "not-this-one")
        words = ["run", "stance", "-m", "openai/m", "--base-url", strict.url, "--answers", "json", *options]
        done = judge(*words)
        again = judge(*words, "--max", "1000tokens")
        bodies = strict.bodies()
    shown = judge("runs", "show", "--json")
    assert all(body["provider"] == {"order": ["a"]} for body in bodies)
    for name in ("header.x-gate", "query.token", "provider", "order"):
        assert name in shown.out
    # A free port may be that of the server that has just ended, and at a known address there is nothing to do.
    gone = judge(*words[:5], "http://127.0.0.1:9/v1", *words[6:], code=3)
    assert_nowhere(folder, done.out, done.err, again.out, again.err, shown.out, gone.out, gone.err)


@pytest.mark.parametrize(
    "option",
    ["header.X=canary", "header.X:canary", "query.k:canary", "key=canary", "header.X=env:canary key"],
)
def test_a_value_typed_in_the_wrong_place_is_not_repeated(judge: Judge, folder: Path, option: str) -> None:
    words = ["run", "stance", "-m", "openai/m", "--base-url", "http://127.0.0.1:9/v1"]
    done = judge(*words, "--option", option, code=2)
    assert_nowhere(folder, done.out, done.err)
