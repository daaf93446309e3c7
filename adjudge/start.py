"""`judge start FILE`: from a file to the first report, by the commands that a user would type.

Each step is one of our commands. It is printed and then run as it is printed, so that a user can go on alone from any step. A
step that is done already is left out, so that the same line, typed again, goes on where it stopped.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.console import note, script
from judge.errors import Exit, UsageError

if TYPE_CHECKING:
    from judge.runner.estimate import Forecast

EMBEDDED = "embedded/minilm"
RELEVANT = "relevant"
FAITHFULNESS = "faithfulness"
"""Not a task: an answer's claims are listed by one task and judged by another."""
CLAIMS, SUPPORT = "claim_decomposition", "claim_support"
GROUNDED = "grounding"
"""A task that takes every answer with the passages that it was given."""
SAMPLE = 100
"""Units that a person gets: the first place at which a verdict is computed."""


@dataclass(frozen=True, slots=True)
class Start:
    """What `judge start` is asked for, and its steps in order."""

    files: Sequence[Path]
    given_model: str | None
    base_url: str | None
    given_task: str | None
    person: str
    yes: bool
    db: Path

    @property
    def model(self) -> str:
        """The judge."""
        return self.given_model or EMBEDDED

    def run(self) -> int:
        """Do every step; the exit code. Raises click's Exit where a step ended with a code that stops the script."""
        with script():
            self._import()
            task = self.given_task or self._proposed()
            code, units = int(Exit.DONE), 0
            for name in (CLAIMS, SUPPORT) if task == FAITHFULNESS else (task,):
                forecast = self._estimate(name)
                if forecast.calls and not self._is_wanted(forecast):
                    note(f"nothing was asked of {self.model}; the same line goes on from here")
                    return Exit.DONE
                if forecast.calls:
                    code = max(code, self._type("judge", "run", name, *self._server()))
                run = self._newest_run(name)
                if not run["ok"]:
                    note(
                        f"no unit has a label; what {self.model} answered: judge runs show {run['run_id']} -d {self.db}"
                    )
                    return Exit.INCOMPLETE
                if name == CLAIMS:
                    self._type("judge", "answers", "claims", run["run_id"])
                units = forecast.units
            judged = SUPPORT if task == FAITHFULNESS else task
            self._label(judged, units)
            return self._report(task, judged) or code

    def _import(self) -> None:
        """Import the files, unless exactly these files were imported: by this command, or with maps by their user."""
        from judge.files import file_sha
        from judge.store import Store, listing

        note("\n1. The file")
        if self.db.exists():
            with Store.open(self.db, create=False) as store:
                there = {sha for row in listing.list_imports(store) for sha in row["files"].values()}
            if all(file_sha(path) in there for path in self.files):
                note(f"{', '.join(map(str, self.files))}: imported already into {self.db}")
                return
        self._type("judge", "items", "import", *map(str, self.files))

    def _proposed(self) -> str:
        """The task that the newest data suit. Raises UsageError where the model has none of them."""
        from judge.asking.items import suited
        from judge.prompts import load_task
        from judge.store import Store
        from judge.store.selection import suits_newest

        with Store.open(self.db, create=False) as store:
            tasks = suited(store)
            has_answers = suits_newest(store, load_task(GROUNDED))
        if has_answers and self.model == EMBEDDED:
            note(
                f"the file has answers, which {EMBEDDED} cannot judge: -m MODEL begins with their faithfulness"
            )
        elif has_answers:
            tasks = [FAITHFULNESS, *tasks]
        if RELEVANT in tasks:
            tasks.remove(RELEVANT)
            tasks.insert(int(FAITHFULNESS in tasks), RELEVANT)
        if self.model == EMBEDDED:
            tasks = [task for task in tasks if task == RELEVANT]
        if not tasks:
            told = "no task that ships fits this file; --task NAME names one (judge tasks list)"
            if self.model == EMBEDDED:
                told = f"{EMBEDDED} judges passages of questions, and this file has none: -m MODEL names another judge"
            raise UsageError(told)
        note(
            f"task: {tasks[0]}" + (f" (--task chooses another: {', '.join(tasks[1:])})" if tasks[1:] else "")
        )
        return tasks[0]

    def _estimate(self, task: str) -> Forecast:
        """Print the estimate, where there is something left to judge, and return it.

        Raises UsageError where no unit of the study fits the task.
        """
        from judge.asking.estimate import estimated
        from judge.asking.run import prepare
        from judge.run_options import RunOptions
        from judge.runner.estimate import Throughput
        from judge.store import Store
        from judge.store.selection import check_any

        note(f"\n2. The judge: {self.model} on {task}")
        with Store.open(self.db, create=False) as store:
            asked = prepare(task, self.model, RunOptions(base_url=self.base_url), store)
            check_any(store, asked.plan.task, asked.plan.selection)
            found = estimated(store, asked, Throughput())
        if found.calls:
            self._type("judge", "estimate", task, *self._server())
        else:
            note(f"all {found.units:,} units are judged already")
        return found

    def _is_wanted(self, forecast: Forecast) -> bool:
        """Whether the calls may be made: they cost nothing, --yes was typed, or the user says so.

        Raises UsageError where nobody can be asked.
        """
        if self.model == EMBEDDED:
            note(
                f"{EMBEDDED} runs in this process and costs nothing. It is a weak judge: on relevance its agreement with people "
                "beyond chance (Cohen's kappa) is about 0.3. -m names a better one."
            )
        if forecast.most == 0 or self.yes:
            return True
        if not sys.stdin.isatty():
            raise UsageError(
                f"{forecast.calls:,} calls of {self.model} may cost money, and no terminal is here to ask: --yes makes them"
            )
        return click.confirm(f"Make these {forecast.calls:,} calls?", err=True)

    def _label(self, task: str, units: int) -> None:
        """Draw a plain sample, unless this person has one of the task, and open the labelling screen."""
        from annotate.leading.progress import list_batches, show_batch
        from annotate.store import open_study
        from judge.prompts import load_task

        note(f"\n3. People: {self.person} labels a sample, without seeing what the judge said")
        name = load_task(task).name
        with open_study(self.db) as store:
            own = [b for b in list_batches(store) if b["task"] == name and self.person in b["annotators"]]
        batch = str(own[-1]["batch"]) if own else f"pilot-{load_task(task).task_id}"
        if not own:
            n = str(min(SAMPLE, units))
            self._type("annotate", "batches", "new", batch, task, "-n", n, "--annotators", self.person)
        with open_study(self.db) as store:
            [progress] = [p for p in show_batch(store, batch)["annotators"] if p["annotator"] == self.person]
        if not progress["open"]:
            note(f"batch '{batch}': {self.person} has nothing left to label")
        elif sys.stdin.isatty() and sys.stdout.isatty():
            self._type("annotate", "open", batch, "--as", self.person)
        else:
            words = ["annotate", "open", batch, "--as", self.person, "-d", str(self.db)]
            note(f"labelling needs a terminal; there: {shlex.join(words)}")

    def _report(self, task: str, judged: str) -> int:
        """The score of answers, and the report as a page."""
        from judge.store import Store, listing

        note("\n4. The numbers, and how far the judge can be trusted")
        if task == FAITHFULNESS:
            with Store.open(self.db, create=False) as store:
                several = len({row["system"] for row in listing.list_systems(store)}) > 1
            words = ["--system", "all"] if several else []
            self._type("judge", "score", FAITHFULNESS, "-m", self.model, "--part", "claims", *words)
        page = self.db.with_suffix(".html")
        code = self._type("annotate", "report", "--task", judged, "-o", str(page))
        note(f"\nThe report, to open in a browser: {page}")
        return code

    def _server(self) -> list[str]:
        """The words of a command that name the model and its server."""
        return ["-m", self.model, *(["--base-url", self.base_url] if self.base_url else [])]

    def _newest_run(self, task: str) -> dict[str, Any]:
        """The newest run of this judge on the task, with its counts."""
        from judge.prompts import load_task
        from judge.store import Store
        from judge.store.export import list_runs

        name = load_task(task).name
        with Store.open(self.db, create=False) as store:
            found = [r for r in list_runs(store) if r["task"] == name and r["model"] == self.model]
        return found[-1]

    def _type(self, program: str, *words: str) -> int:
        """Print a command and run it in this process as it is printed. Returns its exit code, done or incomplete.

        Raises click's Exit for any other code, and what the command raises.
        """
        from annotate.cli import main as annotate

        # The program at which `judge start` was typed: importing it from here would be a circle.
        main = annotate if program == "annotate" else click.get_current_context().find_root().command
        typed = [*words, "-d", str(self.db)]
        note(f"$ {shlex.join([program, *typed])}")
        with main.make_context(program, typed) as context:
            code = int(main.invoke(context) or Exit.DONE)
        if code not in (Exit.DONE, Exit.INCOMPLETE):
            raise click.exceptions.Exit(code)
        sys.stdout.flush()
        return code
