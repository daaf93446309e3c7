"""Store the results of a job as judgements of its run. Each line is stored once, however often a file is read.

A line is matched by its custom id alone. A line from another job is reported and skipped. A malformed line
causes only its own unit to fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from judge.accept import ModelNames
from judge.console import visible
from judge.errors import BadInput, OtherModel
from judge.jobs import lines
from judge.jobs.lines import ResultLine
from judge.jobs.offline import reader_of
from judge.parse import Parsed
from judge.providers import anthropic, base, http, openai
from judge.runner.budget import Reserve, Spent
from judge.runner.calls import Attempt
from judge.runner.entries import CallFacts, Entries
from judge.runner.prices import Price, find
from judge.runner.stored import asker_of
from judge.store import inputs, jobs, runs
from judge.store.jobs import Job, JobRequest
from judge.store.judgements import Entry, RequestRecord, add_judgements, storable
from judge.store.study import Store
from judge.types import Json, Reply, Request, Status, Usage

AT_ONCE = 500
"""Number of result lines per commit."""
KEYS = {"openai": openai.KEY, "anthropic": anthropic.KEY}
NAMED = 5
"""Maximum number of lines that a message names. Further lines are only counted."""


@dataclass(slots=True)
class JobTally:
    """The outcome of reading results.

    - `ended` counts units by status.
    - `reused` counts units that received the answer to an identical request.
    - `missing` lists units for which an ended batch has no line.
    - `free` counts answers that were not restricted to the labels, although the run requires this.
    - `known` counts lines that had been read before.
    - `late` counts answers for units that have a newer attempt.
    - `unasked` counts the requests that the vendor did not process, by reason.
    - `released` counts the units of these unprocessed requests.
    - `unknown` contains the first few lines that belong to another job.
    - `odd` contains the first few lines that are not results.
    - `contrary` contains the first few lines whose answer differs from an earlier answer to the same request.
    - `other_model` contains the first few lines from a model other than that of the run's first reply.
    - `named` has the total numbers of the lines of these four kinds.
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
    contrary: list[str] = field(default_factory=list)
    other_model: list[str] = field(default_factory=list)
    named: Counter[str] = field(default_factory=Counter)
    usage: Counter[str] = field(default_factory=Counter)
    spent: Spent = field(default_factory=Spent)
    derived: Counter[str] = field(default_factory=Counter)

    def add(self, other: JobTally) -> None:
        """Add the counts of another tally."""
        for name in ("ended", "unasked", "usage", "derived"):
            getattr(self, name).update(getattr(other, name))
        for name in ("reused", "lines", "known", "late", "released", "free"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("unknown", "odd", "contrary", "other_model"):
            own_names, other_names = getattr(self, name), getattr(other, name)
            self.named[name] += other.named[name] or len(other_names)
            # A file of another job may have 50,000 such lines, and only a few of them are shown.
            own_names += other_names[: NAMED - len(own_names)]
        self.missing += other.missing
        self.spent.add(other.spent)

    def notes(self) -> list[str]:
        """Return the notes for the user, except those on derived fields (see `judge.runner.plan.underived`)."""
        sentences = []
        for subject, examples, n in (
            ("lines do not belong to any request in this job", self.unknown, self.named["unknown"]),
            ("lines are not results", self.odd, self.named["odd"]),
            (
                "lines contradict an earlier answer to the same request, which was kept",
                self.contrary,
                self.named["contrary"],
            ),
            (
                "lines come from another model than the run's first reply and got no label (to accept them, read the "
                "results of a new job with --same-model; to keep them apart, use --as NAME)",
                self.other_model,
                self.named["other_model"],
            ),
            (
                "units have no line in the results of their batch, which has ended",
                self.missing,
                len(self.missing),
            ),
        ):
            if examples:
                more = f" and {n - NAMED:,} more" if n > NAMED else ""
                sentences.append(f"{n:,} {subject}: {', '.join(examples[:NAMED])}{more}")
        for reason, n in self.unasked.most_common(NAMED):
            sentences.append(f"{n:,} requests were not processed ({reason}); they can be sent again")
        if self.free:
            sentences.append(
                f"{self.free:,} answers were not restricted to the labels, although the run requires it, because the batch "
                "ignored the mask; to start a run with unrestricted answers, use --option mask=none --as NAME"
            )
        if self.late:
            sentences.append(f"{self.late:,} answers were dropped: their units have a newer attempt")
        return sentences


def read_results(store: Store, job: Job, paths: Sequence[Path], *, same_model: bool = False) -> JobTally:
    """Read result files into the study.

    Lines from a model other than that of the run's first reply get no label, unless `same_model` is True.

    To limit the memory use, the lines are read and committed a few hundred at a time.
    Raises BadInput if a file cannot be opened.
    """
    reading = _Reading(store, job, same_model)
    for path in paths:
        try:
            rows = lines.raw_lines(path, reading.keys)
            while batch := list(islice(rows, AT_ONCE)):
                reading.page([(f"{path.name}:{number}", row) for number, row in batch])
        except OSError as e:
            raise BadInput(f"cannot be read: {e.strerror}", path=str(path)) from e
    with store.transaction() as conn:
        done = jobs.finish(conn, job.job_id)
    runs.close_run(store, job.run_id, finished=done)
    return reading.tally


class _Reading:
    """Reads a job's results into its run."""

    def __init__(self, store: Store, job: Job, same_model: bool) -> None:
        self.store, self.job, self.tally = store, job, JobTally()
        self.provider = reader_of(base.get(job.model, base.Settings(base_url=job.base_url)))
        self.asker = asker_of(store, job.run_id, job.max_output_tokens)
        mask = self.asker.options.get("mask")
        if isinstance(self.provider, base.Masks):
            self.provider.set_mask(mask)
        self.is_masked = mask is not None
        self.price = price_of(job)
        self.call = CallFacts(job.max_output_tokens, job.base_url, price=self.price)
        # A server may echo the key with which it was called.
        key = http.key_from(KEYS[job.vendor])
        self.keys = [key] if key else []
        names = runs.read_reported_models(store.conn, job.run_id)
        self.models = None if same_model else ModelNames(names, ())
        self.seen: set[str] = set()
        renderer = self.asker.renderer
        # The parts that all requests of the job share are enough to read the replies.
        self.request = Request(job.model, (), 0, codes=renderer.codes, words=renderer.words)
        rules = self.asker.task.spec.derive.values()
        self.golds = sorted({rule.gold for rule in rules if rule.gold})

    def page(self, rows: Sequence[tuple[str, Json]]) -> None:
        """Store several lines, each with its place in the file, in one commit."""
        by_custom_id: dict[str, tuple[str, ResultLine]] = {}
        tally = JobTally(lines=len(rows))
        for where, row in rows:
            line = lines.read_line(self.job.vendor, row, self.provider, self.request)
            if line is None:
                tally.odd.append(where)
            # After a requeued task, a file may contain both an error and an answer for a request. The answer counts.
            elif line.custom_id in by_custom_id and (
                line.unasked or not by_custom_id[line.custom_id][1].unasked
            ):
                earlier = by_custom_id[line.custom_id][1].reply
                self._count_known(line, where, None if earlier is None else earlier.text, tally)
            else:
                by_custom_id[line.custom_id] = where, line
        with self.store.transaction() as conn:
            requests_by_id = jobs.requests(conn, self.job.job_id, by_custom_id)
            units = [r.unit_id for rows_of_id in requests_by_id.values() for r in rows_of_id]
            attempts = jobs.read_attempts(conn, self.job.run_id, units)
            golds = inputs.golds(conn, self.golds, units)
            stored = jobs.read_replies(
                conn,
                self.job.run_id,
                [rows[0] for rows in requests_by_id.values() if rows[0].state == "answered"],
            )
            records = jobs.records(
                conn, [rows_of_id[0].request_sha for rows_of_id in requests_by_id.values()]
            )
            entries: list[Entry] = []
            answered: list[tuple[str, str | None]] = []
            unasked: list[tuple[str, str | None]] = []
            for name, (where, line) in by_custom_id.items():
                requests = requests_by_id.get(name)
                if requests is None:
                    tally.unknown.append(f"'{visible(name[:60])}' ({where})")
                elif requests[0].state == "answered":
                    self._count_known(line, where, stored.get(name), tally)
                elif line.unasked:
                    if requests[0].state == "open":
                        unasked.append((name, line.reason))
                        tally.unasked[line.reason or "no reason given"] += 1
                        tally.released += len(requests)
                else:
                    record = records[requests[0].request_sha]
                    entries += self._entries(line, where, requests, record, attempts, golds, tally)
                    answered.append((name, None))
            add_judgements(conn, entries, self.seen)
            jobs.close_requests(conn, self.job.job_id, "answered", answered)
            jobs.close_requests(conn, self.job.job_id, "released", unasked)
        # Counts are only added after the commit.
        self.tally.add(tally)

    def _entries(
        self,
        line: ResultLine,
        where: str,
        requests: Sequence[JobRequest],
        record: RequestRecord,
        attempts: Mapping[tuple[str, int], int],
        golds: Mapping[str, Mapping[str, str]],
        tally: JobTally,
    ) -> Iterator[Entry]:
        """Yield an entry for each unit that this result answers.

        Several units share a result if their requests are equal. Only the first entry has the cost of the
        request. Units with a newer attempt are skipped.
        """
        reply = line.reply
        parsed = (
            Parsed(Status.FAILED, reason=line.reason) if reply is None else self._accept(reply, where, tally)
        )
        attempt = Attempt(record, parsed, reply)
        entries = Entries(self.asker.task, self.job.run_id, tally.derived)
        self._count(line, requests, tally)
        tally.free += self.is_masked and reply is not None and not reply.masked
        reused = False
        # The reserve of the request is stored with one of its units, which carries the actual cost as well.
        for row in sorted(requests, key=lambda r: -r.most_tokens):
            # The unit was released and has been asked again since: the newer attempt counts.
            if attempts.get((row.unit_id, row.repeat), 0) >= row.attempt:
                tally.late += 1
                continue
            place = row.unit_id, row.repeat, row.attempt
            yield entries.make_entry(
                attempt, place, golds.get(row.unit_id, {}), None if reused else self.call
            )
            tally.reused += reused
            tally.ended[str(parsed.status)] += not reused
            reused = True

    def _accept(self, reply: Reply, where: str, tally: JobTally) -> Parsed:
        """Return the labels of a reply. A reply from another model is kept without a label, because it is paid for."""
        try:
            if self.models is not None:
                self.models.check(reply, self.job.base_url)
        except OtherModel as error:
            tally.other_model.append(f"'{visible((reply.resolved_model or '')[:60])}' ({where})")
            return Parsed(Status.FAILED, reason=str(error))
        return self.asker.accept(reply)

    def _count_known(self, line: ResultLine, where: str, earlier: str | None, tally: JobTally) -> None:
        """Count a line whose request has an answer already. `earlier` is the text of that answer, or None."""
        if line.reply is None or earlier is None or storable(line.reply.text) == earlier:
            tally.known += 1
        else:
            tally.contrary.append(where)

    def _count(self, line: ResultLine, requests: Sequence[JobRequest], tally: JobTally) -> None:
        """Add the cost of the line. If the cost is unknown, add the reserved maximum."""
        if line.reply is None and not line.paid:
            return
        usage = Usage() if line.reply is None else line.reply.usage
        for name in ("input_tokens", "output_tokens", "cached_tokens"):
            tally.usage[name] += getattr(usage, name) or 0
        # The units of a line share one request. Its reserve is stored with the first of them; the others have
        # 0.
        most = sum(r.most_tokens for r in requests)
        reserve = Reserve(
            0, most, min(most, self.job.max_output_tokens), sum(r.most_cost or 0.0 for r in requests)
        )
        tally.spent.charge(usage, self.price, *reserve.get_upper_bound(usage, self.price))


def price_of(job: Job) -> Price | None:
    """Return the price that was stored when the job was created.

    If the price depends on the size of the call, it is looked up in the price list again.
    """
    if job.price is None:
        return None
    stored = {name: value for name, value in job.price.items() if name != "batch"}
    listed = find(job.model, {"own_server": True}, None, batch=bool(job.price.get("batch")))
    # `Price.exact` is a function, which cannot be stored.
    return listed if listed is not None and listed.as_json() == stored else Price(**stored)
