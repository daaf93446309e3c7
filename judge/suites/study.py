"""A study as a paper reads it: answers, labels and rankings as tables, and what is missing as steps.

Tables have one row a unit and plain columns (see `judge.scores.tables`). `unit_id` is the unit's number in the study.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from judge.errors import UsageError
from judge.prompts.load import Task, load_task
from judge.runner import contexts
from judge.scores.score import NOT_JUDGED
from judge.store import selection
from judge.store.distractors import PREFIX
from judge.store.export import stored_task
from judge.store.inputs import quoted
from judge.store.study import Store
from judge.suites import chosen
from judge.suites.chosen import Run
from judge.suites.frames import frame
from judge.suites.paper import Asked, Paper
from judge.suites.steps import FALLBACK_MODEL, Incomplete, Step
from judge.types import GOLD, Status

HUMAN = "human"
Found = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]
"""Labels, statuses, and which units have no judgement."""
_PARTS = ("sentence", "citation", "claim")


@dataclass(frozen=True, slots=True)
class System:
    """Whose answers: a system under a condition."""

    system: str
    condition: str

    @property
    def where(self) -> str:
        """Its answers and their parts, as a condition on `unit_texts`."""
        return f"answer_system = {quoted(self.system)} AND answer_condition = {quoted(self.condition)}"


@dataclass(slots=True)
class Read:
    """A run that labels were read from, with its counts on the units asked about, and what was asked."""

    run: Run
    counts: Counter[str] = field(default_factory=Counter)


class Study:
    """One study as one paper reads it. Everything asked for is remembered: runs, notes, missing steps."""

    def __init__(self, store: Store, paper: Paper, asked: Asked) -> None:
        self.store, self.paper, self.asked = store, paper, asked
        self.steps: list[Step] = []
        self.notes: list[str] = []
        self.read: list[Read] = []
        self.whose: System | None = None
        self.runs = chosen.all_runs(store)
        self.pinned = chosen.named(store, asked.runs, self.runs)
        selection.offer_shuffle(store.conn)

    # What was asked for

    def option(self, name: str) -> str:
        """A reading, as asked for or by default. Raises UsageError for a value that is no choice."""
        known = next(o for o in self.paper.options if o.name == name)
        value = self.asked.options.get(name, known.default)
        if known.choices and value not in known.choices:
            raise UsageError(f"--{name} is one of {', '.join(known.choices)}, not '{value}'")
        return value

    def number(self, name: str) -> float:
        """A reading that is a number."""
        try:
            return float(self.option(name))
        except ValueError as e:
            raise UsageError(f"--{name} is a number, not '{self.option(name)}'") from e

    def numbers(self, name: str) -> list[int]:
        """A reading that is a list of whole numbers from 1, as 1,5."""
        words = self.option(name).split(",")
        if not all(word.strip().isdecimal() and int(word) > 0 for word in words):
            raise UsageError(f"--{name} is a list of whole numbers from 1, as 1,5, not '{self.option(name)}'")
        return [int(word) for word in words]

    def part(self, name: str) -> bool:
        """Whether this part is to be read."""
        return not self.asked.parts or name in self.asked.parts

    def insists(self, name: str) -> bool:
        """Whether this part was asked for by name: then data that lack it are an error."""
        return name in self.asked.parts

    def note(self, text: str) -> None:
        """Say something beside the numbers, once."""
        if text not in self.notes:
            self.notes.append(text)

    def need(self, step: Step) -> None:
        """Note a step that is missing; `check` tells."""
        self.steps.append(step)

    def check(self) -> None:
        """Raises Incomplete when something that was asked for is missing."""
        if self.steps:
            raise Incomplete(self.paper.name, self.steps)

    # Rows

    @cached_property
    def dataset(self) -> str:
        """The data set. Raises UsageError when the study has several and none is named, or not this one."""
        there = [
            str(row[0]) for row in self.store.conn.execute("SELECT DISTINCT dataset FROM items ORDER BY 1")
        ]
        if self.asked.dataset is not None:
            if self.asked.dataset not in there:
                raise UsageError(
                    f"no data set '{self.asked.dataset}'; there are: {', '.join(there) or 'none'}"
                )
            return self.asked.dataset
        if len(there) != 1:
            told = f"the study has several data sets ({', '.join(there)}): choose with --dataset"
            raise UsageError(
                told if there else "the study is empty: import something first (judge items import)"
            )
        return there[0]

    @property
    def data(self) -> str:
        """The data set, as a condition on `unit_texts`."""
        return f"dataset = {quoted(self.dataset)}"

    @cached_property
    def scope(self) -> str:
        """The rows asked about, as a condition on `unit_texts`: the data set, and a sample of its questions."""
        data = self.data
        if self.asked.limit is None:
            return data
        order = (
            "min(rowid)"
            if self.asked.sample is None
            else f"adjudge_shuffle({self.asked.sample}, question_id)"
        )
        some = f"SELECT question_id FROM items WHERE {data} GROUP BY question_id ORDER BY {order}"
        return f"{data} AND question_id IN ({some} LIMIT {self.asked.limit})"

    @cached_property
    def items(self) -> pd.DataFrame:
        """unit_id, item_id, question_id of every item, in order of import."""
        return self._units("item", "", "n item_id question_id")

    def gold(self, field: str, of: str = "item", *, everywhere: bool = False) -> pd.Series:
        """Gold labels by item_id, or by passage_id with of="passage"; `everywhere`: of the whole data set."""
        name = "item_id" if of == "item" else "passage_id"
        query = (
            f"SELECT t.{name}, l.value FROM labels AS l JOIN unit_texts AS t ON t.unit_id = l.unit_id "
            f"WHERE l.annotator_id = ? AND l.field = ? AND l.layer = 'first' AND l.repeat = 0 "
            f"AND t.kind = ? AND {self.data if everywhere else self.scope}"
        )
        found = frame(self.store.conn, query, [GOLD, field, of], f"{name} value")
        return pd.Series(found["value"].to_numpy(), index=pd.Index(found[name].to_numpy(), dtype=object))

    def passages(self, *, everywhere: bool = False) -> pd.DataFrame:
        """unit_id, item_id, question_id, passage_id of every passage; `everywhere`: of the whole data set."""
        return self._units(
            "passage", "", "n item_id question_id passage_id", self.data if everywhere else None
        )

    def column(self, name: str) -> pd.Series:
        """A column of items by item_id, as it is stored; items that have none are not in it."""
        query = f"SELECT item_id, {name} FROM unit_texts WHERE kind = 'item' AND {name} IS NOT NULL AND {self.scope}"
        found = frame(self.store.conn, query, [], "item_id value")
        return pd.Series(found["value"].to_numpy(), index=pd.Index(found["item_id"].to_numpy(), dtype=object))

    def meta(self, key: str, of: str = "items") -> pd.Series:
        """A value of the meta of items (or passages) by its id; lists and objects as JSON text."""
        name = of.removesuffix("s") + "_id"
        query = (
            f"SELECT x.{name}, json_extract(x.meta, ?) FROM {of} AS x JOIN items AS i ON i.item_id = x.item_id "
            f"WHERE i.item_id IN (SELECT item_id FROM unit_texts WHERE kind = 'item' AND {self.scope})"
        )
        found = frame(self.store.conn, query, [f'$."{key}"'], f"{name} value")
        return pd.Series(found["value"].to_numpy(), index=pd.Index(found[name].to_numpy(), dtype=object))

    def has_ranking(self) -> bool:
        """Whether items of the data set have a ranking."""
        query = "SELECT 1 FROM rankings AS r JOIN items AS i USING (item_id) WHERE i.dataset = ? LIMIT 1"
        return self.store.conn.execute(query, [self.dataset]).fetchone() is not None

    def ranking(self, name: str | None = None, stage: str | None = None) -> tuple[str, str] | None:
        """(name, stage) of the ranking of the data set that is meant. None, and a step, when there is none at all.

        Raises UsageError when several fit, or when the one named is not there.
        """
        query = (
            "SELECT DISTINCT r.name, r.stage FROM rankings AS r JOIN items AS i USING (item_id) "
            "WHERE i.dataset = ? ORDER BY 1, 2"
        )
        there = [(str(n), str(s)) for n, s in self.store.conn.execute(query, [self.dataset])]
        fit = [(n, s) for n, s in there if name in (None, n) and stage in (None, s)]
        if len(fit) == 1:
            return fit[0]
        known = ", ".join(f"{n} ({s})" for n, s in there)
        if fit:
            raise UsageError(f"several rankings fit: choose with --ranking and --stage; there are: {known}")
        if there:
            raise UsageError(f"no such ranking of '{self.dataset}'; there are: {known}")
        if name or stage not in (None, "retrieve"):
            raise UsageError(f"no ranking of '{self.dataset}' yet; see judge retrieve, judge rankings import")
        self.need(Step("retrieve", f"no ranking of '{self.dataset}'", dataset=self.dataset))
        return None

    def ranked(self, ranking: tuple[str, str]) -> pd.DataFrame:
        """item_id, rank, passage_id of a ranking."""
        query = (
            "SELECT item_id, rank, passage_id FROM rankings WHERE name = ? AND stage = ? AND item_id IN "
            f"(SELECT item_id FROM unit_texts WHERE kind = 'item' AND {self.scope}) ORDER BY item_id, rank"
        )
        found = frame(self.store.conn, query, list(ranking), "item_id rank_n passage_id")
        return found.rename(columns={"rank_n": "rank"})

    # Answers

    def systems(self) -> list[System]:
        """Who has answered items of the data set, under which conditions, in order of import; people and
        distractors apart."""
        query = (
            "SELECT a.system, a.condition FROM answers AS a JOIN items AS i USING (item_id) "
            "WHERE i.dataset = ? AND a.system <> ? AND a.condition NOT GLOB ? "
            "GROUP BY 1, 2 ORDER BY min(a.rowid)"
        )
        return [System(*row) for row in self.store.conn.execute(query, [self.dataset, HUMAN, f"{PREFIX}*"])]

    def system(self) -> System | None:
        """Whose answers are meant. None when there are none yet.

        Raises UsageError when several fit, or when what was asked for is not there.
        """
        there = self.systems()
        asked = self.asked
        fit = [
            s for s in there if asked.system in (None, s.system) and asked.condition in (None, s.condition)
        ]
        if len(fit) == 1:
            self.whose = fit[0]
            return fit[0]
        known = ", ".join(f"{s.system} ({s.condition})" for s in there)
        if fit:
            raise UsageError(f"several answers fit: choose with --system and --condition; there are: {known}")
        if there and (asked.system or asked.condition):
            raise UsageError(f"no answers of that system and condition; there are: {known}")
        return None

    def answers(self, of: System) -> pd.DataFrame:
        """unit_id, item_id, question_id, answer_id, text, cited (lists of passage ids) of a system's answers."""
        found = self._units("answer", of.where, "n item_id question_id answer_id answer cited_passages")
        return found.rename(columns={"answer": "text", "cited_passages": "cited"})

    def tested(self) -> str:
        """The name of the system under test: --system, else the model, else the only one with answers."""
        if self.asked.system is not None:
            return self.asked.system
        if self.asked.models:
            return self.asked.models[0]
        there = list(dict.fromkeys(s.system for s in self.systems()))
        if len(there) > 1:
            raise UsageError(
                f"several systems have answers: choose with --system; there are: {', '.join(there)}"
            )
        return there[0] if there else self.guess()

    def of_system(self, task: str) -> tuple[str, ...]:
        """The model that stands behind the system under test in runs of a task: of its name, else the judge."""
        system = self.tested()
        if self.asked.system is not None and any(r.task_id == task and r.model == system for r in self.runs):
            return (system,)
        return self.asked.models or ((system,) if "/" in system else ())

    @property
    def last_run(self) -> Run | None:
        """The run that labels were read from last."""
        return self.read[-1].run if self.read else None

    def generated(
        self, task: str, context: str, ranking: tuple[str, str] | None = None, *, only: str = ""
    ) -> pd.DataFrame:
        """unit_id, item_id, question_id, label, status of each item: what the system under test answered.

        Of a run of `judge answers generate` under this context, with what was refused or not readable; else of
        imported answers under this condition. Items that there is nothing to give to are not judged; the others
        without an answer make a step. `only`: a condition on `unit_texts`.
        """
        system = self.tested()
        given = contexts.parse(
            self.store, context, ranking=(ranking or (None,))[0], stage=(ranking or (None, None))[1]
        )
        own = {"context": given.name, "system": system}
        items = self._units("item", only, "n item_id question_id")
        runs = [run for run in self.runs if run.task_id == task and run.serves(own)]
        runs = [run for run in self.pinned if run in runs] or runs
        loaded = self._task(task, own)
        if not runs and System(system, given.name) in self.systems():
            told = self.answers(System(system, given.name)).set_index("item_id")["text"]
            items["label"] = told.reindex(items["item_id"]).to_numpy(dtype=object)
            there = items["item_id"].isin(told.index).to_numpy()
            items.loc[~there, "label"] = None
            items["status"] = np.where(there, str(Status.OK), NOT_JUDGED)
            return items
        found = self._best(runs, items["unit_id"].to_numpy(), loaded.spec.questions[0].field)
        missing = _put(items, found)
        if missing.any() and not self.asked.partial:
            fit = self._fit(
                loaded, items["unit_id"].to_numpy()[missing], contexts.contexts(self.store, given)
            )
            if fit:
                run = runs[0] if runs else None
                model = (
                    run.model
                    if run
                    else (self.asked.models or ((system,) if "/" in system else (self.guess(),)))[0]
                )
                self.need(
                    Step(
                        "generate",
                        f"{system} has {fit} items without an answer under '{given.name}'",
                        loaded.name if run else task,
                        f"{only} AND {self.scope}" if only else self.scope,
                        model,
                        system,
                        context,
                        ranking,
                        options=run.options if run else {},
                    )
                )
            if fit < missing.sum():
                self.note(
                    f"{int(missing.sum()) - fit} items have nothing to give under '{given.name}': no answer"
                )
        return items

    def human_citations(self) -> dict[str, list[str]]:
        """Item -> passages that its human answer cites (the first one, where there are several)."""
        query = (
            "SELECT item_id, cited FROM answers WHERE system = ? AND item_id IN (SELECT item_id FROM unit_texts "
            f"WHERE kind = 'item' AND {self.scope}) ORDER BY rowid DESC"
        )
        return {item: json.loads(cited) for item, cited in self.store.conn.execute(query, [HUMAN])}

    def sentences(self, of: System) -> pd.DataFrame:
        """unit_id, answer_unit of every sentence of a system's answers."""
        found = self._units("sentence", of.where, "n answer_id")
        found["answer_unit"] = self._answer_units(found.pop("answer_id"))
        return found

    def claim_counts(self) -> pd.Series:
        """How many claims each answer has, by its unit; answers without any are not in it."""
        return self._counts("claim")

    def sentence_counts(self) -> pd.Series:
        """How many sentences each answer has, by its unit; answers without any are not in it."""
        return self._counts("sentence")

    def _counts(self, kind: str) -> pd.Series:
        query = (
            "SELECT a.rowid, count(*) FROM units AS s JOIN units AS a ON a.unit_id = s.answer_id "
            "WHERE s.kind = ? GROUP BY s.answer_id"
        )
        found = frame(self.store.conn, query, [kind], "n count_n")
        return pd.Series(found["count_n"].to_numpy(), index=found["n"].to_numpy())

    def sentences_of(self, citations: pd.DataFrame) -> np.ndarray[Any, Any]:
        """The units of the sentences that these citations stand in."""
        query = (
            "SELECT c.rowid, s.rowid FROM units AS c JOIN units AS s "
            "ON s.unit_id = c.answer_id || '#s' || json_extract(c.span, '$.n') WHERE c.kind = 'citation'"
        )
        found = frame(self.store.conn, query, [], "n sentence_n").set_index("n")["sentence_n"]
        return found.reindex(citations["unit_id"]).to_numpy()

    # Labels

    def labels(
        self,
        task: str,
        of: System | None = None,
        *,
        only: str | None = None,
        field: str | None = None,
        own: Mapping[str, str] | None = None,
        models: Sequence[str] | None = None,
        columns: str = "",
    ) -> pd.DataFrame:
        """unit_id, item_id, question_id, answer_unit (of a part of an answer), label, status of each unit of the task.

        `of`: only the answers of this system, or parts of them; `only`: a condition on `unit_texts`; `field`: another
        field than the first; `own`: see `chosen.OWN`; `models`: other judges than those asked for; `columns`: more
        columns of `unit_texts`. Units that the judge has not been asked about make a step, unless the task cannot
        take them (an input is missing: noted) or a partial score was asked for.
        """
        loaded = self._task(task, own or {})
        where = " AND ".join(part for part in (of.where if of else "", only or "") if part)
        names = "n item_id question_id" + (" answer_id" if loaded.spec.unit in _PARTS else "")
        units = self._units(loaded.spec.unit, where, f"{names} {columns}".strip())
        examples = [e.item_id for e in loaded.spec.examples if e.item_id]
        if examples:
            units = units[~units["item_id"].isin(examples)].reset_index(drop=True)
        if "answer_id" in units:
            units["answer_unit"] = self._answer_units(units.pop("answer_id"))
        asked = tuple(models) if models is not None else self.asked.models
        runs = chosen.candidates(self.runs, self.pinned, task, asked, own or {})
        found = self._best(runs, units["unit_id"].to_numpy(), field or loaded.spec.questions[0].field)
        missing = _put(units, found)
        if missing.any() and not self.asked.partial:
            self._missing(loaded, runs, where, units["unit_id"].to_numpy()[missing], asked)
        return units

    def _task(self, task_id: str, own: Mapping[str, str]) -> Task:
        """The task as the study has it where a run of it is meant, else the newest version."""
        used = next((run.task for run in self.runs if run.task_id == task_id and run.serves(own)), None)
        return stored_task(self.store, used) if used else load_task(task_id)

    def _best(self, runs: Sequence[Run], units: np.ndarray[Any, Any], field: str) -> Found:
        """Labels, statuses and which units have no judgement: of the newest complete run, else the fullest.

        Several runs named for one task go by majority, when that was asked for.
        """
        if self.asked.majority and len(runs) > 1:
            return self._majority(_one_each(runs), units, field)
        best = None
        for run in runs:
            found = self._of_run(run, units, field)
            if best is None or found[2].sum() < best[1][2].sum():
                best = run, found
            if not found[2].any():
                break
        if best is None:
            none = np.full(len(units), None, dtype=object)
            return none, np.full(len(units), NOT_JUDGED, dtype=object), np.ones(len(units), dtype=bool)
        self.read.append(Read(best[0], Counter(best[1][1].tolist())))
        return best[1]

    def _majority(self, runs: Sequence[Run], units: np.ndarray[Any, Any], field: str) -> Found:
        """The label that most judges give. A tie is no label; without any label the first judge's status counts."""
        each = [self._of_run(run, units, field) for run in runs]
        for run, found in zip(runs, each, strict=True):
            self.read.append(Read(run, Counter(found[1].tolist())))
        codes, names = pd.factorize(np.concatenate([labels for labels, _, _ in each]))
        votes = np.zeros((len(units), len(names) + 1), dtype=np.int64)
        for own in codes.reshape(len(runs), len(units)):
            votes[np.arange(len(units)), own] += 1
        votes = votes[:, : len(names)]
        if not len(names):
            return each[0]
        most = votes.max(axis=1)
        clear = ((votes == most[:, None]).sum(axis=1) == 1) & (most > 0)
        labels = np.full(len(units), None, dtype=object)
        labels[clear] = np.asarray(names, dtype=object)[votes.argmax(axis=1)[clear]]
        status = each[0][1].copy()
        tied = ~clear & (most > 0)
        status[clear] = str(Status.OK)
        status[tied] = str(Status.UNPARSED)
        if tied.any():
            self.note(
                f"{int(tied.sum())} units of {runs[0].task_id} are tied between judges: counted as unparsed"
            )
        return labels, status, np.logical_or.reduce([missing for _, _, missing in each])

    def _of_run(self, run: Run, units: np.ndarray[Any, Any], field: str) -> Found:
        query = """
            SELECT u.rowid, j.status, l.value FROM judgements AS j JOIN units AS u ON u.unit_id = j.unit_id
            LEFT JOIN labels AS l ON l.annotator_id = j.run_id AND l.field = ? AND l.unit_id = j.unit_id
                 AND l.layer = 'first' AND l.repeat = 0
            WHERE j.run_id = ? AND j.repeat = 0 ORDER BY j.unit_id, j.attempt
        """
        rows = frame(self.store.conn, query, [field, run.run_id], "n status label")
        order = np.argsort(units)
        at = np.searchsorted(units[order], rows["n"].to_numpy())
        inside = at < len(units)
        inside[inside] = units[order][at[inside]] == rows["n"].to_numpy()[inside]
        place = order[at[inside]]
        labels = np.full(len(units), None, dtype=object)
        status = np.full(len(units), NOT_JUDGED, dtype=object)
        # Attempts come in order, so the last one stays.
        status[place] = rows["status"].to_numpy()[inside]
        labels[place] = rows["label"].to_numpy()[inside]
        labels[status != str(Status.OK)] = None
        return labels, status, status == NOT_JUDGED

    def _missing(
        self,
        task: Task,
        runs: Sequence[Run],
        where: str,
        missing: np.ndarray[Any, Any],
        models: Sequence[str],
    ) -> None:
        """Note the step that judges these units, and how many of them the task cannot take."""
        fit = self._fit(task, missing)
        if fit < len(missing):
            self.note(
                f"{len(missing) - fit} units of {task.task_id} lack an input of the task "
                f"({', '.join(task.required_inputs)}) and are not judged"
            )
        if not fit:
            return
        judges = list(models) or list(dict.fromkeys(run.model for run in runs)) or [self.guess()]
        for model in judges:
            run = next((r for r in runs if r.model == model), None)
            self.need(
                Step(
                    "run",
                    f"{task.task_id} has {fit} units without a judgement of {model}",
                    task.name if run else task.task_id,
                    f"{where} AND {self.scope}" if where else self.scope,
                    model,
                    options=run.options if run else {},
                )
            )

    def _fit(
        self, task: Task, units: np.ndarray[Any, Any], given: Mapping[str, Sequence[str]] | None = None
    ) -> int:
        """How many of these units the task can take."""
        conn = self.store.conn
        conn.execute("DROP TABLE IF EXISTS temp.unjudged")
        conn.execute("CREATE TEMP TABLE unjudged (n INTEGER PRIMARY KEY)")
        conn.executemany("INSERT INTO temp.unjudged VALUES (?)", ((int(n),) for n in units))
        only = selection.Selection("n IN (SELECT n FROM temp.unjudged)", contexts=given)
        return selection.select(self.store, task, only)[0]

    def guess(self) -> str:
        """The model to name in a command: the judge asked for, or the only one that the study has."""
        if self.asked.models:
            return self.asked.models[0]
        models = list(dict.fromkeys(run.model for run in self.runs))
        return models[0] if len(models) == 1 else FALLBACK_MODEL

    # Reading

    def _units(self, kind: str, where: str, columns: str, scope: str | None = None) -> pd.DataFrame:
        wanted = " AND ".join(f"({part})" for part in (where, scope or self.scope) if part)
        listed = ", ".join(columns.split())
        query = f"SELECT {listed} FROM unit_texts WHERE kind = ? AND {wanted} ORDER BY n"
        return frame(self.store.conn, query, [kind], columns).rename(columns={"n": "unit_id"})

    def _answer_units(self, answer_ids: pd.Series) -> np.ndarray[Any, Any]:
        """The units of answers, by the answers' ids: a part names its whole by number."""
        query = "SELECT unit_id, rowid FROM units WHERE kind = 'answer'"
        of = dict(self.store.conn.execute(query))
        return np.array([of[a] for a in answer_ids], dtype=np.int64)


def _put(units: pd.DataFrame, found: Found) -> np.ndarray[Any, Any]:
    """Labels and statuses as columns of objects, so that no label stays None; which units have no judgement."""
    for name, values in zip(("label", "status"), found, strict=False):
        units[name] = pd.Series(values, index=units.index, dtype=object)
    return found[2]


def _one_each(runs: Sequence[Run]) -> list[Run]:
    """The newest run of each judge; runs that were named are all kept."""
    return list({run.model: run for run in reversed(runs)}.values())[::-1]
