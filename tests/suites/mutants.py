"""One mutant for each place where a score could take another system's output, another model's run or another setting.

`python -m tests.suites.mutants` copies the tree, puts each fault in, and runs the tests of systems on it: each must fail.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
TESTS = ("tests/suites/test_three_systems.py", "tests/suites/test_systems.py", "tests/suites/test_runs.py")
STUDY = "judge/suites/paper_study.py"
MUTANTS = {
    "verdicts on documents of any model": (
        STUDY,
        "if r.task_id == task and r.model == system]",
        "if r.task_id == task]",
    ),
    "verdicts on documents of a judge that is called as the system": (
        STUDY,
        "if r.imported or r.added]",
        "if r]",
    ),
    "a model makes what an imported system lacks": (
        STUDY,
        "if system in self.rows.imported and not self.asked.also_generate:",
        "if False:",
    ),
    "a name with a slash is a model": (STUDY, "or is_model(system)", 'or "/" in system'),
    "stored answers of any system": (
        STUDY,
        "return next((System(system, name) for name in names if System(system, name) in there), None)",
        "return next((s for s in there if s.condition in names), None)",
    ),
    "a ranking of another system": (STUDY, "if name not in others]", "if name]"),
    "the first ranking that there is (ConfirmBiasRAG)": (
        "judge/suites/confirmation.py",
        "study.own_rankings(there)",
        "there[:1]",
    ),
    "a generating run of another system": (
        "judge/suites/chosen.py",
        'OWN = ("context", "system", ',
        'OWN = ("context", ',
    ),
    "a run of another judge": ("judge/suites/chosen.py", "if run.model in models]", "if run.model]"),
    "a run with other settings": (
        "judge/suites/run_labels.py",
        "if wanted in (None, comparable(run))]",
        "if run]",
    ),
    "incomplete runs with other settings": (
        "judge/suites/run_labels.py",
        "if all(len(_settings(part.runs)) == 1 for part in parts):",
        "if all(len(_settings(part.fullest)) == 1 for part in parts):",
    ),
    "each model of a system has settings of its own": (
        "judge/suites/run_labels.py",
        'found[0][0].model if role == "judge" else ""',
        "found[0][0].model",
    ),
    "the newest setting is another judge's": (
        "judge/suites/run_labels.py",
        "_settings([run for run in self.runs if run in own])",
        "_settings(self.runs)",
    ),
    "labels of every system's answers": (
        "judge/suites/queries.py",
        'f"answer_system = {quoted(self.system)} AND answer_condition',
        'f"answer_condition',
    ),
    "option probabilities of any system (URAG)": (
        "judge/suites/urag.py",
        "FROM answers WHERE system = ? AND",
        "FROM answers WHERE ? <> '' AND",
    ),
}
"""Fault -> file, what stands there, and what makes the fault."""


def main() -> int:
    """Print for each mutant the test that found it; exit 1 when one was not found."""
    missed = 0
    for name, (path, right, wrong) in MUTANTS.items():
        with TemporaryDirectory(prefix="adjudge-mutant-") as folder:
            copy = Path(folder)
            for part in ("judge", "annotate", "adjudge", "tests", "prompts", "data"):
                shutil.copytree(
                    ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__", "*.svg")
                )
            shutil.copy(ROOT / "pyproject.toml", copy)
            text = (copy / path).read_text("utf-8")
            if right not in text:
                raise SystemExit(f"{path} has no {right!r} any more: change the mutant with it")
            (copy / path).write_text(text.replace(right, wrong), "utf-8")
            words = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *TESTS]
            environment = {**os.environ, "PYTHONPATH": folder}
            done = subprocess.run(
                words, cwd=copy, env=environment, capture_output=True, text=True, check=False
            )
        # 1: a test failed. Any other code means that the tests did not run.
        failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
        if done.returncode == 1 and failed:
            told = failed[0].split(" - ")[0].removeprefix("FAILED ")
        else:
            missed, told = missed + 1, f"NOT FOUND (exit {done.returncode}) {done.stdout[-200:]}"
        print(f"{name}: {told}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
