"""The house: a class has a name of its own, private modules are imported in their room only, no modules import each other."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
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


def test_modules_do_not_import_each_other(modules: Modules) -> None:
    """No cycle of imports, those inside functions included: there they would only hide it.

    What stands under TYPE_CHECKING is never run, so two classes may name each other in their types.
    """
    names = {name for name, _ in modules}
    graph = {name: {i for i in _imported(module, names) if i != name} for name, module in modules}
    assert sum(map(len, graph.values())) > 2000, "the imports were read"
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a cycle of imports: {' -> '.join(reversed(error.args[1]))}")


WORDS = {"read", "told", "asked", "found", "own", "held", "one", "what"}
"""Names that say nothing where they are used (rule 5 of how we write)."""


def test_no_name_is_a_word_that_could_mean_anything(modules: Modules) -> None:
    bound = [(name, where, line) for where, module in modules for name, line in _bound(module)]
    assert len(bound) > 30_000, "the modules were parsed"
    assert [(name, where, line) for name, where, line in bound if name.lstrip("_") in WORDS] == []


def _bound(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield (name, line) of everything that a module binds. `read(self, size)` is the method of Python's files."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name="read") if [a.arg for a in node.args.args] == ["self", "size"]:
                continue
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, node.lineno
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.alias(name=name, asname=alias):
                yield (alias or name).split(".")[-1], node.lineno


def _imported(tree: ast.AST, names: set[str]) -> Iterator[str]:
    """The modules of the house that are imported somewhere in a module, but for types only."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom):
            # `from package import module` imports the module, `from module import name` what is in it.
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            found = (name if name in names else node.module for name in full)
            yield from (name for name in found if name in names)
        else:
            yield from _imported(node, names)
