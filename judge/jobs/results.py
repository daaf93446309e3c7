"""Results as files: without the key from their first byte on, under their name once they are whole, and known again.

What a fetched file was is kept beside it (`part-0001.fetched.json`), so that one that was cut since is fetched again
and not taken for requests without an answer.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from judge.errors import ServerFault
from judge.files import file_sha, whole_file
from judge.jobs.lines import raw_lines
from judge.types import Json

SHORTEST_KEY = 8
"""Characters of a key; what is shorter stands in for one (EMPTY, none, ollama) and is a word of answers, too."""
_MOST_BACKSLASHES = 7


def keep(path: Path, parts: Iterable[bytes], key: str, who: str, size: int | None = None) -> None:
    """Write a file of results without the key, which a server may echo. Raises ServerFault below `size` bytes."""
    found = 0

    def counted() -> Iterator[bytes]:
        nonlocal found
        for part in parts:
            found += len(part)
            yield part

    with whole_file(path) as place:
        with place.open("wb") as file:
            for part in masked(counted(), key):
                file.write(part)
        if size is not None and found < size:
            raise ServerFault(f"{who}: {found:,} bytes of {size:,} arrived of {path.name}; fetch them again")


def masked(parts: Iterable[bytes], key: str) -> Iterator[bytes]:
    """The same bytes with `[key]` for the key, however JSON writes it and wherever the parts are cut."""
    if len(key) < SHORTEST_KEY:
        yield from parts
        return
    written = re.compile(b"".join(_written(c) for c in key))
    # Most parts have none of it: that shows faster than by the pattern.
    run = max(re.findall("[A-Za-z0-9]+", key), key=len, default="").encode()
    signs = (run, *(code % run[0] for code in (b"u00%02x", b"u00%02X") if run))
    # As long as the key can be, so that one which has begun is held back.
    longest = len(key) * (_MOST_BACKSLASHES + 5)
    held = b""
    for part in parts:
        held += part
        if any(sign in held for sign in signs):
            held = written.sub(b"[key]", held)
        yield held[: max(0, len(held) - longest)]
        held = held[-longest:]
    yield held


def _written(character: str) -> bytes:
    """A pattern for a character of a JSON text, also of one inside another."""
    plain, number = re.escape(character).encode(), ord(character)
    slashes = rb"\\{0,%d}" % _MOST_BACKSLASHES
    return rb"%s(?:%s|(?<=\\)u00(?i:%02x))" % (slashes, plain, number)


def answers_in(vendor: str, path: Path) -> int:
    """How many requests a file of results has an answer to: of lines that are whole, each request once."""
    named = set()
    for _, row in raw_lines(path):
        if isinstance(row, dict) and isinstance(row.get("custom_id"), str) and _is_answer(vendor, row):
            named.add(row["custom_id"])
    return len(named)


def _is_answer(vendor: str, row: dict[str, Json]) -> bool:
    """Whether the vendor counts the line among those that it answered: all of OpenAI's output, some of Anthropic's."""
    if vendor != "anthropic":
        return True
    result = row.get("result")
    return isinstance(result, dict) and result.get("type") == "succeeded"


def note_fetched(paths: Sequence[Path]) -> None:
    """Keep what the files of a batch are."""
    told = {path.name: _told(path) for path in paths}
    with whole_file(_beside(paths)) as place:
        place.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def as_fetched(paths: Sequence[Path]) -> bool:
    """Whether the files of a batch are there, and what they were when they were fetched."""
    if not all(path.is_file() for path in paths):
        return False
    try:
        told = json.loads(_beside(paths).read_text("utf-8"))
    except (OSError, ValueError):
        return True  # fetched by an earlier version, or the note is gone: nothing is known against them
    return bool(told == {path.name: _told(path) for path in paths})


def _beside(paths: Sequence[Path]) -> Path:
    return paths[0].with_name(paths[0].name.partition(".")[0] + ".fetched.json")


def _told(path: Path) -> Json:
    return {"bytes": path.stat().st_size, "sha256": file_sha(path)}
