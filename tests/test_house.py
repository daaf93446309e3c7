"""The house: a class has a name of its own, and a room's private modules are imported in that room only."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[1]
ROOMS = ("judge", "annotate", "adjudge")


Modules = list[tuple[str, ast.Module]]


@pytest.fixture(scope="module")
def modules() -> Modules:
    """Every module as (dotted name, parsed)."""
    return list(_modules())


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for room in ROOMS:
        for path in sorted((HOUSE / room).rglob("*.py")):
            name = ".".join(path.relative_to(HOUSE).with_suffix("").parts)
            yield name.removesuffix(".__init__"), ast.parse(path.read_text(encoding="utf-8"))


def test_a_class_has_a_name_of_its_own(modules: Modules) -> None:
    found = defaultdict(list)
    for name, module in modules:
        for node in module.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(name)
    assert len(found) > 300, "the house was read"
    for by_name in ("Provider", "Batches"):  # a vendor's file is found by its name and has one of these
        found.pop(by_name, None)
    assert {c: where for c, where in found.items() if len(where) > 1} == {}


def test_private_modules_stay_in_their_room(modules: Modules) -> None:
    strangers, n = [], 0
    for name, module in modules:
        for node in ast.walk(module):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in ROOMS:
                for full in [f"{node.module}.{a.name}" for a in node.names]:
                    n += 1
                    parts = full.split(".")
                    private = [i for i, p in enumerate(parts) if p.startswith("_") and not p.startswith("__")]
                    if private and not f"{name}.".startswith(".".join(parts[: private[0]]) + "."):
                        strangers.append((name, full))
    assert n > 2000, "the imports were read"
    assert strangers == []
