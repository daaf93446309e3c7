"""Result files: they never contain the key, get their final name only when complete, and can be verified later.

The size and hash of a downloaded file are stored beside it (`part-0001.fetched.json`). If the file is
truncated later, it is downloaded again, so that its missing lines do not count as unanswered requests.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from judge.errors import ServerFault
from judge.files import file_sha, whole_file
from judge.jobs.lines import raw_lines
from judge.providers.keys import mask_key
from judge.types import Json


def keep(path: Path, parts: Iterable[bytes], key: str, who: str, size: int | None = None) -> None:
    """Write a file of results with the key removed, because a server may echo the key. Raises ServerFault if
    the file has fewer than `size` bytes.
    """
    n_bytes = 0

    def counted() -> Iterator[bytes]:
        nonlocal n_bytes
        for part in parts:
            n_bytes += len(part)
            yield part

    with whole_file(path) as place:
        with place.open("wb") as file:
            for part in mask_key(counted(), key):
                file.write(part)
        if size is not None and n_bytes < size:
            raise ServerFault(
                f"{who}: only {n_bytes:,} of {size:,} bytes of {path.name} arrived; fetch this file again"
            )


def answers_in(vendor: str, path: Path) -> int:
    """Count the requests that have an answer in a result file. Only complete lines count, and each request
    counts once.
    """
    named = set()
    for _, row in raw_lines(path):
        if isinstance(row, dict) and isinstance(row.get("custom_id"), str) and _is_answer(vendor, row):
            named.add(row["custom_id"])
    return len(named)


def _is_answer(vendor: str, row: dict[str, Json]) -> bool:
    """Return whether the vendor counts the line as an answer.

    OpenAI counts all lines of its output file. Anthropic counts only the results of the type `succeeded`.
    """
    if vendor != "anthropic":
        return True
    result = row.get("result")
    return isinstance(result, dict) and result.get("type") == "succeeded"


def note_fetched(paths: Sequence[Path]) -> None:
    """Store the sizes and hashes of a batch's result files."""
    facts = {path.name: _facts_of(path) for path in paths}
    with whole_file(_make_sibling(paths)) as place:
        place.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def as_fetched(paths: Sequence[Path]) -> bool:
    """Return whether all files of a batch exist and are unchanged since they were downloaded."""
    if not all(path.is_file() for path in paths):
        return False
    try:
        facts = json.loads(_make_sibling(paths).read_text("utf-8"))
    except (OSError, ValueError):
        return True  # downloaded by an earlier version, or the note was deleted: nothing shows a change
    return bool(facts == {path.name: _facts_of(path) for path in paths})


def _make_sibling(paths: Sequence[Path]) -> Path:
    return paths[0].with_name(paths[0].name.partition(".")[0] + ".fetched.json")


def _facts_of(path: Path) -> Json:
    return {"bytes": path.stat().st_size, "sha256": file_sha(path)}
