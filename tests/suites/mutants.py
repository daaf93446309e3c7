"""One mutant for each place where a score could take another system's output, another model's run or another setting.

`python -m tests.suites.mutants` copies the tree, puts each fault in, and runs the tests of systems on it: each must fail.
"""

import sys

from tests.mutants import run_on, tell

TESTS = ("tests/suites/test_three_systems.py", "tests/suites/test_systems.py", "tests/suites/test_runs.py")
STUDY = "judge/papers/engine/paper_study.py"
SYSTEM = "judge/papers/engine/system_reading.py"
MUTANTS = {
    "imported verdicts on documents of any system": (
        STUDY,
        "if r.task_id == task and r.model == system and r.imported]",
        "if r.task_id == task and r.imported]",
    ),
    "verdicts on documents of any model": (
        "judge/papers/engine/run_labels.py",
        "if run.task_id == task_id and run.model == system]",
        "if run.task_id == task_id]",
    ),
    "verdicts on documents of a judge that is called as the system": (
        "judge/papers/engine/run_labels.py",
        "if run.imported or run.added or not is_imported]",
        "if run]",
    ),
    "a run named with --run stands for a system": (
        "judge/papers/engine/run_labels.py",
        'self.runs if wanted.role == "judge" else self.find_runs(wanted.models[0], task_id)',
        "self.runs",
    ),
    "verdicts that a model may not have added": (
        STUDY,
        "if maker is None and not any(run.added for run in self.judges.find_runs(system, task)):",
        "if maker is None and not self.judges.find_runs(system, task):",
    ),
    "a file of verdicts alone": (STUDY, "for run in runs[1:]:", "for run in ():"),
    "a model adds verdicts to imported ones": (
        STUDY,
        "        if imported:",
        "        if imported and not self.request.also_generate:",
    ),
    "what a model added is not marked": (
        "judge/papers/engine/perform.py",
        "mark_added(store, report.run_id)",
        "pass",
    ),
    "a model makes what an imported system lacks": (
        SYSTEM,
        "if system in self.rows.imported and not self.request.also_generate:",
        "if False:",
    ),
    "a name with a slash is a model": (SYSTEM, "or is_model(system)", 'or "/" in system'),
    "stored answers of any system": (
        SYSTEM,
        "return next((System(system, name) for name in names if System(system, name) in there), None)",
        "return next((s for s in there if s.condition in names), None)",
    ),
    "a ranking of another system": (SYSTEM, "if name not in others]", "if name]"),
    "the first ranking that there is (ConfirmBiasRAG)": (
        "judge/papers/confirmation.py",
        "study.list_rankings(there)",
        "there[:1]",
    ),
    "a generating run of another system": (
        "judge/papers/engine/chosen.py",
        'PURPOSE = ("context", "system", ',
        'PURPOSE = ("context", ',
    ),
    "a run of another judge": ("judge/papers/engine/chosen.py", "if run.model in models]", "if run.model]"),
    "a run with other settings": (
        "judge/papers/engine/run_labels.py",
        "if wanted in (None, comparable(run))]",
        "if run]",
    ),
    "incomplete runs with other settings": (
        "judge/papers/engine/run_labels.py",
        "if all(len(_settings(part.runs)) == 1 for part in parts):",
        "if all(len(_settings(part.fullest)) == 1 for part in parts):",
    ),
    "each model of a system has settings of its own": (
        "judge/papers/engine/run_labels.py",
        'candidates[0][0].model if role == "judge" else ""',
        "candidates[0][0].model",
    ),
    "the newest setting is another judge's": (
        "judge/papers/engine/run_labels.py",
        "_settings([run for run in self.runs if run in runs_of_asker])",
        "_settings(self.runs)",
    ),
    "labels of every system's answers": (
        "judge/papers/engine/queries.py",
        'f"answer_system = {quote(self.system)} AND answer_condition',
        'f"answer_condition',
    ),
    "option probabilities of any system (URAG)": (
        "judge/papers/urag.py",
        "FROM answers WHERE system = ? AND",
        "FROM answers WHERE ? <> '' AND",
    ),
}
"""Fault -> file, what stands there, and what makes the fault."""


def find(name: str) -> tuple[bool, str]:
    """Whether a test failed on the mutant, and which."""
    done = run_on(MUTANTS[name], ["pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *TESTS])
    # 1: a test failed. Any other code means that the tests did not run.
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    if done.returncode == 1 and failed:
        return True, failed[0].split(" - ")[0].removeprefix("FAILED ")
    return False, f"NOT FOUND (exit {done.returncode}) {done.stdout[-200:]}"


if __name__ == "__main__":
    sys.exit(tell([*MUTANTS], find))
