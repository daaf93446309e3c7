"""What labels are worth: model x answer mode x label order x rationale x guidelines x calibration, on human gold.

    uv run python -m benchmarks.quality --data ../shared/data --units 60 --minutes 30
    uv run python -m benchmarks.quality --data ../shared/data --model NAME=llamacpp/FILE.gguf --table
    uv run python -m benchmarks.quality --data ../shared/data --tasks old --model NAME-old=llamacpp/FILE.gguf

Each data set is a study in the cache folder, each cell a run of it: killed, it goes on where it stopped, and
`--table` prints what there is without a call. Cells are taken in the order of what they tell per second.
Columns: Cohen's kappa with its 95 % interval (questions resampled), the same after batch calibration (the log of
the run's mean label distribution subtracted: it uses no gold, but it supposes equal shares, which these balanced
samples have), the share of the commonest label, the share of labels that change when the labels are shown in
reverse, and the seconds of processor time a unit takes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from tabulate import tabulate

from benchmarks.quality_data import SETS, Set
from judge.errors import UsageError
from judge.labels import relation
from judge.prompts import load_task
from judge.providers import base as providers
from judge.providers.base import PairReader, Provider
from judge.runner import Plan, run_task
from judge.runner.requests import Sampling
from judge.stats import Ratings, measures
from judge.store import Store
from judge.store.imports import ImportInfo
from judge.store.items import add_items
from judge.store.study import canonical
from judge.types import GOLD, Reply, Request

CACHE = Path("quality-cache")
LEAST = 30
"""Cells with fewer labelled units are not shown."""


@dataclass(frozen=True)
class Cell:
    """One way of asking; `rationale` None = as the task says."""

    answers: str
    order: str = "declared"
    rationale: str = "none"
    guidelines: bool = False

    @property
    def name(self) -> str:
        return canonical([self.answers, self.order, self.rationale, self.guidelines, 1])


ROUNDS = [
    [Cell("pair"), Cell("codes"), Cell("json")],
    [Cell("words")],
    [Cell("codes", "reversed")],
    [Cell("words", "reversed")],
    [Cell("codes", guidelines=True)],
    [Cell("codes", rationale="before")],
    [Cell("words", guidelines=True)],
    [Cell("json", "reversed"), Cell("json", guidelines=True), Cell("json", rationale="before")],
]


def main() -> None:
    """Ask for what is missing, until the minutes are over; then print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--model", action="append", metavar="NAME=MODEL", help="default: smollm2")
    parser.add_argument("--set", action="append", choices=list(SETS), help="default: all")
    parser.add_argument("--units", type=int, default=60, help="of each data set, in equal shares")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument(
        "--tasks", type=Path, help="folder of task files to ask with in place of shipped ones"
    )
    parser.add_argument("--rounds", type=int, default=len(ROUNDS), help="only the first ones")
    parser.add_argument("--from-round", type=int, default=1, help="leave the ones before it out")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--table", action="store_true", help="ask nothing, print what there is")
    options = parser.parse_args()
    models = dict(given.split("=", 1) for given in options.model or ["smollm2=llamacpp/smollm2"])
    sets = [SETS[name] for name in options.set or SETS]
    if not options.table:
        options.cache.mkdir(exist_ok=True)
        asyncio.run(ask(models, sets, options, time.monotonic() + 60 * options.minutes))
    print(table(options.cache, list(models), sets))


async def ask(models: Mapping[str, str], sets: list[Set], options: argparse.Namespace, end: float) -> None:
    """Every cell in turn, until `end` (of the monotonic clock)."""
    opened = {}
    for name, model in models.items():
        settings = {"threads": str(options.threads)} if model.startswith("llamacpp/") else {}
        clock = options.cache / "seconds.jsonl"
        opened[name] = Timed(providers.get(model, providers.Settings(options=settings)), clock, name)
    try:
        for provider in opened.values():
            await provider.open()
        for cells in ROUNDS[options.from_round - 1 : options.rounds]:
            for (name, model), data, cell in product(models.items(), sets, cells):
                # What reads two texts is asked in no other way, and what reads prompts not in this one.
                if isinstance(opened[name].inner, PairReader) == (cell.answers == "pair"):
                    await _cell(opened[name], name, model, data, cell, options, end)
    finally:
        for provider in opened.values():
            await provider.close()


async def _cell(
    provider: Timed, name: str, model: str, data: Set, cell: Cell, options: argparse.Namespace, end: float
) -> None:
    left = end - time.monotonic()
    if left < 1:
        return
    with Store.open(options.cache / f"{data.name}.db") as store:
        rows = data.items(options.data, options.units)
        add_items(store, rows, ImportInfo("benchmark", {}), [], _fail)
        provider.at = [data.name, cell.name]
        try:
            plan = _plan(name, model, data, cell, left, options.tasks)
            report = await run_task(store, plan, provider)
        except UsageError as error:
            print(f"{name} {data.name}: {error}", flush=True)
            return
    said = f"{name} {data.name} {cell.name}: {report.labelled} of {report.units}"
    print(f"{time.strftime('%H:%M:%S')} {said}, {report.stopped or report.error or 'done'}", flush=True)
    if report.interrupted:
        raise KeyboardInterrupt


def _plan(name: str, model: str, data: Set, cell: Cell, seconds: float, folder: Path | None) -> Plan:
    own = sorted(folder.glob(f"{data.task}.v*.md")) if folder is not None else []
    task = load_task(str(own[-1]) if own else data.task).thinking(cell.rationale)
    task = task.with_guidelines() if cell.guidelines else task
    return Plan(
        task,
        name,
        asked_as=model.split("/")[0],
        sampling=Sampling(
            answers="auto" if cell.answers == "pair" else cell.answers,
            label_order=cell.order,
            max_output_tokens=160,
        ),
        max_time=seconds,
        extra={"cell": cell.name},
    )


def _fail(error: Exception) -> None:
    raise error


class Timed:
    """A provider that notes the processor time of its calls (the in-process model's threads are in it)."""

    def __init__(self, inner: Provider, clock: Path, model: str) -> None:
        self.inner, self.clock, self.model = inner, clock, model
        self.at: list[str] = []
        self.in_flight, self.begun = 0, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def complete(self, request: Request) -> Reply:
        """The reply; calls that are in flight together are timed together."""
        if not self.in_flight:
            self.begun = time.process_time()
        self.in_flight += 1
        try:
            return await self.inner.complete(request)
        finally:
            self.in_flight -= 1
            if not self.in_flight:
                spent = round(time.process_time() - self.begun, 3)
                with self.clock.open("a") as file:
                    file.write(json.dumps([self.model, *self.at, spent]) + "\n")


# The table


def table(cache: Path, models: list[str], sets: list[Set]) -> str:
    """Markdown, one row a cell that has labels."""
    seconds = _seconds(cache / "seconds.jsonl")
    rows = []
    for data in sets:
        path = cache / f"{data.name}.db"
        if not path.exists():
            continue
        with Store.open(path, create=False) as store:
            rows += [row for model in models for row in _rows(store, model, data, seconds)]
    head = ["data", "model", "answers", "order", "rationale", "guide", "units", "kappa", "calibrated"]
    return tabulate(rows, [*head, "commonest", "flips", "s/unit"], "pipe", disable_numparse=True)


def _seconds(path: Path) -> dict[tuple[str, str, str], float]:
    spent: Counter[tuple[str, str, str]] = Counter()
    for line in path.read_text().splitlines() if path.exists() else ():
        model, data, cell, seconds = json.loads(line)
        spent[model, data, cell] += seconds
    return dict(spent)


def _rows(
    store: Store, model: str, data: Set, seconds: Mapping[tuple[str, str, str], float]
) -> list[list[str]]:
    runs = {
        json.loads(options)["cell"]: run
        for run, options in store.conn.execute(
            "SELECT run_id, options FROM runs WHERE model = ? ORDER BY run_id", [model]
        )
    }
    (sample,) = store.conn.execute("SELECT count(*) FROM passages").fetchone()
    labels = {cell: relation.values(store.conn, run, data.field) for cell, run in runs.items()}
    out = []
    for round_ in ROUNDS:
        for cell in round_:
            found = labels.get(cell.name, {})
            if len(found) < LEAST:
                continue
            run = runs[cell.name]
            turned = labels.get(replace(cell, order="reversed").name, {})
            asked = len(relation.read_judged_units(store.conn, run))
            spent = seconds.get((model, data.name, cell.name))
            common = Counter(found.values()).most_common(1)[0]
            out.append(
                [
                    data.name,
                    model,
                    cell.answers,
                    cell.order,
                    cell.rationale,
                    "shown" if cell.guidelines else "",
                    f"{len(found)}/{sample}",
                    _kappa(store, data, found),
                    _kappa(store, data, _best(_calibrated(_masses(store, run, data)), data)),
                    f"{common[0]} {common[1] / len(found):.2f}",
                    "" if cell.order != "declared" else _flips(found, turned),
                    "" if spent is None else f"{spent / asked:.1f}",
                ]
            )
            both = _both_orders(store, run, runs.get(replace(cell, order="reversed").name), data)
            if cell.order == "declared" and len(both) >= LEAST:
                out.append(_mean_row(store, model, data, cell, both, sample))
    return out


def _mean_row(store: Store, model: str, data: Set, cell: Cell, both: Masses, sample: int) -> list[str]:
    """What `--label-order 2` gives: the mean of two orders, which are both there."""
    found, common = _best(both, data), Counter(_best(both, data).values()).most_common(1)[0]
    share = f"{common[0]} {common[1] / len(found):.2f}"
    how = [cell.answers, "mean of both", cell.rationale, "shown" if cell.guidelines else ""]
    kappas = [_kappa(store, data, found), _kappa(store, data, _best(_calibrated(both), data))]
    return [data.name, model, *how, f"{len(found)}/{sample}", *kappas, share, "", ""]


def _flips(found: Mapping[str, str], turned: Mapping[str, str]) -> str:
    both = found.keys() & turned.keys()
    return f"{sum(found[u] != turned[u] for u in both) / len(both):.2f}" if len(both) >= LEAST else ""


def _kappa(store: Store, data: Set, found: Mapping[str, str]) -> str:
    if not found:
        return ""
    gold = relation.values(store.conn, GOLD, data.field)
    of = dict(store.conn.execute("SELECT unit_id, question_id FROM units").fetchall())
    fold = data.folded or {label: label for label in load_task(data.task).domain(data.field)}
    rows = [(u, name, fold[v[u]], of[u]) for u in found for name, v in (("judge", found), ("gold", gold))]
    (measure,) = measures(Ratings.from_rows(rows, list(dict.fromkeys(fold.values()))), ["cohen_kappa"])
    if measure.value is None:
        return "-"
    if measure.low is None or measure.low == measure.high:
        return f"{measure.value:.2f}"  # one label for everything: no resample differs
    return f"{measure.value:.2f} [{measure.low:.2f}, {measure.high:.2f}]"


Masses = dict[str, Any]
"""Unit -> probabilities of the task's labels, in their order."""


def _masses(store: Store, run: str, data: Set) -> Masses:
    domain = load_task(data.task).domain(data.field)
    unit_of = dict(store.conn.execute("SELECT rowid, unit_id FROM units").fetchall())
    found = {}
    for rowids, texts in relation.distributions(store.conn, run, data.field):
        for row, text in zip(rowids.tolist(), texts, strict=True):
            masses = json.loads(text)
            found[unit_of[row]] = np.array([masses[label] for label in domain])
    return {unit: p / p.sum() for unit, p in found.items()}


def _both_orders(store: Store, run: str, turned: str | None, data: Set) -> Masses:
    if turned is None:
        return {}
    one, other = _masses(store, run, data), _masses(store, turned, data)
    return {unit: (one[unit] + other[unit]) / 2 for unit in one if unit in other}


def _calibrated(masses: Masses) -> Masses:
    """Batch calibration (Zhou et al. 2024, arXiv:2309.17249), as in `judge calibrate --method batch`."""
    mean = np.mean(list(masses.values()), axis=0) if masses else 1.0
    return {unit: np.maximum(p, 1e-12) / np.maximum(mean, 1e-12) for unit, p in masses.items()}


def _best(masses: Masses, data: Set) -> dict[str, str]:
    domain = load_task(data.task).domain(data.field)
    return {unit: domain[int(np.argmax(p))] for unit, p in masses.items()}


if __name__ == "__main__":
    main()
