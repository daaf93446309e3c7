"""Texts of every script on terminals with different rules of width: no cluster moves the rest of its row."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from annotate.tui.widths import pin
from tests.tui.studies import drawn

TEXTS = {
    "one": "Skin tones 👍🏽 and 👩🏽‍🚀 and families 👩‍👩‍👧‍👦 fly with flags 🇩🇪🇫🇷 and keycaps 1️⃣2️⃣ over the text. "
    * 3,
    "two": "हिन्दी में लिखा हुआ एक लंबा वाक्य जिसमें क्‍ष और ज्ञ जैसे संयुक्त अक्षर आते हैं। " * 3,
    "three": "این نقشه‌رنگ می‌گوید که هوا خوب است‌. مرحبا\u200f! " * 4,
}
MODIFIERS = range(0x1F3FB, 0x1F400)


def by_code_point(cluster: str) -> int:
    """The width in xterm: the sum over the code points; modifiers of skin tone have two columns of their own."""
    width = 0
    for character in cluster:
        if unicodedata.category(character) in ("Mn", "Me", "Cf"):
            continue
        wide = unicodedata.east_asian_width(character) in "WF" or ord(character) in MODIFIERS
        width += 2 if wide else 1
    return width


def by_cluster(cluster: str) -> int:
    """The width in terminals that draw a joined cluster in one place."""
    return min(2, by_code_point(cluster))


def narrow(cluster: str) -> int:
    """A terminal whose font lacks emoji, and that draws each cluster in one column."""
    return 1


def draw(output: str, columns: int, rows: int, width: Callable[[str], int]) -> list[list[str]]:
    """The screen after this output, as a terminal with this rule of width draws it; each cell holds a character."""
    screen = [[" "] * columns for _ in range(rows)]
    x = y = 0
    # A cluster here is a character with all that follows it without width.
    token = r"\x1b\[(\d*);(\d*)H|\x1b\[(\d+)G|\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.|\r|\n|.[\u200d\ufe0f\u20e3\U0001f3fb-\U0001f3ff]*"  # fmt: skip
    for match in re.finditer(token, output, re.DOTALL):
        text = match[0]
        if match[1] is not None:
            y, x = int(match[1] or 1) - 1, int(match[2] or 1) - 1
        elif match[3]:
            x = int(match[3]) - 1
        elif text == "\r":
            x = 0
        elif text == "\n":
            y += 1
        elif not text.startswith("\x1b"):
            taken = width(text)
            for place in range(x, min(x + max(taken, 1 if taken else 0), columns)):
                if y < rows:
                    screen[y][place] = text[0] if place == x else ""
            x += taken
    return screen


def test_text_of_sure_width_stays_as_it_is() -> None:
    plain = "\x1b[1;1H\x1b[31mA claim, Ωμέγα, жук, 一般的\x1b[0m\n\x1b[2;5Hx"
    assert pin(plain) == plain


def test_the_cursor_is_placed_after_each_cluster() -> None:
    # Columns are counted from 1: a and b take 1 and 2, the emoji 3 and 4, so that c is in column 5.
    assert pin("\x1b[1;1Hab👍🏽c") == "\x1b[1;1Hab👍🏽\x1b[5Gc"
    assert pin("\x1b[2;7H\x1b[1mन\x1b[0m|") == "\x1b[2;7H\x1b[1mन\x1b[8G\x1b[0m|"


def record(study: Path, columns: int, rows: int) -> str:
    """The output of the real command in a pseudo-terminal of this size."""
    first, second = pty.openpty()
    fcntl.ioctl(second, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    for name in ("COLUMNS", "LINES"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "annotate", "open", "pilot", "--as", "alice", "-d", str(study)]
    process = subprocess.Popen(
        command, stdin=second, stdout=second, stderr=second, env=environment, start_new_session=True
    )
    os.close(second)
    os.set_blocking(first, False)
    output, quiet_since, end = b"", time.monotonic(), time.monotonic() + 60
    try:
        while time.monotonic() < end:
            try:
                output += os.read(first, 65536)
                quiet_since = time.monotonic()
            except BlockingIOError:
                time.sleep(0.05)
            # The labels are drawn last.
            if b"neutral" in output and time.monotonic() - quiet_since > 1.5:
                break
    finally:
        process.kill()
        process.wait()
        os.close(first)
    return output.decode(errors="replace")


@pytest.mark.parametrize("name", TEXTS)
def test_the_divider_is_in_one_column_in_every_terminal(name: str, tmp_path: Path) -> None:
    study = drawn(tmp_path, items=1, each=1, texts={"one": TEXTS[name]}, n=1)
    output = record(study, 120, 40)
    for width in (by_code_point, by_cluster, narrow):
        screen = draw(output, 120, 40, width)
        dividers = {
            column for row in screen[2:35] for column, character in enumerate(row) if character == "│"
        }
        assert len(dividers) == 1, f"{width.__name__}: {sorted(dividers)}"
        labels = [" ".join("".join(row[min(dividers) :]).split()) for row in screen]
        assert {"│ s support", "│ a reader who trusts the passage", "│ r refute"} <= set(labels), labels
