"""Faults put into a copy of the tree, one at a time: a mutant, and the program that must find it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
PARTS = ("judge", "annotate", "adjudge", "tests", "prompts", "data")
Fault = tuple[str, str, str]
"""A file, what stands there, and what makes the fault."""


def run_on(fault: Fault, words: Sequence[str], **how: Any) -> "subprocess.CompletedProcess[str]":
    """Run `python -m WORDS` on a copy of the tree that has this fault."""
    path, right, wrong = fault
    with TemporaryDirectory(prefix="adjudge-mutant-") as folder:
        copy = Path(folder)
        for part in PARTS:
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__", "*.svg"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        text = (copy / path).read_text("utf-8")
        if right not in text:
            raise SystemExit(f"{path} has no {right!r} any more: change the mutant with it")
        (copy / path).write_text(text.replace(right, wrong), "utf-8")
        environment = {**os.environ, "PYTHONPATH": folder}
        return subprocess.run(
            [sys.executable, "-m", *words],
            cwd=copy,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            **how,
        )


def tell(names: Sequence[str], find: Callable[[str], tuple[bool, str]]) -> int:
    """Print for each mutant how it was found; 1 when one was not found, else 0."""
    missed = 0
    for name in names:
        found, told = find(name)
        missed += not found
        print(f"{name}: {told}", flush=True)
    return 1 if missed else 0
