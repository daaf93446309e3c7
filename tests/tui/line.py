"""The real program at the end of a pseudo-terminal: bytes go in as a line delivers them, in bursts or one by one."""

import contextlib
import fcntl
import os
import struct
import termios
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from judge.store import Store
from tests.forks import process

BYTES = {
    "backspace": b"\x7f",
    "enter": b"\r",
    "escape": b"\x1b[27u",
    "left": b"\x1b[D",
    "right": b"\x1b[C",
    "up": b"\x1b[A",
    "down": b"\x1b[B",
    "tab": b"\t",
    "quit": b"\x11",
    "menu": b"\x10",
}
"""What terminals send; Escape as the kitty protocol has it, because a lone \\x1b waits for what may follow."""


def sent(key: str) -> bytes:
    """A key, or text, as bytes; a surrogate is a byte that is no UTF-8."""
    return BYTES.get(key) or key.encode(errors="surrogateescape")


class Line:
    """`annotate ...` in a terminal of 80x24 of its own: a real process, whose Python has imported what it needs before."""

    def __init__(self, *args: str, size: tuple[int, int] = (80, 24)) -> None:
        self._fd, self._terminal = os.openpty()
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        terminal = os.ttyname(self._terminal)
        self._process = process(
            "annotate", args, terminal=terminal, TERM="xterm-256color", COLORTERM="truecolor"
        )
        self.seen = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while found := os.read(self._fd, 65536):
                self.seen += found

    def until(self, text: str, seconds: float = 30) -> None:
        """Wait until the program has written `text`; then forget what it wrote."""
        end = time.monotonic() + seconds
        while text.encode() not in self.seen:
            if time.monotonic() > end:
                raise AssertionError(f"no {text!r} in {self.seen[-3000:]!r}")
            time.sleep(0.01)
        self.seen = b""

    def burst(self, keys: Sequence[str]) -> None:
        """All keys in one write."""
        os.write(self._fd, b"".join(map(sent, keys)))

    def type(self, keys: Sequence[str], gap: float) -> None:
        """One key after the other, each `gap` seconds after the program has read the one before.

        On a busy machine the program may read later than `gap`; two keys would then reach it in one read, as a burst.
        """
        for key in keys:
            os.write(self._fd, sent(key))
            self._until_read()
            time.sleep(gap)

    def _until_read(self, seconds: float = 30) -> None:
        """Wait until the program has read everything that was typed."""
        end = time.monotonic() + seconds
        while struct.unpack("i", fcntl.ioctl(self._terminal, termios.FIONREAD, b"\0" * 4))[0]:
            if time.monotonic() > end:
                raise AssertionError("the program does not read what is typed")
            time.sleep(0.002)

    def quit(self, seconds: float = 30) -> int:
        """Ctrl+Q, and wait for the end: what was typed before it has been done by then."""
        self.burst(["quit"])
        return self.ended(seconds)

    def ended(self, seconds: float = 30) -> int:
        """The exit code, once the program has ended."""
        self._process.join(seconds)
        assert self._process.exitcode is not None, f"it did not end: {self.seen[-2000:]!r}"
        return self._process.exitcode

    def kill(self) -> None:
        """SIGKILL, as a cut cable or a crash."""
        self._process.kill()
        self._process.join()

    def close(self) -> None:
        """End it whatever it does."""
        self.kill()
        self._process.close()
        os.close(self._terminal)
        self._reader.join()
        os.close(self._fd)


@contextlib.contextmanager
def opened(path: Path, person: str = "alice", command: str = "open", *more: str) -> Iterator[Line]:
    """`annotate open pilot` for one person, once its screen is there."""
    line = Line(command, "pilot", "--as", person, "-d", str(path), *more)
    try:
        line.until("menu")
        yield line
    finally:
        line.close()


def log(path: Path, person: str = "alice") -> list[tuple[str, int, str | None]]:
    """What was committed, in order: (kind, position, value)."""
    with Store.open(path) as store:
        query = "SELECT kind, position, value FROM events WHERE annotator_id = ? ORDER BY seq"
        return [(k, p, v) for k, p, v in store.conn.execute(query, [person])]


def settled(path: Path, count: int, person: str = "alice", seconds: float = 20) -> None:
    """Wait until `count` events are committed."""
    end = time.monotonic() + seconds
    while len(log(path, person)) < count:
        if time.monotonic() > end:
            raise AssertionError(f"{len(log(path, person))} events, not {count}: {log(path, person)[-10:]}")
        time.sleep(0.01)
