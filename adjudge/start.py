"""`judge start FILE`: go from a file to the first report with the commands that a user would type.

Each step is one of our commands. It is printed and then run exactly as printed, so that a user can continue from any step
without this command. Completed steps are skipped, so running the same command again continues where it stopped.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from judge.commands import command
from judge.console import note, script
from judge.errors import Exit, UsageError

if TYPE_CHECKING:
    from judge.asking.run import Asking
    from judge.prompts.load import Task
    from judge.runner.estimate import Forecast
    from judge.store import Store

EMBEDDED = "embedded/minilm"
RELEVANT = "relevant"
FAITHFULNESS = "faithfulness"
"""A value of --task that is not the name of a task.

It stands for two tasks: one lists the claims in an answer, and the other judges them.
"""
CLAIMS, SUPPORT = "claim_decomposition", "claim_support"
SAMPLE = 100
"""Number of units that a person labels: the smallest number for which a verdict is computed."""


@dataclass(frozen=True, slots=True)
class Start:
    """The options of `judge start`, and its steps in order."""

    files: Sequence[Path]
    given_model: str | None
    base_url: str | None
    given_task: str | None
    person: str
    yes: bool
    db: Path

    @property
    def model(self) -> str:
        """The judge as vendor/model: the given model or, by default, the embedded model."""
        return self.given_model or EMBEDDED

    def run(self) -> int:
        """Run every step and return the exit code. Raises click's Exit if a step fails."""
        with script():
            task = self._import()
            code = int(Exit.DONE)
            for name in (CLAIMS, SUPPORT) if task == FAITHFULNESS else (task,):
                forecast = self._estimate(name)
                # Without calls, the command is only being repeated, and nothing needs to be confirmed.
                if forecast.calls and not self._is_wanted(forecast):
                    note(f"no request was sent to {self.model}; run the same command again to continue")
                    return Exit.DONE
                if forecast.calls:
                    code = max(code, self._type("judge", "run", name, *self._server()))
                run = self._newest_run(name)
                if not run["ok"]:
                    note(
                        f"no unit has a label; to read the replies of {self.model}: {command('judge runs show', run['run_id'], study=self.db)}"
                    )
                    return Exit.INCOMPLETE
                if name == CLAIMS:
                    self._type("judge", "answers", "claims", run["run_id"])
            judged = SUPPORT if task == FAITHFULNESS else task
            batches = self._label(judged)
            return self._report(task, judged, batches) or code

    def _import(self) -> str:
        """Import the files, unless exactly these files were already imported, by this command or by another one.

        Returns the task, which is chosen and checked before anything is stored. Raises UsageError if no task fits.
        """
        from judge.asking.items import from_files
        from judge.errors import BadInput
        from judge.files import file_sha
        from judge.importers.base import Options
        from judge.importers.signs import recognise_format
        from judge.store import Store, listing

        note("\n1. The file")
        files = ", ".join(map(str, self.files))
        if self.db.exists():
            with Store.open(self.db, create=False) as store:
                there = {sha for row in listing.list_imports(store) for sha in row["files"].values()}
                if all(path.is_file() and file_sha(path) in there for path in self.files):
                    note(f"{files}: already imported into {self.db} (under this or another name)")
                    return self._task(store)
        typed = ("judge", "items", "import", *map(str, self.files))
        with TemporaryDirectory() as folder:
            # The import is tried in another file first, because a wrong task or model must not leave a
            # study behind.
            trial = Path(folder) / "study.db"
            try:
                from_files(trial, recognise_format(self.files), self.files, Options())
            except BadInput:
                # The import command reports the same error, with the maps to type, and it stores nothing
                # either.
                self._type(*typed)
                raise
            with Store.open(trial, create=False) as store:
                task = self._task(store)
        self._type(*typed)
        return task

    def _task(self, store: Store) -> str:
        """Return the given task, or the task that fits the newest data.

        Raises UsageError if the data or the model does not fit the task.
        """
        from judge.asking.items import ANSWERS_ALONE, has_grounds
        from judge.store.export import find_task
        from judge.store.selection import Selection, check_any

        task = self.given_task or self._propose_task(store)
        if task == FAITHFULNESS and not has_grounds(store):
            fitting = ", ".join(f"--task {name}" for name in ANSWERS_ALONE)
            raise UsageError(
                f"{FAITHFULNESS} needs answers with contexts, and this file has none; for answers alone: {fitting}"
            )
        first = CLAIMS if task == FAITHFULNESS else task
        loaded = find_task(store, first)
        check_any(store, loaded, Selection(None))
        # The model gives one score for a passage, which can only separate two labels.
        if self.model == EMBEDDED and len(loaded.domain(loaded.spec.questions[0].field)) != 2:
            raise UsageError(
                f"{EMBEDDED} can only separate relevant passages from others; for {task}, choose a judge with -m MODEL"
            )
        self._prepare(store, first)
        return task

    def _prepare(self, store: Store, task: str) -> Asking:
        """Prepare the run of a task. Raises UsageError if the judge cannot be created, e.g. because its key is missing."""
        from judge.asking.run import prepare
        from judge.run_options import RunOptions

        options = RunOptions(base_url=(self.base_url,) if self.base_url else ())
        return prepare(task, self.model, options, store)

    def _propose_task(self, store: Store) -> str:
        """Return the task that fits the newest data. Raises UsageError if no task fits both the data and the model."""
        from judge.asking.items import find_suitable_tasks, has_grounds

        tasks = find_suitable_tasks(store)
        has_answers = has_grounds(store)
        if has_answers and self.model == EMBEDDED:
            note(
                f"the file has answers, which {EMBEDDED} cannot judge; to judge their faithfulness, use -m MODEL"
            )
        elif has_answers:
            tasks = [FAITHFULNESS, *tasks]
        if RELEVANT in tasks:
            tasks.remove(RELEVANT)
            tasks.insert(int(FAITHFULNESS in tasks), RELEVANT)
        if self.model == EMBEDDED:
            tasks = [task for task in tasks if task == RELEVANT]
        if not tasks:
            reason = f"no shipped task fits this file; choose another task with --task NAME ({command('judge tasks show')})"
            if self.model == EMBEDDED:
                reason = f"{EMBEDDED} judges passages for questions, and this file has none; choose another judge with -m MODEL"
            raise UsageError(reason)
        note(
            f"task: {tasks[0]}"
            + (f" (to choose another, use --task: {', '.join(tasks[1:])})" if tasks[1:] else "")
        )
        return tasks[0]

    def _estimate(self, task: str) -> Forecast:
        """Return the forecast of the run, and print it if there are units left to judge.

        Raises UsageError if no unit in the study fits the task.
        """
        from judge.asking.run import estimate_run
        from judge.store import Store
        from judge.store.selection import check_any

        note(f"\n2. The judge: {self.model} on {task}")
        with Store.open(self.db, create=False) as store:
            prepared = self._prepare(store, task)
            check_any(store, prepared.plan.task, prepared.plan.selection)
            forecast = estimate_run(store, prepared)
        if forecast.calls:
            self._type("judge", "run", task, *self._server(), "--estimate")
        else:
            note(f"all {forecast.units:,} units have already been judged")
        return forecast

    def _is_wanted(self, forecast: Forecast) -> bool:
        """Return whether to make the calls to the model.

        The answer is yes if the calls are free, if --yes was given, or if the user confirms them. Raises
        UsageError if there is no terminal on which to ask the user.
        """
        if self.model == EMBEDDED:
            note(
                f"{EMBEDDED} runs in this process and costs nothing. It is a weak judge: on relevance its agreement with people "
                "beyond chance (Cohen's kappa) is about 0.3. For a better judge, use -m."
            )
        if forecast.most == 0 or self.yes:
            return True
        if not sys.stdin.isatty():
            raise UsageError(
                f"{forecast.calls:,} calls to {self.model} may cost money, and there is no terminal on which to confirm them; to make them anyway, use --yes"
            )
        # Printed on stderr, because stdout is reserved for the tables of the commands.
        return click.confirm(f"Make these {forecast.calls:,} calls?", err=True)

    def _label(self, task: str) -> list[str]:
        """Draw a simple random sample for this person, and open the labelling screen.

        If the person already has a batch, the sample contains only units that were added after that batch was
        drawn.

        Returns the batches of this person for the task, oldest first.
        """
        from annotate.leading.progress import list_batches, show_batch
        from annotate.store import open_study
        from judge.store.export import find_task

        note(f"\n3. People: {self.person} labels a sample, without seeing the judge's labels")
        with open_study(self.db) as store:
            loaded = find_task(store, task)
            every = list_batches(store)
            mine = [
                str(b["batch"]) for b in every if b["task"] == loaded.name and self.person in b["annotators"]
            ]
            words = self._draw(store, loaded, mine)
        if words:
            first = f"pilot-{loaded.task_id}"
            # A later import gets a separate batch, under the next free name.
            names = [first, *(f"{first}-{n}" for n in range(2, len(every) + 3))]
            name = next(name for name in names if name not in [b["batch"] for b in every])
            self._type("annotate", "batches", "new", name, task, *words, "--annotators", self.person)
            mine.append(name)
        for batch in mine:
            with open_study(self.db) as store:
                [progress] = [
                    p for p in show_batch(store, batch)["annotators"] if p["annotator"] == self.person
                ]
            typed = ["annotate", "open", batch, "--as", self.person]
            if not progress["open"]:
                note(f"batch '{batch}': {self.person} has nothing left to label")
            elif sys.stdin.isatty() and sys.stdout.isatty():
                self._type(*typed)
                # One batch is labelled at a time; the same command opens the next batch.
                break
            else:
                note(
                    f"labelling requires a terminal; in a terminal, run: {command(' '.join(typed[:2]), *typed[2:], study=self.db)}"
                )
        return mine

    def _draw(self, store: Store, task: Task, mine: list[str]) -> tuple[str, ...]:
        """Return the command-line arguments for drawing a batch.

        The batch is drawn from the units that were added after this person's last batch or, if there is none,
        from all units. The tuple is empty if there is nothing to draw.
        """
        from annotate.drawing.whole import find_plain_draw

        last = mine[-1] if mine else None
        try:
            drawn = find_plain_draw(store, task, self.person, SAMPLE, last)
        except UsageError as error:
            note(str(error))
            return ()
        if drawn is None:
            return ()
        # Otherwise the claims of a second system would be in no batch, without any message.
        if last is not None:
            note(
                f"{drawn.newer:,} units were added after batch '{last}' was drawn (another system, or a larger export). They get a separate "
                f"batch and verdict: {drawn.share:.0%} of them are drawn, compared with {drawn.earlier_share:.0%} for '{last}'."
            )
        return drawn.words

    def _report(self, task: str, judged: str, batches: list[str]) -> int:
        """Write the report as a page. If the task is faithfulness, also print the score of the answers."""
        from judge.store import Store, listing

        note("\n4. The results, and how far the judge can be trusted")
        if task == FAITHFULNESS:
            with Store.open(self.db, create=False) as store:
                several = len({row["system"] for row in listing.list_systems(store)}) > 1
            words = ["--system", "all"] if several else []
            # The other parts of the paper need runs that were not made here.
            self._type("judge", "score", FAITHFULNESS, "-m", self.model, "--part", "claims", *words)
        page = self.db.with_suffix(".html")
        code = self._type("annotate", "report", "--task", judged, "-o", str(page))
        note(f"\nThe report, to open in a browser: {page}")
        for batch in batches[:-1]:
            words = ["annotate", "report", "--task", judged, "--batch", batch, "-d", str(self.db)]
            note(
                f"the verdict of the report is on the newest units; for a verdict on the units in '{batch}': {shlex.join(words)}"
            )
        return code

    def _server(self) -> list[str]:
        """Return the command-line arguments for the model and its server."""
        return ["-m", self.model, *(["--base-url", self.base_url] if self.base_url else [])]

    def _newest_run(self, task: str) -> dict[str, Any]:
        """Return the newest run of this judge on the task, as a row of `list_runs`."""
        from judge.store import Store
        from judge.store.export import find_task, list_runs

        with Store.open(self.db, create=False) as store:
            name = find_task(store, task).name
            matching = [r for r in list_runs(store) if r["task"] == name and r["model"] == self.model]
        return matching[-1]

    def _type(self, program: str, *words: str) -> int:
        """Print a command and run it in this process exactly as printed.

        Returns the exit code if it is DONE or INCOMPLETE, and raises click's Exit for any other exit code.
        Errors raised by the command are passed on unchanged.
        """
        from annotate.cli import main as annotate

        # The program at which `judge start` was typed: importing it from here would be a circle.
        main = annotate if program == "annotate" else click.get_current_context().find_root().command
        typed = [*words, "-d", str(self.db)]
        note(f"$ {shlex.join([program, *typed])}")
        # click parses the words as if they were typed, so the printed line is what runs.
        with main.make_context(program, typed) as context:
            code = int(main.invoke(context) or Exit.DONE)
        # Units without a label do not end the script, because the report counts them.
        if code not in (Exit.DONE, Exit.INCOMPLETE):
            raise click.exceptions.Exit(code)
        # The next command is announced on stderr, which would overtake the text in a pipe.
        sys.stdout.flush()
        return code
