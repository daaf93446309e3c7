"""What a file from somebody else may not choose: who receives a key, which variable is read, which folder is used.

A canary is in every variable, and servers record all that they receive. A server on this machine stands for one far away
where a test says that no address is loopback.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml

from judge import permissions
from judge.addresses import ServerAddress, server
from judge.errors import UsageError
from judge.papers.engine.steps import Step
from judge.permissions import Allowed, check_server
from judge.prompts import load_task
from judge.providers import base as providers
from judge.providers.base import Settings
from tests.cli.helpers import Judge, write_rows
from tests.jobs.helpers import submit, write_batch
from tests.loopback.batches_server import OpenAIBatchServer
from tests.loopback.openai_server import OpenAIServer
from tests.loopback.wire import Out, threaded
from tests.real import ROOT
from tests.store.helpers import import_jsonl

TYPED = ("run", "stance", "-m", "openai/x")
CANARIES = {
    name: f"canary-{name.lower()}"
    for name in (
        "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "QWEN_KEY",
        "AWS_SECRET_ACCESS_KEY", "DATABASE_PASSWORD",
    )
}  # fmt: skip


class Recording:
    """Keeps everything that comes, whatever it asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.received: list[str] = []

    def respond(self, method: str, path: str, head: str, payload: bytes) -> Out:
        self.received.append(f"{head}\n{payload.decode()}")
        return super().respond(method, path, head, payload)  # type: ignore[misc, no-any-return]

    def canaries(self) -> set[str]:
        """The variables whose values came."""
        return {name for name, value in CANARIES.items() if any(value in text for text in self.received)}


class Server(Recording, OpenAIServer):
    pass


class Batches(Recording, OpenAIBatchServer):
    pass


@pytest.fixture(autouse=True)
def canaries(monkeypatch: pytest.MonkeyPatch, no_way_out: None) -> None:
    for name, value in CANARIES.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def judging(judge: Judge, tmp_path: Path) -> Judge:
    """The command in a folder with a study."""
    import_jsonl(tmp_path / "study.db", write_rows(tmp_path / "pairs.jsonl"))
    return judge


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """No address is on this machine."""
    monkeypatch.setattr(ServerAddress, "is_loopback", property(lambda at: False))


@contextmanager
def listening() -> Iterator[Server]:
    with threaded(Server()) as found:  # type: ignore[arg-type]
        yield found  # type: ignore[misc]


def recipe(folder: Path, **member: Any) -> Path:
    """A panel of somebody else: one member that costs nothing, and one that goes where its author wants."""
    task = load_task("stance")
    panel = {"method": "majority", "members": [{"model": "scripted/hash"}, {"model": "openai/x", **member}]}
    document = {"recipe": 1, "task": task.name, "task_sha256": task.sha256, "field": "stance", "panel": panel}
    path = folder / "panel.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def words(path: Path, *more: str) -> list[str]:
    return ["run", "stance", "--recipe", str(path), *more]


# Servers and variables that a recipe names


def test_a_server_of_ones_own_is_asked_without_a_key_and_without_an_option(
    judging: Judge, tmp_path: Path
) -> None:
    """On this machine, by a recipe, while keys for others are in the environment."""
    with listening() as there:
        judging(*words(recipe(tmp_path, base_url=there.url)), code=None)
        assert there.received and there.canaries() == set()


LOCAL = re.compile(
    r"^\$ (judge .*--base-url (http://(?:localhost|127\.0\.0\.1):\d+/v1)[^#\n]*)", re.MULTILINE
)
COMMANDS = [
    found
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for found in LOCAL.findall(page.read_text("utf-8"))
]


@pytest.mark.parametrize(("command", "url"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_a_command_of_the_documentation_for_a_server_of_ones_own_works_as_it_is(
    judging: Judge, tmp_path: Path, command: str, url: str
) -> None:
    """As printed, but for the port; and nothing asks for an option."""
    (tmp_path / "prices.json").write_text('{"openai/my-model": {"input": 0.25, "output": 2.0}}')
    with listening() as there:
        program, *words = shlex.split(command.replace(url, there.url))
        done = judging(*words, code=None)
        # 4: the replies of this server are no labels of every task's form.
        assert program == "judge" and done.code in (0, 4) and done.out.startswith("run 01")
        assert "OPENAI_API_KEY" in there.canaries() and "--allow" not in done.err


def test_the_documentation_has_such_commands() -> None:
    assert len(COMMANDS) >= 3


def test_the_panel_of_the_documentation_needs_one_option_once(judging: Judge, tmp_path: Path) -> None:
    with listening() as there:
        path = recipe(tmp_path, base_url=there.url, option={"key": "env:QWEN_KEY"})
        done = judging(*words(path), code=2)
        assert done.err.count("\n") == 1
        assert "the environment variable QWEN_KEY" in done.err and "add --allow env:QWEN_KEY" in done.err
        assert there.received == []
        judging(*words(path, "--allow", "env:QWEN_KEY"), code=None)
        assert there.canaries() == {"QWEN_KEY"}
        there.received.clear()
        judging(*words(path, "--repeats", "2"), code=None)
        assert there.canaries() == {"QWEN_KEY"}, "what was typed once is remembered"
    # The same variable goes to no other server: another port may be another person's.
    with listening() as other:
        path = recipe(tmp_path, base_url=other.url, option={"key": "env:QWEN_KEY"})
        assert "QWEN_KEY" in judging(*words(path), code=2).err
        assert other.received == []


STEALING: dict[str, dict[str, Any]] = {
    "a key": {"key": "env:DATABASE_PASSWORD"},
    "a header": {"header.X-Data": "env:DATABASE_PASSWORD"},
    "the query": {"query.k": "env:DATABASE_PASSWORD"},
    "with blanks": {"query.k": " env:DATABASE_PASSWORD "},
    "the usual key of this vendor": {"header.X-Data": "env:OPENAI_API_KEY"},
    "the key of another vendor": {"key": "env:ANTHROPIC_API_KEY"},
}


@pytest.mark.parametrize("option", STEALING.values(), ids=STEALING)
def test_a_variable_that_a_recipe_names_is_not_sent(
    judging: Judge, tmp_path: Path, option: dict[str, Any]
) -> None:
    with listening() as there:
        done = judging(*words(recipe(tmp_path, base_url=there.url, option=option)), code=2)
        assert "--allow env:" in done.err
        assert there.received == [] and not any(value in done.err for value in CANARIES.values())


def test_a_variable_is_not_sent_to_the_vendor_either(judging: Judge, tmp_path: Path) -> None:
    """Without an address: the vendor's own server, or the one that OPENAI_BASE_URL names."""
    done = judging(*words(recipe(tmp_path, option={"key": "env:DATABASE_PASSWORD"})), code=2)
    assert "add --allow env:DATABASE_PASSWORD" in done.err


def test_a_server_that_a_recipe_names_is_not_asked(judging: Judge, tmp_path: Path, far: None) -> None:
    with listening() as there:
        host = f"127.0.0.1:{there.port}"
        done = judging(*words(recipe(tmp_path, base_url=there.url)), code=2)
        assert f"the host {host}" in done.err and f"--allow {host}" in done.err
        assert there.received == []
        both = recipe(tmp_path, base_url=there.url, option={"key": "env:QWEN_KEY"})
        done = judging(*words(both), code=2)
        assert f"--allow {host} --allow env:QWEN_KEY" in done.err and done.err.count("\n") == 1
        assert "--allow env:" in judging(*words(both, "--allow", "127.0.0.1"), code=2).err
        assert "--allow" in judging(*words(both, "--allow", "env:QWEN_KEY"), code=2).err
        assert there.received == []
        judging(*words(recipe(tmp_path, base_url=there.url), "--allow", host), code=None)
        assert there.canaries() == {"OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"} & there.canaries()
        assert "OPENAI_API_KEY" in there.canaries(), "as with --base-url"
        there.received.clear()
        judging(*words(recipe(tmp_path, base_url=there.url), "--repeats", "2"), code=None)
        assert "OPENAI_API_KEY" in there.canaries(), "remembered, with its variable"


def test_what_the_user_types_needs_no_option_and_is_remembered(
    judging: Judge, tmp_path: Path, far: None
) -> None:
    with listening() as there:
        judging(*TYPED, "--base-url", there.url, "--option", "key=env:QWEN_KEY", code=None)
        assert "QWEN_KEY" in there.canaries() and "OPENAI_API_KEY" not in there.canaries()
        there.received.clear()
        judging(*words(recipe(tmp_path, base_url=there.url, option={"key": "env:QWEN_KEY"})), code=None)
        # The usual key was not typed for this server.
        done = judging(
            *words(recipe(tmp_path, base_url=there.url, option={"key": "env:OPENAI_API_KEY"})), code=2
        )
        assert "--allow env:OPENAI_API_KEY" in done.err
        judging(*words(recipe(tmp_path, base_url=there.url), "--repeats", "2"), code=None)
        assert "OPENAI_API_KEY" not in there.canaries()
        memory = permissions.configuration_folder() / permissions.FILE
        rows = [json.loads(line) for line in memory.read_text().splitlines()]
        assert rows == [["server", f"http://127.0.0.1:{there.port}", "QWEN_KEY"]]
        # A line that is deleted permits nothing any more.
        memory.write_text("")
        permissions._named.clear()  # a new process
        there.received.clear()
        again = words(recipe(tmp_path, base_url=there.url, option={"key": "env:QWEN_KEY"}))
        done = judging(*again, "--repeats", "3", code=2)
        assert "--allow env:QWEN_KEY" in done.err and not there.canaries()


def test_the_server_of_the_environment_is_the_users(
    judging: Judge, tmp_path: Path, far: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listening() as there:
        monkeypatch.setenv("OPENAI_BASE_URL", there.url)
        judging(*words(recipe(tmp_path)), code=None)
        judging(*words(recipe(tmp_path, base_url=there.url, **{"as": "again"})), code=None)
        assert "OPENAI_API_KEY" in there.canaries()


def test_a_redirect_is_not_followed(judging: Judge, tmp_path: Path) -> None:
    with listening() as there, listening() as evil:
        there.respond = lambda *given: Out(b"", 307, f"Location: {evil.url}/chat/completions\r\n".encode())  # type: ignore[method-assign]
        judging(*TYPED, "--base-url", there.url, "--option", "key=env:QWEN_KEY", code=None)
        assert evil.received == []


def test_a_recipe_beside_the_recipe_names_no_server(judging: Judge, tmp_path: Path) -> None:
    """A member's recipe is another file, perhaps behind a link; it has no field for a server or an option."""
    task = load_task("stance")
    own = {
        "recipe": 1, "task": task.name, "task_sha256": task.sha256, "field": "stance", "answers": "json",
        "label_order": "declared", "orders": 1, "guidelines": False, "base_url": "https://evil.example/v1",
        "option": {"key": "env:DATABASE_PASSWORD"},
    }  # fmt: skip
    (tmp_path / "real.yaml").write_text(yaml.safe_dump(own))
    (tmp_path / "link.yaml").symlink_to(tmp_path / "real.yaml")
    done = judging(*words(recipe(tmp_path, recipe="link.yaml")), code=1)
    assert "base_url" in done.err and "DATABASE" not in done.err


@pytest.mark.parametrize(
    "option",
    [
        {"url": "http://evil.example/x"},
        {"url": "see https://evil.example:444"},
        {"url": "HTTPS://user:password@EVIL.example./v1"},
        {"host": "evil.example"},
        {"host": "evil.example:444/v1?x"},
        {"host": "user:password@evil.example:80"},
        {"host": "try evil.example"},
        {"hosts": "evil.example,evil.example:444"},
        {"hosts": '["evil.example"]'},
        {"hosts": "[evil.example]"},
        {"server": '{"host": "evil.example:80"}'},
        {"server": "host=evil.example"},
        {"server": "//evil.example/v1"},
        {"server": "<evil.example>;strict"},
        {"token": "env:DATABASE_PASSWORD"},
    ],
)
def test_options_of_a_plugin_name_no_server_and_no_variable(option: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"--allow (evil\.example(:80|:444)?|env:DATABASE_PASSWORD)$"):
        check_server("panel.yaml", "echo", None, option)


def test_options_of_a_plugin_that_is_named_as_a_module_of_ours() -> None:
    """`http` is no provider of ours, so a plugin may have the name."""
    with pytest.raises(UsageError, match=r"--allow evil\.example$"):
        check_server("panel.yaml", "http", None, {"host": "evil.example"})
    assert set(providers.vendors()) == permissions.BUILT_IN


def test_a_printed_command_names_no_server_of_a_plugin_that_a_study_names() -> None:
    options = {"url": "http://evil.example", "host": "evil.example", "strict": "1"}
    step = Step("run", "why", "stance", model="echo/x", options={"settings": options})
    assert "--option strict=1" in step.command("study.db") and "evil" not in step.command("study.db")
    step = Step(
        "run", "why", "stance", model="openai/x", options={"settings": {"body.x": '"http://mine.example"'}}
    )
    assert "mine.example" in step.command("study.db")


@pytest.mark.parametrize("value", ["198.51.100.7", "[2001:db8::7]:8000", "gpu:8000"])
def test_an_address_of_a_plugin_without_a_name(value: str) -> None:
    with pytest.raises(UsageError, match=r"--allow \S*(198\.51\.100\.7|2001:db8::7|gpu)"):
        check_server("panel.yaml", "echo", None, {"host": value})


@pytest.mark.parametrize(
    "value", ["0.5", "1e-3", "strict", "gpt-4.1", "a b", '{"a": 1}', "-1", "", "a=b", "/a/b.gguf"]
)
def test_an_option_of_a_plugin_that_is_no_address(value: str) -> None:
    assert check_server("panel.yaml", "echo", None, {"x": value}) == {"x": value}


@pytest.mark.parametrize(
    "option",
    [
        {"body.provider": '{"referer": "https://mine.example"}'},
        {"body.schema": '"https://json-schema.org/draft"'},
        {"query.callback": "https://mine.example/x"},
    ],
)
def test_an_address_in_what_is_sent_is_no_server(
    judging: Judge, tmp_path: Path, option: dict[str, str]
) -> None:
    """Our own providers send the body and the query to the server that is asked, whatever they say."""
    with listening() as there:
        judging(*words(recipe(tmp_path, base_url=there.url, option=option)), code=None)
        assert any(value.strip('"') in unquote(text) for value in option.values() for text in [
            text.replace("\\", "") for text in there.received
        ]) and there.canaries() == set()  # fmt: skip


@pytest.mark.parametrize("vendor", ["vertex", "bedrock"])
@pytest.mark.parametrize(
    "region", ["evil.example/", "evil.example#", "us@evil.example/", "us\\.evil", "us:80"]
)
def test_a_region_is_no_host(vendor: str, region: str) -> None:
    """The client writes it into the address that gets the cloud's credentials."""
    with pytest.raises(UsageError, match="--option region="):
        providers.get(f"{vendor}/x", Settings(options={"region": region, "project": "p"}))


def test_a_recipe_behind_a_link_is_a_file_like_others(judging: Judge, tmp_path: Path, far: None) -> None:
    with listening() as there:
        (tmp_path / "mine.yaml").symlink_to(recipe(tmp_path, base_url=there.url))
        done = judging(*words(tmp_path / "mine.yaml"), code=2)
        assert f"mine.yaml: sets the host 127.0.0.1:{there.port}" in done.err and there.received == []


def test_a_name_and_a_password_in_an_address_change_no_host(
    judging: Judge, tmp_path: Path, far: None
) -> None:
    """Neither as a disguise nor shown in the refusal."""
    with listening() as there:
        for login in ("api.openai.com", "api.openai.com:443", "api.openai.com%2f"):
            url = there.url.replace("//", f"//{login}@")
            done = judging(*words(recipe(tmp_path, base_url=url)), code=2)
            assert f"the host 127.0.0.1:{there.port}," in done.err and "openai.com" not in done.err
        assert there.received == []


def test_python_takes_no_server_of_a_recipe_either(judging: Judge, tmp_path: Path, far: None) -> None:
    from adjudge import Study

    with listening() as there:
        study = Study(tmp_path / "study.db")
        path = recipe(tmp_path, base_url=there.url)
        with pytest.raises(UsageError, match=f"the host 127.0.0.1:{there.port}"):
            study.run("stance", recipe=path)
        assert there.received == []


@pytest.mark.parametrize("vendor", ["bedrock", "vertex", "azure", "echo"])
def test_a_cloud_is_not_asked_at_a_server_of_a_recipe(vendor: str) -> None:
    """They send credentials that they find by themselves: on this machine, too."""
    with pytest.raises(UsageError, match=r"--allow 127.0.0.1:8000"):
        check_server("panel.yaml", vendor, "http://127.0.0.1:8000", {})


async def test_anthropics_other_credentials_do_not_go_to_a_server_without_a_key() -> None:
    from judge.providers.anthropic import Provider

    options = check_server("panel.yaml", "anthropic", "http://127.0.0.1:8000", {})
    provider = Provider("x", Settings("http://127.0.0.1:8000", options=options))
    door: Any = provider._connect()
    sent = json.dumps(dict(door._session.headers))
    await provider.close()
    assert "anthropic-version" in sent and "canary" not in sent


# One spelling of a host


@pytest.mark.parametrize(
    "url",
    [
        "https://api.openai.com/v1", "https://API.OpenAI.com/v1", "https://api.openai.com./v1", "https://api.openai.com:443",
        "https://user:password@api.openai.com/v1", "https://evil.example\\@api.openai.com/v1", " https://eu.api.openai.com ",
    ],
)  # fmt: skip
def test_the_vendors_own_server_by_any_spelling(url: str) -> None:
    assert check_server("panel.yaml", "openai", url, {}) == {}, "the key is sent"


@pytest.mark.parametrize(
    "url",
    [
        "http://api.openai.com/v1", "https://api.openai.com.evil.example/v1", "https://evilopenai.com", "https://api.openai.com:8443@evil.example",
        "https://api.openai.com@evil.example/v1", "https://api.anthropic.com", "https://localhost.evil.example",
        "http://127.0.0.1.evil.example", "http://2130706433/", "http://127.1/", "http://0.0.0.0:80", "https://ａpi.openai.com.evil.example", "https://evil.example\\.openai.com", "https://evil.example%2f.openai.com/",
        "https://evil.example;.openai.com/",
    ],
)  # fmt: skip
def test_another_server_by_any_spelling(url: str) -> None:
    with pytest.raises(UsageError, match=r"--allow|the base URL must have"):
        check_server("panel.yaml", "openai", url, {})


def test_what_is_permitted_by_one_spelling_is_permitted_by_all() -> None:
    for given in ("GPU.Lab", "gpu.lab.", "gpu.lab", "https://gpu.lab/v1"):
        allowed = Allowed(hosts=(given,))
        for url in ("https://gpu.lab/v1", "https://GPU.LAB./v1", "https://me:pw@gpu.lab:443/"):
            assert check_server("panel.yaml", "openai", url, {}, allowed) == {}
    with pytest.raises(UsageError, match=r"--allow gpu.lab:8000"):
        check_server("panel.yaml", "openai", "http://gpu.lab:8000", {}, Allowed(hosts=("gpu.lab:9000",)))
    with pytest.raises(UsageError, match=r"--allow a b: must be a host"):
        check_server("panel.yaml", "openai", "http://gpu.lab:8000", {}, Allowed(hosts=("a b",)))


def test_a_server_that_was_typed_as_https_is_another_one_by_http() -> None:
    check_server(None, "openai", "https://gpu.lab:8000", {"key": "env:QWEN_KEY"})
    check_server("panel.yaml", "openai", "https://gpu.lab:8000", {"key": "env:QWEN_KEY"})
    with pytest.raises(UsageError, match=r"--allow gpu.lab:8000 --allow env:QWEN_KEY"):
        check_server("panel.yaml", "openai", "http://gpu.lab:8000", {"key": "env:QWEN_KEY"})


def test_without_a_place_to_remember_the_process_remembers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    check_server(None, "openai", "https://gpu.lab", {"key": "env:QWEN_KEY"})
    check_server("study.db", "openai", "https://gpu.lab", {"key": "env:QWEN_KEY"})


def test_a_damaged_line_of_the_memory_permits_nothing_and_the_others_stay() -> None:
    folder = permissions.configuration_folder()
    folder.mkdir(parents=True)
    lines = [
        '["server", "https://one.lab:443", null]',
        "broken",
        '["server", ["https://two.lab:443"], null]',
        "[]",
    ]
    (folder / permissions.FILE).write_text("\n".join(lines))
    check_server("panel.yaml", "openai", "https://one.lab", {})
    with pytest.raises(UsageError, match=r"--allow two.lab"):
        check_server("panel.yaml", "openai", "https://two.lab", {})


def test_only_the_user_may_write_the_memory() -> None:
    before = os.umask(0)
    try:
        check_server(None, "openai", "https://gpu.lab", {})
    finally:
        os.umask(before)
    assert (permissions.configuration_folder() / permissions.FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("vendor", ["azure", "bedrock", "vertex", "echo"])
def test_a_server_of_one_vendor_gets_no_credentials_of_a_cloud(vendor: str) -> None:
    """The user asked it as OpenAI's; a cloud's client would send it what it finds by itself."""
    check_server(None, "openai", "https://gpu.lab", {})
    with pytest.raises(UsageError, match=r"--allow gpu.lab"):
        check_server("panel.yaml", vendor, "https://gpu.lab", {})
    check_server(None, vendor, "https://gpu.lab", {})
    check_server("panel.yaml", vendor, "https://gpu.lab", {})


def test_a_token_beside_the_key_is_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anthropic's client sends ANTHROPIC_AUTH_TOKEN, also where no key is set."""
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    assert check_server("panel.yaml", "anthropic", "http://127.0.0.1:8000", {}) == {"key": "none"}
    check_server(None, "anthropic", "https://gpu.lab", {})
    assert check_server("panel.yaml", "anthropic", "https://gpu.lab", {}) == {}
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary")
    assert check_server("panel.yaml", "anthropic", "https://gpu.lab", {}) == {"key": "none"}


def test_what_the_server_of_the_environment_received_the_vendors_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {"key": "env:QWEN_KEY"}
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gpu.lab")
    check_server(None, "openai", None, given)
    check_server("panel.yaml", "openai", None, given)
    for elsewhere in ("", "https://other.lab"):
        monkeypatch.setenv("OPENAI_BASE_URL", elsewhere)
        with pytest.raises(UsageError, match=r"--allow env:QWEN_KEY"):
            check_server("panel.yaml", "openai", None, given)


def test_a_port_that_is_named_is_the_only_one() -> None:
    for named in ("gpu.lab:443", "https://gpu.lab"):
        check_server("panel.yaml", "openai", "https://gpu.lab", {}, Allowed((named,)))
        with pytest.raises(UsageError, match=r"--allow gpu.lab:8000"):
            check_server("panel.yaml", "openai", "http://gpu.lab:8000", {}, Allowed((named,)))
    check_server("panel.yaml", "openai", "http://gpu.lab:8000", {}, Allowed(("gpu.lab",)))


@pytest.mark.parametrize(
    ("url", "place", "shown"),
    [
        ("http://[::1]:8000/v1", "[::1]:8000", "http://[::1]:8000/v1"),
        ("http://LOCALHOST.:8000", "localhost:8000", "http://localhost:8000"),
        ("https://bücher.example/", "xn--bcher-kva.example", "https://xn--bcher-kva.example"),
        ("https://u:p@h.example:444/v1/", "h.example:444", "https://h.example:444/v1"),
    ],
)
def test_addresses(url: str, place: str, shown: str) -> None:
    at = server(url)
    assert (at.place, at.url) == (place, shown)


# Jobs in a study of somebody else


@pytest.fixture
def posted(judging: Judge, tmp_path: Path) -> Iterator[Batches]:
    """A job that its owner posted to his own server, with his key."""
    with threaded(Batches()) as there:
        assert isinstance(there, Batches)
        write_batch(tmp_path / "study.db", there)
        submit(tmp_path / "study.db")
        assert "OPENAI_API_KEY" in there.canaries()
        yield there


def change(study: Path, **columns: str) -> None:
    with closing(sqlite3.connect(study)) as conn, conn:
        for name, value in columns.items():
            table = "job_parts" if name == "file" else "jobs"
            conn.execute(f"UPDATE {table} SET {name} = ?", [value])


def forget() -> None:
    """Be another person, who was sent the study."""
    permissions._named.clear()
    permissions._named_folders.clear()
    (permissions.configuration_folder() / permissions.FILE).unlink(missing_ok=True)


@pytest.mark.parametrize("command", ["read", "show", "cancel"])
def test_a_redirect_of_a_jobs_server_is_not_followed(judging: Judge, posted: Batches, command: str) -> None:
    with listening() as evil:
        away = Out(b"", 307, f"Location: {evil.url}/files\r\n".encode())
        posted.respond = lambda *given: away  # type: ignore[method-assign]
        judging("jobs", command, "last", code=None)
        assert evil.received == []


def test_a_link_above_a_jobs_folder_is_seen_through(judging: Judge, posted: Batches, tmp_path: Path) -> None:
    (tmp_path / "study.jobs").rename(tmp_path / "private")
    (tmp_path / "study.jobs").symlink_to(tmp_path / "private")
    assert f"--allow {tmp_path / 'private'}" in judging("jobs", "read", "last", code=2).err


def test_ones_own_job_is_followed_without_an_option(judging: Judge, posted: Batches) -> None:
    permissions._named.clear()  # a new process
    judging("jobs", "read", "last")
    assert posted.canaries() >= {"OPENAI_API_KEY"}


@pytest.mark.parametrize("command", ["read", "show", "cancel"])
def test_the_server_of_a_job_gets_no_key(
    judging: Judge, posted: Batches, tmp_path: Path, command: str, far: None
) -> None:
    with threaded(Batches()) as evil:
        assert isinstance(evil, Batches)
        change(tmp_path / "study.db", base_url=evil.url)
        done = judging("jobs", command, "last", code=2)
        assert f"study.db: sets the host 127.0.0.1:{evil.port}" in done.err and "--allow" in done.err
        assert evil.received == []


def test_a_server_on_this_machine_is_asked_about_a_job_without_a_key(judging: Judge, posted: Batches) -> None:
    forget()
    posted.received.clear()
    judging("jobs", "show", "last")
    assert posted.received and posted.canaries() == set()
    judging("jobs", "read", "last", "--allow", "env:OPENAI_API_KEY")
    assert "OPENAI_API_KEY" in posted.canaries()


def test_the_folder_of_a_job_is_not_the_studys_choice(
    judging: Judge, posted: Batches, tmp_path: Path
) -> None:
    victim = tmp_path / "private"
    victim.mkdir()
    change(tmp_path / "study.db", folder="private")
    done = judging("jobs", "read", "last", code=2)
    assert f"--allow {victim}" in done.err
    assert list(victim.iterdir()) == []
    judging("jobs", "read", "last", "--allow", victim)
    assert list(victim.iterdir()) != []


def test_a_link_in_the_place_of_a_jobs_folder_is_seen_through(
    judging: Judge, posted: Batches, tmp_path: Path
) -> None:
    (found,) = (tmp_path / "study.jobs").iterdir()
    victim = tmp_path / "private"
    found.rename(victim)
    found.symlink_to(victim)
    assert "--allow" in judging("jobs", "read", "last", code=2).err


def test_a_link_in_the_place_of_a_result_is_not_written_through(
    judging: Judge, posted: Batches, tmp_path: Path
) -> None:
    (folder,) = (tmp_path / "study.jobs").iterdir()
    victim = tmp_path / "bashrc"
    victim.write_text("mine")
    (file,) = folder.glob("*.jsonl")
    (folder / f"{file.stem}.output.jsonl").symlink_to(victim)
    assert "must not be links" in judging("jobs", "read", "last", code=2).err
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("name", ["../../private.jsonl", "/etc/passwd", "..", "", "a\0b"])
def test_a_file_of_a_job_lies_in_its_folder(
    judging: Judge, posted: Batches, tmp_path: Path, name: str
) -> None:
    change(tmp_path / "study.db", file=name)
    assert "in the job's folder" in judging("jobs", "read", "last", code=2).err


def test_a_folder_that_the_user_named_is_remembered(judging: Judge) -> None:
    judging("run", "stance", "-m", "openai/loopback", "--offline", "mine")
    permissions._named_folders.clear()  # a new process
    assert "--allow" not in judging("jobs", "read", "last", code=2).err
    forget()
    assert "--allow" in judging("jobs", "read", "last", code=2).err


def test_a_run_that_was_imported_names_no_server(judging: Judge, tmp_path: Path) -> None:
    """Its rows say where they were asked; a later run of the same model does not ask there."""
    with listening() as evil:
        judging("run", "stance", "-m", "scripted/hash")
        judging("runs", "export", "last", "-o", "rows.jsonl")
        rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
        lines = [json.dumps({**row, "model": "openai/x", "base_url": evil.url}) for row in rows]
        (tmp_path / "rows.jsonl").write_text("\n".join(lines) + "\n")
        judging("runs", "import", "rows.jsonl", "--task", "stance", "-m", "openai/x", code=None)
        with closing(sqlite3.connect(tmp_path / "study.db")) as conn, conn:
            conn.execute(
                "UPDATE runs SET options = json_set(options, '$.base_url', ?), provider = json_set(provider, '$.base_url', ?)",
                [evil.url, evil.url],
            )
        judging("run", "stance", "-m", "scripted/hash", "--repeats", "2")
        assert evil.received == []


@pytest.mark.parametrize("of", ["HTTP_PROXY", "ALL_PROXY", "http_proxy"])
def test_no_proxy_of_the_environment_sees_the_key_of_a_job_on_this_machine(
    judging: Judge, posted: Batches, of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listening() as proxy:
        monkeypatch.setenv(of, proxy.url.removesuffix("/v1"))
        posted.received.clear()
        judging("jobs", "read", "last")
        assert proxy.received == [] and posted.received


def test_no_proxy_of_the_environment_sees_the_key_of_a_cloud_on_this_machine(
    judging: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Azure's client looks for proxies by itself."""
    with listening() as proxy, listening() as there:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", "canary")
        words = ("--base-url", there.url.removesuffix("/v1"), "--option", "api_version=2024-10-21")
        judging("models", "show", "azure/x", *words, code=None)
        assert proxy.received == [] and "canary" in there.received[0]


def test_a_relative_configuration_folder_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Else a folder from somebody else could say what its files may configure."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for folder in ("config", ""):
        monkeypatch.setenv("XDG_CONFIG_HOME", folder)
        assert permissions.configuration_folder() == tmp_path / ".config/adjudge"
