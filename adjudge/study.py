"""Work with a study from Python, using the same functions as the commands `judge` and `annotate`."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from adjudge import outcomes
from adjudge.options import (
    ImproveArguments,
    RunArguments,
    SuiteArguments,
    WatchedCall,
    check_arguments,
    run_options,
)
from adjudge.outcome import Outcome
from adjudge.report import Report
from adjudge.terms import python_terms
from adjudge.waiting import outside_the_loop
from judge.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from judge.asking.scores import ScoreArguments
    from judge.runner.plan import RunDisplay
    from judge.store import Store


@python_terms
class Study:
    """A study file, which is created if it does not exist.

    Every method opens and closes the file, and can be called from any thread.

    The errors are those of the commands (`adjudge.AdjudgeError` and its subclasses in `judge.errors`). The messages are the
    same, but name arguments instead of options: `field=` instead of --field.
    """

    def __init__(self, path: str | Path) -> None:
        """Raise StudyError if the file is not a study or was created by a newer version."""
        from judge.store import Store

        self.path = Path(path)
        if str(path) == ":memory:":
            raise UsageError("the path of a study must name a file, as in Study('study.db')")
        # A file that is not a study is refused here instead of in the first call.
        Store.open(self.path, create=not self.path.exists()).close()

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *exc: object) -> None:
        """Do nothing: no connection is kept between calls."""

    def __repr__(self) -> str:
        return f"Study({str(self.path)!r})"

    def _open(self) -> Store:
        from judge.store import Store

        return Store.open(self.path, create=False)

    # Data in

    def items(
        self,
        data: Any,
        *,
        dataset: str | None = None,
        format: str | None = None,
        maps: Mapping[str, str] | None = None,
        label_maps: Mapping[str, Mapping[str, str]] | None = None,
        skip_bad: bool = False,
        system: str | None = None,
        as_text: Iterable[str] = (),
        scores: Mapping[str, str] | None = None,
        turns: Literal["last", "all"] = "last",
    ) -> Outcome:
        """Import items (`judge items import`): all of them, or none if a row is invalid.

        `data` is a DataFrame with the columns of a CSV file (id, claim, passages.text, gold.FIELD, ...), a mapping {column:
        values}, an iterable of rows with the keys of a JSONL file, the path of a file (`format` is detected by default), or
        a list of paths if the format consists of several files. `maps` maps our fields to columns, and `label_maps` maps a
        label field to {old: new}. Common tables (a question, its contexts, an answer) need no maps. `system` is the system
        for answers in rows that do not name one, `as_text` lists columns whose cells are text, and `scores` maps a column
        to the tool that computed its numbers. `turns` says whether the last question of a chat log's conversations is
        imported or all of them. Raises BadInput with the row (counted from 1) and the field, and UsageError
        for maps that match no column or label.
        """
        from adjudge.incoming import import_items

        return import_items(
            self.path, data, format, skip_bad, dataset=dataset, maps=maps or {}, label_maps=label_maps or {},
            system=system, as_text=frozenset(as_text), scores=scores or {}, turns=turns,
        )  # fmt: skip

    # Judges

    def run(
        self,
        task: str,
        *,
        model: str | None = None,
        progress: bool | RunDisplay = True,
        **options: Unpack[RunArguments],
    ) -> Outcome:
        """Label every unit that fits the task and that this run has not labelled yet (`judge run`).

        To resume, repeat the call.

        Every run requires `model`, except a run with a panel's `recipe`, which names its models itself.

        `options` are those of `judge.run_options.RunOptions`, with the same names as the command's options: limit, where,
        examples, repeats, base_url, max (limits: 5usd, 2h, 1Mtokens), patience (seconds), temperature, answers, rationale,
        recipe ... Inside a running event loop, the run uses a separate thread. `progress` may be a function that receives
        the state of the run (`judge.runner.plan.Live`); if it raises an error, the run stores all answers, stops and
        raises the error again. The document contains the counts. Units without a label are listed in the notes and raise
        no error. Raises the error that ended the run, if there is one.
        """
        from judge.asking import panel as panels
        from judge.asking import run as asking
        from judge.improve.panel import find

        given = run_options(options)
        panel = find(given.recipe) if given.recipe is not None else None
        if panel is not None and model is not None:
            raise UsageError(
                f"model={model!r}: cannot be used with a panel's recipe, which names its models itself"
            )
        stop = asking.Stop()

        def work() -> tuple[list[asking.Ran], panels.PanelOutcome | None]:
            def ask(prepared: asking.Asking) -> asking.Ran:
                return asking.run(store, asking.complete_asking(store, prepared, given), watched, stop)

            with self._open() as store:
                every = (
                    panels.members(store, task, panel, given)
                    if panel
                    else [asking.prepare(task, model, given, store)]
                )
                # A panel has one budget, so its members run one after the other.
                return panels.run(store, panel, every, ask) if panel else ([ask(every[0])], None)

        with WatchedCall(progress, stop) as watched:
            done, made = outside_the_loop(work, stop)
        return outcomes.ran(done[-1]) if panel is None else outcomes.panel(done, made)

    def calibrate(
        self,
        task: str,
        run: str | None = None,
        *,
        method: str | None = None,
        prior: str | None = None,
        field: str | None = None,
        reference: str | None = None,
        keep: bool = True,
        interval: str | None = "bca",
        confidence: float = 0.95,
        replicates: int = 1000,
        seed: int = 0,
    ) -> Outcome:
        """Calibrate a judge's label probabilities (`judge calibrate`).

        The outcome's `run_id` is the calibrated run, or None if no run was stored.
        """
        from judge.asking import judges

        intervals: Any = {"interval": None if interval == "none" else interval, "confidence": confidence}
        with self._open() as store:
            done = judges.calibrate(
                store, task, run, method=method, prior=prior, field=field, reference=reference, keep=keep,
                replicates=replicates, seed=seed, **intervals,
            )  # fmt: skip
        return outcomes.calibrated(done)

    def route(
        self,
        task: str,
        run: str,
        then: str | None = None,
        *,
        agree: float = 0.9,
        confidence: float = 0.95,
        field: str | None = None,
        reference: str | None = None,
        keep: bool = True,
    ) -> Outcome:
        """Select the units for which a run's labels can be accepted without people (`judge route`).

        `agree` is the required rate at which the accepted labels agree with the reference. The outcome's
        `run_id` is the run with the accepted units. It is None if no threshold passes or if `keep` is False.
        If the task is split, the agreement is tested on the sealed test, and this use is logged.
        """
        from judge.asking import judges

        with self._open() as store:
            routing, kept = judges.route(
                store,
                task,
                run,
                then,
                agree=agree,
                confidence=confidence,
                field=field,
                reference=reference,
                keep=keep,
            )
            return outcomes.routed(routing, kept)

    def compare(
        self,
        task: str,
        runs: Sequence[str] = (),
        *,
        part: str | None = None,
        confidence: float = 0.95,
        field: str | None = None,
        reference: str | None = None,
    ) -> Outcome:
        """Compare runs of a task on the same units with one reference (`judge compare`).

        A difference is the value of the second run minus the value of the first run.
        """
        from judge.asking import judges

        # A string is a sequence of letters. An outcome that stored no run has None.
        if isinstance(runs, str) or not all(isinstance(run, str) for run in runs):
            raise UsageError(
                f"runs={runs!r}: must be a list of run ids; if an outcome has the run_id None, its .notes say why no run was stored"
            )
        with self._open() as store:
            contest = judges.compare(
                store, task, runs, part=part, confidence=confidence, field=field, reference=reference
            )
            return outcomes.compared(contest)

    def improve(
        self,
        task: str,
        *,
        model: str,
        field: str | None = None,
        reference: str | None = None,
        anyway: bool = False,
        rewriter: str | None = None,
        recipe: str | Path | None = None,
        progress: bool | RunDisplay = True,
        **options: Unpack[ImproveArguments],
    ) -> Outcome:
        """Search for a better judge, and test it on the sealed test (`judge improve`). The task must be split.

        `rewriter` is a model that rewrites the instructions. If the test confirms the improvement, the recipe is written to
        `recipe` (default: TASK.recipe.yaml), for use in `run(..., recipe=...)`. Raises Halted if a run ended before its last
        unit; to continue, repeat the call.
        """
        from judge.asking import judges
        from judge.asking import run as asking
        from judge.improve.page import write_recipe

        given = run_options(
            options, without=("recipe", "limit", "where", "units_of", "sample", "examples", "relevant")
        )
        target = None if recipe is None else Path(recipe)
        # Checked before the search, because its result could not be written otherwise.
        if target is not None and not target.resolve().parent.is_dir():
            raise UsageError(f"{target}: its folder does not exist")
        stop = asking.Stop()

        def work() -> Outcome:
            with self._open() as store:
                prepared = asking.prepare(task, model, given, store)
                writer = None if rewriter is None else judges.rewriter_of(rewriter, prepared, given)
                improved = judges.improve(
                    store,
                    prepared,
                    field=field,
                    reference=reference,
                    anyway=anyway,
                    rewriter=writer,
                    progress=watched,
                    stop=stop,
                )
                return outcomes.improved(
                    improved, write_recipe(improved, target) if improved.proved else None
                )

        with WatchedCall(progress, stop) as watched:
            return outside_the_loop(work, stop)

    # Labels and numbers out

    def labels(self, field: str | None = None) -> pd.DataFrame:
        """Return the labels in the study, with one row per label. With `field`, return only the labels for this field.

        The labels are gold labels, human labels, the lead's decisions and labels from judges.

        `value` is a string, `distribution` is {label: probability} or missing, and `model` is the model of a run. These are
        the raw rows, including those of a sealed test. Raises UsageError if the field has no labels; the message lists the
        fields with labels.
        """
        from adjudge.frames import frame
        from judge.labels.relation import EVERY, fields, read_all

        with self._open() as store:
            if field is not None and field not in (there := fields(store.conn)):
                known = ", ".join(there) or "none"
                raise UsageError(f"{self.path}: nobody labelled '{field}'; fields with labels: {known}")
            rows = [dict(zip(EVERY, row, strict=True)) for row in read_all(store.conn, field)]
        for row in rows:
            row["distribution"] = json.loads(str(row["distribution"])) if row["distribution"] else None
        return frame(rows, EVERY)

    def judgements(self, run: str | None = None) -> pd.DataFrame:
        """Return the replies of models, one row per unit and repeat, from all runs or from one run.

        `run` is a run's id, a part of the id, `last` or a model. Each field of the runs' tasks has a column `label.FIELD`.
        If a label is missing, `status` and `reason` say why.
        """
        from adjudge.frames import frame
        from judge.store import export

        rows: list[dict[str, Any]] = []
        fields: list[str] = []
        with self._open() as store:
            runs = [export.find_named_run(store, run)] if run else export.list_runs(store)
            for stored_run in runs:
                task = export.read_stored_task(store, stored_run["task"])
                fields += task.fields
                for row in export.read_judged(store, stored_run, task):
                    # A column for each field can be grouped and counted, which a dictionary cannot.
                    labels = row.pop("labels")
                    rows.append({**row, **{f"label.{name}": value for name, value in labels.items()}})
        columns = [*export.COLUMNS, *(f"label.{name}" for name in dict.fromkeys(fields)), "distributions"]
        return frame(rows, columns)

    # Systems under test

    def answers(
        self,
        data: Any,
        *,
        system: str | None = None,
        condition: str | None = None,
        paper: str | None = None,
        dataset: str | None = None,
        maps: Mapping[str, str] | None = None,
        label_maps: Mapping[str, Mapping[str, str]] | None = None,
        skip_bad: bool = False,
    ) -> Outcome:
        """Import the answers of systems (`judge systems import`): all rows, or none if a row is invalid.

        `data` is a DataFrame, a mapping {column: values}, a list of rows, or the path of a file. It contains
        id and text. It also contains system and condition if these arguments are not given. Conditions are
        named as in the paper. If a row has a `document`, the output is about that passage only. `maps` maps
        our keys to columns, e.g. {"system": "model_name"}. The notes list the data that is still missing for
        the paper's protocol. Raises BadInput with the row (counted from 1) and the field.
        """
        from adjudge.protocols import import_outputs
        from judge.asking.systems import Outputs

        outputs = Outputs(system, condition, paper, skip_bad=skip_bad)
        with self._open() as store:
            return import_outputs(store, data, outputs, dataset, maps, label_maps)

    def rankings(
        self,
        path: str | Path,
        *,
        stage: str,
        system: str | None = None,
        name: str | None = None,
        dataset: str | None = None,
        skip_bad: bool = False,
    ) -> Outcome:
        """Import ranked passages from a TREC run file (`judge systems import --stage`).

        `stage` is retrieve (as retrieved), rerank (reordered) or top-k (the passages in the context). The
        ranking is called `name` or, by default, `system`. If both are missing, the last column of the file
        contains the name. If the name is also the name of a system, the ranking belongs to that system.
        """
        from adjudge.protocols import import_outputs
        from judge.asking.systems import STAGES, Outputs

        # On the command line, click checks this.
        if stage not in STAGES:
            raise UsageError(f"stage={stage!r}: must be one of {', '.join(STAGES)}")
        outputs = Outputs(system, stage=stage, name=name, skip_bad=skip_bad)
        with self._open() as store:
            return import_outputs(store, path, outputs, dataset)

    def nuggets(
        self,
        data: Any,
        *,
        judge: str | None = None,
        annotator: str | None = None,
        condition: str | None = None,
        dataset: str | None = None,
        skip_bad: bool = False,
    ) -> Outcome:
        """Import nuggets, the facts in good answers (`judge nuggets import`): all rows, or none if a row is invalid.

        `data` is a DataFrame, a mapping {column: values}, a list of rows, or the path of a file. It contains id, nugget and
        importance (vital or okay), or records written by `nuggetizer`. If it contains assignments to answers (system and
        assignment), `judge` or `annotator` names their source. Raises BadInput with the row (counted from 1) and the field.
        """
        from adjudge.protocols import import_nuggets
        from judge.asking.nuggets import assigner

        whose = assigner(judge, annotator, condition)
        with self._open() as store:
            return import_nuggets(store, data, whose, dataset, skip_bad)

    def systems(self) -> pd.DataFrame:
        """Return the conditions and rankings of each system (`judge systems list`), with counts and origin."""
        from adjudge.frames import frame
        from judge.store import listing

        with self._open() as store:
            rows = listing.list_outputs(store)
        return frame(rows, ("system", "condition", "outputs", "empty", "origin"))

    def scores(
        self,
        paper: str,
        *,
        system: str | None = None,
        systems: Sequence[str] = (),
        **options: Unpack[ScoreArguments],
    ) -> pd.DataFrame:
        """Return a paper's measures (`judge score PAPER`), with one row per system and measure.

        A row contains the value, n and coverage, or the reason why the measure is undefined.

        Each of the `systems` is scored separately (`board` compares them); "all" selects every system. `.attrs` contains
        the runs behind the numbers, the notes, and the missing outputs of systems (`lacking`). If data is missing, raises
        Incomplete with the calls that create it.
        """
        from adjudge.protocols import scores, systems_asked

        with self._open() as store:
            return scores(store, paper, systems_asked(system, systems), options)

    def results(
        self,
        name: str | None = None,
        *,
        system: str | None = None,
        condition: str | None = None,
        dataset: str | None = None,
        per: str | None = None,
        parts: Sequence[str] = (),
        readings: Mapping[str, str] | None = None,
        runs: str | Sequence[str] = (),
        sort: str | None = None,
        where: Sequence[str] = (),
    ) -> Outcome:
        """Return a row for each answer, passage, sentence or claim, worst first (`judge results`).

        `name` is a paper, or a task whose newest run is shown (default: the newest run of all). `.frame` has the user's own
        columns, the texts, each label with its status and reason, people's labels, and the scores of the row. Raises
        UsageError for an unknown name, measure or column.
        """
        from adjudge.outcomes import results

        with self._open() as store:
            return results(
                store, name, system=system, condition=condition, dataset=dataset, per=per, parts=tuple(parts),
                readings=readings, runs=(runs,) if isinstance(runs, str) else tuple(runs), sort=sort, where=tuple(where),
            )  # fmt: skip

    def board(
        self, paper: str, systems: Sequence[str] | str = "all", **options: Unpack[ScoreArguments]
    ) -> Outcome:
        """Return a leaderboard (`judge score PAPER --system all`) on the rows for which all systems have a value.

        With judges="each" and several `runs`, the method compares judges. `.frame` has one row per measure and contender,
        and `.save` writes the page. Raises Incomplete as `scores` does.
        """
        from adjudge.protocols import board, systems_asked

        with self._open() as store:
            return board(store, paper, systems_asked(None, systems), options)

    def suite(
        self,
        paper: str,
        *,
        model: str,
        system: str | None = None,
        systems: Sequence[str] = (),
        progress: bool | RunDisplay = True,
        **options: Unpack[SuiteArguments],
    ) -> pd.DataFrame:
        """Create the data that is missing for a paper's scores, and return the scores (`judge suite PAPER`).

        `model` is the judge. If no system is named, the model is also the system that is scored. If a named
        system lacks outputs, they are generated only if the system is this model. Otherwise,
        `.attrs["lacking"]` lists them. To resume, repeat the call. Raises the error that ended a run.
        """
        from adjudge.protocols import suite, systems_asked
        from judge.asking.run import Stop

        names = systems_asked(system, systems)
        stop = Stop()

        def work() -> pd.DataFrame:
            with self._open() as store:
                return suite(store, paper, model, names, options, watched, stop)

        with WatchedCall(progress, stop) as watched:
            return outside_the_loop(work, stop)

    # People

    def draw(
        self,
        name: str,
        task: str,
        *,
        annotators: Sequence[str],
        n: int | None = None,
        by: str | None = None,
        draw: str | None = None,
        by_question: int | None = None,
        where: str | None = None,
        overlap: int | None = None,
        seed: int = 0,
        repeats: float = 0.0,
        training: int = 0,
        pass_mark: float = 0.8,
        attention: float = 0.0,
        fresh: bool = False,
        reveal: bool = False,
        looks: int | None = None,
        until_decided: bool = False,
        judges: Sequence[str] = (),
        allow_exposed: bool = False,
        run: str | None = None,
    ) -> Outcome:
        """Draw a batch of units for people to label (`annotate batches new`), and store the inclusion probabilities.

        `training` is the number of training units, which are drawn from the units with a gold label. Shares (`repeats`,
        `attention`, `pass_mark`) are between 0 and 1.
        """
        from annotate.batch_plan import BatchPlan, plan_draw
        from annotate.drawing.batch import new_batch
        from annotate.store import open_study
        from judge.store.export import find_run, find_task

        if isinstance(annotators, str):
            raise UsageError(f"annotators={annotators!r}: must be a list of names, e.g. [{annotators!r}]")
        with open_study(self.path) as store:
            runs = [find_run(store, judge)["run_id"] for judge in judges]
            plan = BatchPlan(
                name, annotators, n, by, seed, overlap, repeats, training, attention, by_question,
                looks=looks, judges=runs, reveal=reveal, where=where, pass_mark=pass_mark,
                allow_exposed=allow_exposed, fresh=fresh, **plan_draw(draw, run),
            )  # fmt: skip
            # This draws the first block; the next block is drawn when it is complete.
            plan = plan.to_blocks() if until_decided else plan
            made = new_batch(store, find_task(store, task), plan)
        rows = [{"stratum": stratum, **counts} for stratum, counts in made.strata.items()]
        document = {slot: getattr(made, slot) for slot in made.__slots__ if slot != "notes"}
        title = (
            f"batch '{name}' on {made.task}: {made.units} of {made.frame} units ({made.questions} questions)"
        )
        return Outcome(title, document, rows, made.notes)

    def agreement(
        self,
        *,
        field: str | None = None,
        task: str | None = None,
        batch: str | None = None,
        runs: Sequence[str] = (),
        annotators: Sequence[str] | None = None,
        level: str | None = None,
        order: Sequence[str] | None = None,
        measures: str | Sequence[str] | None = None,
        reference: str | None = None,
        per_class: bool = False,
        interval: str | None = "bca",
        confidence: float = 0.95,
    ) -> pd.DataFrame:
        """Measure how well annotators agree (`annotate agreement`): one row per measure, with n, coverage, interval and reason.

        Without `field` and `task`, all fields that at least two annotators labelled are used. A task with its version
        (`stance.v2`) selects the labels that were given under it. `.attrs["notes"]` has the notes.
        """
        from adjudge.frames import measures as as_frame
        from annotate.agreement.one_field import analyse, check_measures, panels_of
        from judge.labels.reference import resolve

        measures = [measures] if isinstance(measures, str) else measures
        check_measures(measures or ())
        intervals: Any = {"interval": None if interval == "none" else interval, "confidence": confidence}
        with self._open() as store:
            panels, left_out = panels_of(
                store,
                field=field,
                task=task,
                batch=batch,
                runs=runs,
                annotators=annotators,
                level=level,
                order=order,
            )
            results = [
                analyse(
                    panel, resolve(panel, reference), names=measures, per_class=per_class,
                    **intervals,
                )
                for panel in panels
            ]  # fmt: skip
        notes = [f"left out: {reason}" for reason in left_out]
        notes += [str(text) for result in results for text in result.notes]
        return as_frame((m for result in results for m in result.measures), notes=list(dict.fromkeys(notes)))

    def report(
        self,
        *,
        field: str | None = None,
        task: str | None = None,
        epsilon: float | str = "expert",
        **options: Any,
    ) -> Report:
        """Report how far the judges of a field can be trusted (`annotate report`). Notebooks show the verdicts and figures.

        `epsilon` is expert (0.2), skilled (0.15), crowd (0.1), or a number. The other options are the fields of
        `annotate.report.ReportOptions`: runs, batch, reference, margin, threshold, annotators ...
        """
        from annotate.report import ReportOptions, build
        from judge.stats.alternative import epsilon_of

        # The error of the dataclass would not name the possible arguments.
        check_arguments(options, inspect.signature(ReportOptions).parameters, "report")
        value, named = epsilon_of(epsilon)
        report_options = ReportOptions(field=field, task=task, epsilon=value, epsilon_name=named, **options)
        with self._open() as store:
            return Report(build(store, report_options))
