"""What the package imports, and when."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import judge.stats

FOLDER = Path(judge.stats.__file__).parent


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    names = [a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names]
    return set(names) | {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}


@pytest.mark.parametrize(("library", "module"), [("krippendorff", "alpha.py"), ("sklearn", "classes.py")])
def test_one_door_for_each_library(library: str, module: str) -> None:
    users = [
        p.name for p in FOLDER.glob("*.py") if any(name.split(".")[0] == library for name in imported(p))
    ]
    assert users == [module]


def test_it_knows_no_study_and_no_task() -> None:
    outside = {
        name for p in FOLDER.glob("*.py") for name in imported(p) if name.startswith(("judge", "annotate"))
    }
    # Errors, types, plugins, the words of notes and the commands in them import nothing of a study either (see the import
    # contracts).
    inside = {name for name in outside if not name.startswith("judge.stats")}
    assert inside == {"judge.errors", "judge.notes", "judge.plugins", "judge.types"}
    for module, allowed in (("notes", {"judge.commands"}), ("commands", set[str]())):
        ours = {
            name
            for name in imported(FOLDER.parent / f"{module}.py")
            if name.startswith(("judge", "annotate"))
        }
        assert ours == allowed


def test_slow_libraries_are_not_imported_with_it() -> None:
    probe = "import sys, judge.stats; print([m for m in ('scipy', 'sklearn', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
