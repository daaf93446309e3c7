"""Results of a job, as judgements of its run: each line once, whoever reads it how often.

A line is matched by its custom id alone; what names no request of the job is told and left. A line that makes no
sense fails its own unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from judge.console import visible
from judge.errors import BadInput
from judge.jobs import lines
from judge.jobs.lines import ResultLine
from judge.jobs.offline import reader_of
from judge.parse import Parsed
from judge.prompts.render import Mode
from judge.providers import anthropic, base, http, openai
from judge.runner.budget import Reserve, Spent
from judge.runner.calls import Attempt
from judge.runner.entries import CallFacts, Entries
from judge.runner.prices import Price, find
from judge.runner.requests import Asker, Sampling
from judge.store import inputs, jobs, runs
from judge.store.export import named_run, stored_task
from judge.store.jobs import Job, JobRequest
from judge.store.judgements import Entry, RequestRecord, add_judgements
from judge.store.study import Store
from judge.types import Json, Reply, Request, Status, Usage

AT_ONCE = 500
"""Lines of results in one commit."""
KEYS = {"openai": openai.KEY, "anthropic": anthropic.KEY}
NAMED = 5
"""Lines that are named one by one; of the rest their number is said."""


@dataclass(slots=True)
class JobTally:
    """What was read. `ended` counts units by status; `reused` those that had the answer of an identical line.

    `missing` are units of which an ended batch has no line, `free` answers that nothing held to the labels in a run whose
    answers are. `known` lines had been read before, `late` ones came when their unit had a newer attempt; `unasked` counts lines
    that nobody worked on, by reason, and `released` their units; `unknown` and `odd` name lines that are not of this
    job, or are no results: the first of them, `named` counts all.
    """

    ended: Counter[str] = field(default_factory=Counter)
    reused: int = 0
    lines: int = 0
    known: int = 0
    late: int = 0
    released: int = 0
    free: int = 0
    missing: list[str] = field(default_factory=list)
    unasked: Counter[str] = field(default_factory=Counter)
    unknown: list[str] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    named: Counter[str] = field(default_factory=Counter)
    usage: Counter[str] = field(default_factory=Counter)
    spent: Spent = field(default_factory=Spent)
    derived: Counter[str] = field(default_factory=Counter)

    def add(self, other: JobTally) -> None:
        """Count what another reading brought, too."""
        for name in ("ended", "unasked", "usage", "derived"):
            getattr(self, name).update(getattr(other, name))
        for name in ("reused", "lines", "known", "late", "released", "free"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("unknown", "odd"):
            mine, theirs = getattr(self, name), getattr(other, name)
            self.named[name] += other.named[name] or len(theirs)
            mine += theirs[: NAMED - len(mine)]
        self.missing += other.missing
        self.spent.add(other.spent)

    def notes(self) -> list[str]:
        """What people should know of it."""
        said = []
        for what, found, n in (
            ("lines are of no request of this job", self.unknown, self.named["unknown"]),
            ("lines are no results", self.odd, self.named["odd"]),
            (
                "units have no line in the results of their batch, which has ended",
                self.missing,
                len(self.missing),
            ),
        ):
            if found:
                more = f" and {n - NAMED:,} more" if n > NAMED else ""
                said.append(f"{n:,} {what}: {', '.join(found[:NAMED])}{more}")
        for reason, n in self.unasked.most_common(NAMED):
            said.append(f"{n:,} requests were not worked on ({reason}); they can be asked again")
        if self.free:
            said.append(
                f"{self.free:,} answers were not held to the labels, although the run's are: the batch did not heed the "
                "mask, and their probabilities are those of free answers (--option mask=none --as NAME asks so throughout)"
            )
        if self.late:
            said.append(f"{self.late:,} answers came for units that have been asked again since; not kept")
        for name, n in self.derived.items():
            said.append(f"{n:,} answers gave no '{name}': no gold for it, or no row in the task's table")
        return said


def read_results(store: Store, job: Job, paths: Sequence[Path]) -> JobTally:
    """Read files of results into the study, a commit for each few hundred lines. Memory stays at those.

    Raises BadInput for a file that cannot be opened.
    """
    reading = _Reading(store, job)
    for path in paths:
        try:
            rows = lines.raw_lines(path)
            while some := list(islice(rows, AT_ONCE)):
                reading.page([(f"{path.name}:{number}", row) for number, row in some])
        except OSError as e:
            raise BadInput(f"cannot be read: {e.strerror}", path=str(path)) from e
    with store.transaction() as conn:
        done = jobs.finish(conn, job.job_id)
    runs.close_run(store, job.run_id, finished=done)
    return reading.tally


class _Reading:
    """A job's results on their way into its run."""

    def __init__(self, store: Store, job: Job) -> None:
        self.store, self.job, self.tally = store, job, JobTally()
        self.provider = reader_of(base.get(job.model, base.Settings(base_url=job.base_url)))
        self.asker = asker_of(store, job)
        mask = self.asker.options.get("mask")
        if isinstance(self.provider, base.Masks):
            self.provider.hold(mask)
        self.is_masked = mask is not None
        self.price = price_of(job)
        self.call = CallFacts(job.max_output_tokens, job.base_url, price=self.price)
        # A server may echo the key that it was called with.
        key = http.key_from(KEYS[job.vendor])
        self.secrets = [key] if key else []
        self.seen: set[str] = set()
        renderer = self.asker.renderer
        # What all of the job's requests have in common says how their replies are read.
        self.asked = Request(job.model, (), 0, codes=renderer.codes, words=renderer.words)
        rules = self.asker.task.spec.derive.values()
        self.golds = sorted({rule.gold for rule in rules if rule.gold})

    def page(self, rows: Sequence[tuple[str, Json]]) -> None:
        """Some lines, each with where it stands, in one commit."""
        said: dict[str, tuple[str, ResultLine]] = {}
        tally = JobTally(lines=len(rows))
        for where, row in rows:
            line = None if row is None else self._said(row)
            if line is None:
                tally.odd.append(where)
            elif line.custom_id in said and (line.unasked or not said[line.custom_id][1].unasked):
                tally.known += 1
            else:
                said[line.custom_id] = where, line
        with self.store.transaction() as conn:
            asked = jobs.requests(conn, self.job.job_id, said)
            units = [r.unit_id for some in asked.values() for r in some]
            attempts = jobs.judged_attempts(conn, self.job.run_id, units)
            golds = inputs.golds(conn, self.golds, units)
            records = jobs.records(conn, [some[0].request_sha for some in asked.values()])
            entries: list[Entry] = []
            answered: list[tuple[str, str | None]] = []
            unasked: list[tuple[str, str | None]] = []
            for name, (where, line) in said.items():
                found = asked.get(name)
                if found is None:
                    tally.unknown.append(f"'{visible(name[:60])}' ({where})")
                elif found[0].state == "answered":
                    tally.known += 1
                elif line.unasked:
                    if found[0].state == "open":
                        unasked.append((name, line.reason))
                        tally.unasked[line.reason or "no reason given"] += 1
                        tally.released += len(found)
                else:
                    record = records[found[0].request_sha]
                    entries += self._entries(line, found, record, attempts, golds, tally)
                    answered.append((name, None))
            add_judgements(conn, entries, self.seen)
            jobs.close_requests(conn, self.job.job_id, "answered", answered)
            jobs.close_requests(conn, self.job.job_id, "released", unasked)
        # Counted when it is committed.
        self.tally.add(tally)

    def _said(self, row: Json) -> ResultLine | None:
        return lines.read_line(self.job.vendor, row, self.provider, self.asked, self.secrets)

    def _entries(
        self,
        line: ResultLine,
        asked: Sequence[JobRequest],
        record: RequestRecord,
        attempts: Mapping[tuple[str, int], int],
        golds: Mapping[str, Mapping[str, str]],
        tally: JobTally,
    ) -> Iterator[Entry]:
        """One for each unit that the line answers; all but the first one have its answer for nothing."""
        reply = line.reply
        parsed = Parsed(Status.FAILED, reason=line.reason) if reply is None else self.asker.parse(reply)
        attempt = Attempt(record, parsed, reply)
        entries = Entries(self.asker.task, self.job.run_id, tally.derived)
        self._count(line, asked, tally)
        tally.free += self.is_masked and reply is not None and not reply.held
        reused = False
        for row in sorted(asked, key=lambda r: -r.most_tokens):
            if attempts.get((row.unit_id, row.repeat), 0) >= row.attempt:
                tally.late += 1
                continue
            place = row.unit_id, row.repeat, row.attempt
            yield entries.of(attempt, place, golds.get(row.unit_id, {}), None if reused else self.call)
            tally.reused += reused
            tally.ended[str(parsed.status)] += not reused
            reused = True

    def _count(self, line: ResultLine, asked: Sequence[JobRequest], tally: JobTally) -> None:
        """What the line took; where it does not say, the most that was set aside for it."""
        if line.reply is None and not line.paid:
            return
        usage = Usage() if line.reply is None else line.reply.usage
        for name in ("input_tokens", "output_tokens", "cached_tokens"):
            tally.usage[name] += getattr(usage, name) or 0
        # A line's units have one request. Its reserve is stored with the first of them, the others have 0.
        most = sum(r.most_tokens for r in asked)
        reserve = Reserve(
            0, most, min(most, self.job.max_output_tokens), sum(r.most_cost or 0.0 for r in asked)
        )
        tally.spent.charge(usage, self.price, *reserve.most(usage, self.price))


class _Facts:
    """A provider of which only the stored options are known: nothing is asked of it."""

    label_codes = False
    max_concurrency: int | None = None

    def __init__(self, options: Mapping[str, Json]) -> None:
        self._options = options

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def complete(self, request: Request) -> Reply:
        raise AssertionError("a stored run asks nobody")

    def describe(self) -> Mapping[str, Json]:
        return {name: self._options[name] for name in ("options", "content") if name in self._options}


def asker_of(store: Store, job: Job) -> Asker:
    """What turned the units of the job's run into requests, for reading their replies."""
    import json

    run = named_run(store, job.run_id)
    options = json.loads(run["options"])
    task = stored_task(store, run["task"]).thinking(options.get("rationale"))
    sampling = Sampling(
        temperature=options.get("temperature"),
        seed=options.get("seed"),
        max_output_tokens=job.max_output_tokens,
        label_order=options.get("label_order", "declared"),
    )
    mode, mask = Mode(options["mode"]), options.get("mask")
    return Asker(task, run["model"], _Facts(options), sampling, mode, mask=mask)


def price_of(job: Job) -> Price | None:
    """The price that the job was written with; one that depends on a call's size is taken from its list again."""
    if job.price is None:
        return None
    stored = {name: value for name, value in job.price.items() if name != "batch"}
    found = find(job.model, {"own_server": True}, None, batch=bool(job.price.get("batch")))
    return found if found is not None and found.as_json() == stored else Price(**stored)
