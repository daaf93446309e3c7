"""Run several tasks one after the other with one open provider, for commands that need more than one task."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from judge.errors import AdjudgeError
from judge.prompts.load import Task
from judge.providers.base import Provider
from judge.runner.plan import Live, Plan, RunReport
from judge.runner.run import run_task
from judge.store.selection import Selection
from judge.store.study import Store
from judge.types import Json


class Halted(AdjudgeError):
    """Raised if a run in the sequence ended before its last unit. `plan` and `report` belong to that run."""

    def __init__(self, plan: Plan, report: RunReport) -> None:
        super().__init__(f"{plan.task.name}: {report.stopped or report.last_failure or report.error}")
        self.plan, self.report = plan, report


@dataclass(slots=True)
class Flow:
    """Runs that share the model, sampling, limits and budget of `plan`. `reports` contains the reports of the
    finished runs.
    """

    store: Store
    provider: Provider
    plan: Plan
    watch: Callable[[Live], None] | None = None
    reports: list[tuple[Plan, RunReport]] = field(default_factory=list)

    async def run(
        self, task: Task, selection: Selection, extra: Mapping[str, Json] | None = None
    ) -> RunReport:
        """Run one task over its selection. Raises Halted if the run was stopped or if no unit was answered."""
        # The limits are those of the whole command: each run gets what the runs before it have left.
        remaining_plan = self.plan.subtract_reports([report for _, report in self.reports])
        plan = replace(remaining_plan, task=task, selection=selection, extra=dict(extra or {}))
        report = await run_task(self.store, plan, self.provider, self.watch)
        self.reports.append((plan, report))
        if report.ending is not None or report.stopped is not None:
            raise Halted(plan, report)
        return report
