"""Find the annotators and runs that a user names in a command."""

from collections.abc import Iterable, Sequence

from judge.errors import UsageError
from judge.store import Store, label_rows
from judge.store.runs import read_tried
from judge.types import AnnotatorKind

ORDER = [AnnotatorKind.HUMAN, AnnotatorKind.JUDGE, AnnotatorKind.ADJUDICATED, AnnotatorKind.GOLD]


def make_short_names(runs: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Return a short unique name for each (run id, model, task). The last part of the name identifies the run."""
    rows = list(runs)
    # A run id begins with its time, so ids of the same day differ at their ends.
    size = 4
    while len({run[-size:] for run, _, _ in rows}) < len(rows):
        size += 1
    return {run: f"{model} · {task} · {run[-size:]}" for run, model, task in rows}


def find_annotators(
    store: Store,
    field: str,
    tasks: set[str],
    runs: list[str],
    requested: Iterable[str] | None,
    *,
    usual: set[str],
) -> tuple[list[str], dict[str, str], dict[str, AnnotatorKind]]:
    """Return the ids of the annotators in order, the display names of runs, and the kind of each annotator.

    `tasks` define the field in the same way, so their runs can be named. Runs that are not named must belong to `usual`.
    """
    kinds = {name: AnnotatorKind(kind) for name, kind in label_rows.labellers(store.conn, field).items()}
    people = sorted(kinds, key=lambda name: (ORDER.index(kinds[name]), name))
    # A run that was interrupted before its first judgement has nothing to compare.
    judged = store.conn.execute(
        "SELECT run_id, model, task FROM runs AS r WHERE EXISTS "
        "(SELECT 1 FROM judgements AS j WHERE j.run_id = r.run_id) ORDER BY started, run_id"
    ).fetchall()
    shown = make_short_names(judged)
    all_runs = [run for run, _, task in judged if task in tasks]
    only_tried = read_tried(store.conn)
    # Runs that only a search started would otherwise compete with the runs that a user chose.
    made = [run for run in all_runs if run not in only_tried] or all_runs
    chosen = [_find(name, judged, all_runs, made, people) for name in runs]
    if requested is None:
        tasks_of = {run: task for run, _, task in judged}
        named, chosen = people, chosen or [run for run in made if tasks_of[run] in usual]
    else:
        named = []
        for name in requested:
            if name in kinds:
                named.append(name)
            else:
                chosen.append(_find(name, judged, all_runs, made, people))
    chosen = list(dict.fromkeys(chosen))
    kinds.update(dict.fromkeys(chosen, AnnotatorKind.JUDGE))
    names = [
        n for kind in ORDER for n in (chosen if kind is AnnotatorKind.JUDGE else named) if kinds[n] is kind
    ]
    return list(dict.fromkeys(names)), shown, kinds


def _find(
    name: str,
    judged: Sequence[tuple[str, str, str]],
    comparable: Sequence[str],
    made: Sequence[str],
    people: Sequence[str],
) -> str:
    """Return the id of the only run that `name` refers to.

    `comparable` lists the runs whose tasks define the field with the same labels. `made` lists the comparable
    runs that a user started.
    """
    if name == "last" and made:
        return made[-1]
    # As in `judge.store.export.find_named_run`, but a model may also have runs of other tasks.
    # Reports show the version of the task beside a model that has runs of several versions.
    of_model = [
        (run, task)
        for run, model, task in judged
        if name in (model, f"{model} · {task}") and run in comparable
    ]
    matches = [(run, task) for run, task in of_model if run in made] or of_model
    end = name.rpartition(" · ")[2].upper()
    matches = matches or [
        (run, task) for run, _, task in judged if end in (run[: len(end)], run[-len(end) :])
    ]
    if len(matches) != 1:
        runs = [f"{run} ({task}, {model})" for run, model, task in judged]
        available = ", ".join([*people, *runs]) or "nobody yet"
        problem = "several runs are" if matches else "no annotator or run is"
        raise UsageError(f"{problem} called '{name}'; available: {available}")
    run, task = matches[0]
    if run not in comparable:
        raise UsageError(
            f"run {run} ({task}) does not label this field, or labels it with other labels; choose a run of another task"
        )
    return run
