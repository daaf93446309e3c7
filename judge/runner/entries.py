"""Turn attempts into rows for the study. The answers come from calls, provider batches or identical earlier
requests.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from judge.parse import derive
from judge.prompts.load import Task
from judge.runner.calls import Attempt
from judge.runner.prices import Price, compute_charge
from judge.store.judgements import Entry
from judge.types import Judgement, Usage


@dataclass(frozen=True, slots=True)
class CallFacts:
    """The facts that are stored about a call in addition to its request and reply. `timeout` is in seconds."""

    max_output_tokens: int
    base_url: str | None = None
    timeout: float | None = None
    price: Price | None = None


@dataclass(frozen=True, slots=True)
class Entries:
    """Makes the rows (entries) that one run stores in the study.

    `missing` counts, for each derived field, the answers for which the task's table has no derived label.
    """

    task: Task
    run_id: str
    missing: Counter[str]

    def make_entry(
        self,
        attempt: Attempt,
        place: tuple[str, int, int],
        gold: Mapping[str, str],
        call: CallFacts | None = None,
    ) -> Entry:
        """Return the entry for an attempt.

        `place` contains the unit's id, the number of the repeat, and the number of the attempt. `gold`
        contains the unit's gold labels, which some derived fields need. If `call` is None, the answer was
        copied from an identical request at no cost.
        """
        parsed, reply, labels = attempt.parsed, attempt.reply, attempt.parsed.labels
        if labels and self.task.spec.derive:
            # Derived when the reply is parsed, so that gold labels that are imported later do not change stored labels.
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
            # Usage and cost are stored with the first unit that has this request.
            return Entry(judgement, attempt.record, reused=True)
        usage = Usage() if reply is None else reply.usage
        judgement = replace(
            judgement,
            usage=usage,
            latency=attempt.latency,
            # With several servers, each attempt may have a different address.
            base_url=attempt.base_url or call.base_url,
            max_output_tokens=call.max_output_tokens,
            timeout=call.timeout,
            cost=None if reply is None else compute_charge(call.price, usage),
        )
        return Entry(judgement, attempt.record)
