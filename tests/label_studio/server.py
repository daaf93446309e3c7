"""A real Label Studio server of the tests' own on 127.0.0.1, with two people on it.

The first start migrates a database for most of a minute; a copy of that is kept beside the program, and
later runs start from it. Every run works on a copy of its own.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

ADMIN = "alice@example.org"
SECOND = "bob@example.org"
PASSWORD = "only-for-tests-8"
START_SECONDS = 300


@dataclass
class Web:
    """One person's browser session: pages and the API, with the cross-site token that pages carry."""

    url: str
    email: str
    client: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.client = httpx.Client(base_url=self.url, follow_redirects=True, timeout=120)

    def login(self) -> Web:
        """Log in with the password."""
        self.client.get("/user/login/")
        self.post("/user/login/", data={"email": self.email, "password": PASSWORD})
        assert "sessionid" in self.client.cookies, f"no login for {self.email}"
        return self

    def __enter__(self) -> Web:
        return self

    def __exit__(self, *exc: object) -> None:
        self.client.close()

    def signup(self, invite: str) -> Web:
        """Join with the link that an administrator sent."""
        self.client.get(invite)
        reply = self.post(invite, data={"email": self.email, "password": PASSWORD, "how_find_us": "test"})
        assert reply.status_code == 200 and "sessionid" in self.client.cookies, reply.text[:300]
        return self

    def post(self, path: str, **more: Any) -> httpx.Response:
        """A POST as the page would send it."""
        headers = {"X-CSRFToken": self.client.cookies.get("csrftoken", ""), "Referer": self.url + path}
        if "data" in more:
            more["data"]["csrfmiddlewaretoken"] = headers["X-CSRFToken"]
        return self.client.post(path, headers=headers, **more)

    def token(self) -> str:
        """A personal access token: the server shows it once."""
        reply = self.post("/api/token/")
        assert reply.status_code == 201, reply.text
        return str(reply.json()["token"])

    def legacy(self) -> str:
        """The legacy token."""
        return str(self.client.get("/api/current-user/token").json()["token"])


@dataclass
class Server:
    """The address, and the keys of alice (administrator) and bob."""

    url: str
    keys: dict[str, str]
    legacy: str
    admin: Web
    data: Path
    """The folder with its database."""
    clients: dict[str, tuple[Any, httpx.Client]] = field(default_factory=dict)

    def client(self, person: str) -> Any:
        """The SDK as one person; one connection for all tests."""
        from label_studio_sdk import LabelStudio

        if person not in self.clients:
            http = httpx.Client(timeout=60, follow_redirects=True)
            self.clients[person] = (
                LabelStudio(base_url=self.url, api_key=self.keys[person], httpx_client=http),
                http,
            )
        return self.clients[person][0]

    def close(self) -> None:
        """Every connection."""
        for _, http in self.clients.values():
            http.close()


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@contextmanager
def started(program: Path, data: Path) -> Iterator[str]:
    """The address of a server on the data of a folder; it ends with the block."""
    port = free_port()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(data),
        "LANG": "C.UTF-8",
        "LABEL_STUDIO_BASE_DATA_DIR": str(data),
        "LABEL_STUDIO_USERNAME": ADMIN,
        "LABEL_STUDIO_PASSWORD": PASSWORD,
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
        "COLLECT_ANALYTICS": "false",
        "LATEST_VERSION_CHECK": "false",
        "SENTRY_DSN": "",
        "FRONTEND_SENTRY_DSN": "",
    }
    words = [str(program), "start", "--no-browser", "--internal-host", "127.0.0.1", "--port", str(port)]
    log = data / "server.log"
    with log.open("ab") as out:
        process = subprocess.Popen(
            words, env=environment, stdout=out, stderr=out, cwd=data, start_new_session=True
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(process, url, log)
        yield url
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Until it answers at the port it was given; a port that is in use silently becomes the next one."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text(errors="replace")[-2000:]
        try:
            if httpx.get(f"{url}/health", timeout=5).json().get("status") == "UP":
                return
        except (httpx.HTTPError, ValueError):
            time.sleep(0.5)
    raise AssertionError(f"no server at {url}:\n{log.read_text(errors='replace')[-2000:]}")


@contextmanager
def server(program: Path) -> Iterator[Server]:
    """A server with alice and bob, on a fresh copy of the migrated database."""
    template = program.parent.parent / "adjudge-test-data"
    if not (template / "label_studio.sqlite3").is_file():
        _make(program, template)
    with tempfile.TemporaryDirectory(prefix="adjudge-label-studio-", ignore_cleanup_errors=True) as name:
        data = Path(name) / "data"
        shutil.copytree(template, data)
        with started(program, data) as url:
            admin, second = Web(url, ADMIN).login(), Web(url, SECOND).login()
            keys = {"alice": admin.token(), "bob": second.token()}
            made = Server(url, keys, admin.legacy(), admin, data)
            try:
                yield made
            finally:
                made.close()
                admin.client.close()
                second.client.close()


def _make(program: Path, template: Path) -> None:
    part = template.with_name(f".{template.name}.{secrets.token_hex(4)}")
    part.mkdir()
    try:
        with started(program, part) as url, Web(url, ADMIN) as admin, Web(url, SECOND) as second:
            second.signup(admin.login().client.get("/api/invite").json()["invite_url"])
        part.rename(template)
    except OSError:
        if not template.is_dir():  # another run was faster otherwise
            raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
