"""A real terminal: a session of tmux, whose screen is read and whose keys are typed."""

import subprocess
import sys
import time
import uuid
from collections.abc import Callable


class Terminal:
    """One tmux session of its own server."""

    def __init__(self, width: int = 80, height: int = 24) -> None:
        self.socket = f"adjudge-{uuid.uuid4().hex[:8]}"
        self.tmux("new-session", "-d", "-x", str(width), "-y", str(height), "sh")

    def tmux(self, *args: str) -> str:
        return subprocess.run(
            ["tmux", "-L", self.socket, "-f", "/dev/null", *args], capture_output=True, text=True, check=True
        ).stdout

    def type(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def run(self, *args: str, program: str = "annotate") -> None:
        self.type(" ".join(["env -u COLUMNS -u LINES", sys.executable, "-m", program, *args]), "Enter")

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def until(self, text: str, seconds: float = 30) -> str:
        return self.wait(lambda: text in self.screen(), text, seconds)

    def wait(self, found: Callable[[], bool], what: str, seconds: float = 30) -> str:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found():
                return self.screen()
            time.sleep(0.1)
        raise AssertionError(f"no {what!r} in:\n{self.screen()}")

    def child(self) -> int:
        shell = self.tmux("display-message", "-p", "#{pane_pid}").strip()
        return int(
            subprocess.run(["pgrep", "-P", shell], capture_output=True, text=True, check=True).stdout.split()[
                0
            ]
        )

    def close(self) -> None:
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], check=False, capture_output=True)
