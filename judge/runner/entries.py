"""An attempt on a unit as the study keeps it: whoever asked, a run call by call, a batch, or an identical request before."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from judge.parse import derive
from judge.prompts.load import Task
from judge.runner.calls import Attempt
from judge.runner.prices import Price, charged
from judge.store.judgements import Entry
from judge.types import Judgement, Usage


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What is kept of a call beside its request and its reply. `timeout` is in seconds."""

    max_output_tokens: int
    base_url: str | None = None
    timeout: float | None = None
    price: Price | None = None


@dataclass(frozen=True, slots=True)
class Entries:
    """Makes the entries of one run; `missing` counts the fields that the task's tables had no row for."""

    task: Task
    run_id: str
    missing: Counter[str]

    def of(
        self,
        attempt: Attempt,
        place: tuple[str, int, int],
        gold: Mapping[str, str],
        call: CallFacts | None = None,
    ) -> Entry:
        """The entry of an attempt at `place` (unit, repeat, number of the attempt), `gold` being the unit's.

        Without `call` it is the answer of an identical request, which cost nothing.
        """
        parsed, reply, labels = attempt.parsed, attempt.reply, attempt.parsed.labels
        if labels and self.task.spec.derive:
            derived = derive(self.task, labels, gold)
            self.missing.update(set(self.task.spec.derive) - {a.field for a in derived})
            labels += derived
        judgement = Judgement(
            self.run_id,
            *place,
            status=parsed.status,
            reply=None if reply is None else reply.text,
            reason=parsed.reason,
            labels=labels,
            usage=Usage(),
            latency=None,
            request_sha=attempt.record.request_sha,
            resolved_model=None if reply is None else reply.resolved_model,
            system_fingerprint=None if reply is None else reply.system_fingerprint,
        )
        if call is None:
            return Entry(judgement, attempt.record, reused=True)
        usage = Usage() if reply is None else reply.usage
        judgement = replace(
            judgement,
            usage=usage,
            latency=attempt.latency,
            base_url=attempt.base_url or call.base_url,
            max_output_tokens=call.max_output_tokens,
            timeout=call.timeout,
            cost=None if reply is None else charged(call.price, usage),
        )
        return Entry(judgement, attempt.record)
