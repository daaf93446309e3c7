"""Find and read task files. Errors name the file, line and field."""

import re
from difflib import get_close_matches
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from judge.errors import TaskError, UsageError
from judge.prompts.check import check_template
from judge.prompts.spec import TaskSpec
from judge.prompts.strict_yaml import load_yaml
from judge.prompts.task import UNIT_MARK, Task
from judge.resources import resource_dir

__all__ = ["Task", "find_tasks", "load_task", "parse_task", "with_constant"]

_NAME = re.compile(r"^([a-z][a-z0-9_]*)\.v([1-9][0-9]*)\.md$")


MAX_FILE = 1_000_000
"""The most characters of a task file. Few-shot examples with long passages stay far below it."""


@lru_cache(maxsize=256)
def parse_task(text: str, file_name: str, path: str = "") -> Task:
    """Parse the text of a task file. Raises a TaskError that names the file and field if the text is
    malformed.

    Results are cached: a report requests the same stored task many times, and a Task never changes.
    """
    where = path or file_name
    match = _NAME.match(file_name)
    if not match:
        raise TaskError(
            f"{where}: a task file must be named NAME.vN.md (lower case, for example stance.v2.md)"
        )
    if len(text) > MAX_FILE:
        raise TaskError(f"{where}: the file has more than {MAX_FILE:,} characters")
    head, body = _split_front_matter(text, where)
    try:
        front = load_yaml(head)
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        # The parser counts lines from 0 and does not get the first line of the file, which is ---.
        line = f", line {mark.line + 2}" if mark else ""
        problem = " ".join(str(getattr(e, "problem", None) or e).split())
        raise TaskError(f"{where}: the front matter is not valid YAML{line}: {problem}") from e
    if not isinstance(front, dict):
        raise TaskError(f"{where}: the front matter must be a mapping with title, unit, inputs, questions")
    try:
        spec = TaskSpec.model_validate(front)
    except ValidationError as e:
        raise TaskError(f"{where}: " + "; ".join(_complaint(err) for err in e.errors())) from e
    constant, mark_found, unit = body.partition(UNIT_MARK)
    if not mark_found:
        raise TaskError(
            f"{where}: the template needs a line '{UNIT_MARK}': put the text common to all units above it, "
            "and the unit's own text below it"
        )
    if UNIT_MARK in unit:
        raise TaskError(f"{where}: '{UNIT_MARK}' occurs twice in the template")
    task = Task(match[1], int(match[2]), spec, constant.strip(), unit.strip(), text, path)
    check_template(task, where)
    return task


def with_constant(task: Task, constant: str, version: int) -> Task:
    """Return the task with a different version number and different instructions.

    Raises TaskError if the resulting task file is not valid.
    """
    head, body = _split_front_matter(task.text, task.name)
    _, _, unit = body.partition(UNIT_MARK)
    name = f"{task.task_id}.v{version}.md"
    return parse_task(f"---\n{head}\n---\n{constant.strip()}\n{UNIT_MARK}{unit}", name)


def _split_front_matter(text: str, where: str) -> tuple[str, str]:
    if not text.startswith("---\n"):
        raise TaskError(f"{where}: the first line must be '---' (YAML front matter)")
    head, separator, body = text[4:].partition("\n---\n")
    if not separator:
        raise TaskError(f"{where}: the front matter must end with a '---' line")
    return head, body


def _complaint(error: Any) -> str:
    where = ".".join(str(p) for p in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"unknown key '{where}'"
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{where}: {message}" if where else message


def find_tasks(folder: Path | None = None) -> dict[str, Path]:
    """Return the paths of all task files, keyed by name (`name.vN`). Shipped tasks come before the user's
    own.

    Raises UsageError if the user's folder does not exist, or if a file in it has the name of a shipped task
    but different content.
    """
    tasks = dict(_list_shipped(resource_dir("prompts")))
    if folder is None:
        return tasks
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder")
    for name, path in _tasks_in(folder).items():
        # A study identifies a task by name and version, so two texts under one name would mix their labels.
        if name in tasks and tasks[name].read_bytes() != _read_bytes(path):
            raise UsageError(f"{path}: '{name}' is the name of a shipped task; use another name or version")
        tasks[name] = path
    return tasks


@cache
def _list_shipped(folder: Path) -> dict[str, Path]:
    """Return the shipped tasks. They are cached, because an import looks up each task several times."""
    return _tasks_in(folder)


def _tasks_in(folder: Path) -> dict[str, Path]:
    paths = sorted(folder.glob("*.md"), key=_order)
    # README.md is the reference page on task files.
    return {p.name.removesuffix(".md"): p for p in paths if p.name not in ("README.md",)}


def _order(path: Path) -> tuple[str, int]:
    match = _NAME.match(path.name)
    return (match[1], int(match[2])) if match else (path.name, 0)


def load_task(name: str, folder: Path | None = None) -> Task:
    """Load a task by its name (`stance` for the newest version, or `stance.v2`) or by the path of its file.

    Raises UsageError if there is no such task, and TaskError if the file is malformed.
    """
    if name.endswith(".md"):
        path = Path(name)
    else:
        tasks = find_tasks(folder)
        versions = [n for n in tasks if n == name or n.rpartition(".v")[0] == name]
        if not versions:
            # A mistyped name is the usual cause, and the list of all tasks is long.
            close = get_close_matches(name, [n.rpartition(".v")[0] for n in tasks], n=1)
            meant = f" (did you mean {close[0]}?)" if close else ""
            raise UsageError(f"unknown task '{name}'{meant}; available: {', '.join(tasks)}")
        # Compared as numbers, because v10 sorts before v9 as text.
        path = tasks[max(versions, key=lambda n: _order(tasks[n]))]
    try:
        # Windows editors write a byte order mark, which would hide the `---` of the first line.
        text = _read_bytes(path).decode("utf-8-sig")
    except OSError as e:
        raise UsageError(f"{path}: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise TaskError(f"{path}: not valid UTF-8 (at byte {e.start})") from e
    # A checkout on Windows must have the same hash, because a study rejects different text of the same version.
    return parse_task(text.replace("\r\n", "\n"), path.name, str(path))


def _read_bytes(path: Path) -> bytes:
    """Return the content of a task file. Raises TaskError if it is longer than any task file can be."""
    # A folder from somebody else may link to a device without an end. A character has at most four bytes.
    most = 4 * MAX_FILE
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise TaskError(f"{path}: the file has more than {MAX_FILE:,} characters")
    return content
