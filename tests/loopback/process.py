"""A loopback server in its own process, for benchmarks and for tests that kill things."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]


class ServerProcess:
    """`with ServerProcess("openai", "--delay", "0.05") as server: server.url`.

    `kill` ends it at once (SIGKILL) and `start` brings it back on the same port, with counts from zero.
    """

    def __init__(self, vendor: str, *options: str) -> None:
        self.vendor, self.options = vendor, options
        self.url = ""
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> Self:
        port = self.url.split(":")[2].partition("/")[0] if self.url else "0"
        command = [sys.executable, "-m", f"tests.loopback.{self.vendor}_server", "--port", port]
        self._process = subprocess.Popen(
            [*command, *self.options], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            raise RuntimeError(f"the {self.vendor} loopback server did not start")
        return self

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    @property
    def pid(self) -> int:
        """The process id, for measuring."""
        assert self._process is not None
        return self._process.pid

    def stats(self) -> dict[str, int]:
        """requests, max_concurrency, connections."""
        counts: dict[str, int] = self._get("/_stats")
        return counts

    def bodies(self) -> list[dict[str, Any]]:
        """Every request body, with `--record`."""
        bodies: list[dict[str, Any]] = self._get("/_bodies")
        return bodies

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url.removesuffix("/v1") + path, timeout=10) as answer:
            return json.load(answer)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
