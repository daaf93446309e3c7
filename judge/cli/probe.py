"""judge probe: test whether labels stay the same when something that should not matter changes."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.asking.judges import field_of
from judge.asking.run import make_plan, provider_of, use_settings_of
from judge.cli.options import judge_options, options_of
from judge.cli.progress import Progress
from judge.cli.run_result import exit_code
from judge.cli.task_options import field_option
from judge.console import TO_READ, TO_WRITE, db_option, json_option
from judge.document.terminal import print_result
from judge.errors import BadInput, Exit, UsageError
from judge.gates import Gate, decide, output_option
from judge.run_options import RunOptions
from judge.store import Store

if TYPE_CHECKING:
    from judge.runner.probe import Probed, ProbeOutcome, Wanted

PROBES = ("repeat", "order", "injection", "authority", "length", "paraphrase", "empty", "boilerplate")


@click.command()
@click.argument("task_name", metavar="TASK")
@judge_options
@click.option("-n", "limit", default=50, type=click.IntRange(1), help="Number of units to probe.")
@click.option("--where", help="Use only units that match this SQL condition.")
@click.option(
    "--probe",
    "probes",
    multiple=True,
    type=click.Choice(PROBES),
    help="Run only this probe. Repeatable.",
)
@click.option(
    "--nothing",
    metavar="LABEL",
    help="Correct label for an empty passage (default: its most frequent label).",
)
@click.option(
    "--paraphrases",
    type=TO_READ,
    help='JSON Lines with paraphrased claims or questions: {"text": ..., "paraphrase": ...}.',
)
@click.option(
    "--fail-over",
    multiple=True,
    metavar="[PROBE=]RATE",
    help="Exit with code 5 if the rate of PROBE (default: any) is above RATE. Repeatable.",
)
@click.option(
    "--on",
    type=click.Choice(["value", "upper"]),
    default="value",
    help="Value that --fail-over compares: the rate, or its upper bound.",
)
@output_option(help="Write the result to a .xml (JUnit) or .md file. Repeatable.")
@click.option(
    "--keep",
    type=TO_WRITE,
    help="Store the answers in this study, to resume later (default: discard them).",
)
@options_of("concurrency", "max", "base_url", "settings")
@field_option
@db_option
@json_option
def probe(task_name: str, model: str | None, **options: Any) -> int:
    """Count the labels that change although the meaning stays the same.

    Use it to check a judge's instructions, or as a test in CI.

    \b
    judge probe stance -m openai/gpt-5-mini -n 100 --fail-over 0.1
    judge probe stance -m llamacpp/smollm2 --probe order --probe injection --fail-over injection=0.05 --on upper

    Each probe labels the same units again with one change:

    \b
      repeat       no change
      order        the labels in reverse order
      injection    an injected instruction to give another label
      authority    an added claim of authority
      length       added neutral text
      paraphrase   the claim in other words (--paraphrases)
      empty        an empty passage: it should get the label --nothing
      boilerplate  a passage without content: it should get the same label

    The intervals of the rates are clustered by question. Probe labels are never stored in the study itself.
    """
    from judge.runner.probe import Wanted, as_json
    from judge.runner.probe_document import as_document

    limits = _limits(options["fail_over"])
    given = RunOptions.from_options(options)
    with Store.open(options["db"], create=False) as store:
        model, given = use_settings_of(store, options["like"], model, given)
        # Units are always drawn with the same seed, so that two probes use the same units.
        given = replace(given, sample=0)
        plan = make_plan(task_name, model, given, store)
    # A raw task contains its labels in a fixed order.
    usual = tuple(name for name in PROBES if name != "order" or not plan.task.spec.raw)
    wanted = Wanted(
        field_of(plan.task, options["field"]),
        options["probes"] or usual,
        options["nothing"],
        _paraphrases(options["paraphrases"]),
    )
    # A limit on an omitted probe would pass without a message.
    if missing := [name for name in limits if name and name not in wanted.probes]:
        raise UsageError(
            f"--fail-over {missing[0]}: this run does not include that probe; add --probe {missing[0]}"
        )
    provider = provider_of(model, given)
    with Store.open(options["db"], create=False) as store, _scratch(options["keep"]) as scratch:
        results = asyncio.run(_ask(store, scratch, plan, provider, wanted))
    if results.ended is not None:
        return exit_code(results.ended)
    gates = _gates(results.rows, limits, options["on"])
    document = {"task": plan.task.name, "model": plan.model, "field": wanted.field, **as_json(results)}
    document["failed"] = [gate.name for gate in gates if not gate.passed]
    print_result("probe", document, as_document(results, plan.task.name, plan.model), options["as_json"])
    decide(f"judge probe {plan.task.name} with {plan.model}", gates, options["output"])
    return Exit.DONE


async def _ask(store: Any, scratch: Any, plan: Any, provider: Any, wanted: Wanted) -> Probed:
    from judge.runner import open_patiently, probe

    progress = Progress(sys.stderr)
    try:
        # The study may know the server already, which saves paid test calls. The scratch file does not.
        plan = await open_patiently(provider, plan, store=store)
        return await probe.probe(store, scratch, plan, provider, wanted, progress)
    finally:
        progress.end()
        await provider.close()


@contextmanager
def _scratch(keep: Path | None) -> Iterator[Any]:
    """Open the study that stores the runs of the probes.

    This is the study `keep` or, if `keep` is None, a new study in a temporary directory.
    """
    if keep is not None:
        with Store.open(keep) as store:
            yield store
        return
    with (
        # Replies to changed units are not labels of the study, so they are stored elsewhere.
        tempfile.TemporaryDirectory(prefix="adjudge-probe-") as folder,
        Store.open(Path(folder) / "probe.db") as store,
    ):
        yield store


def _limits(given: tuple[str, ...]) -> dict[str, float]:
    """Parse `--fail-over` as a mapping from probe to limit.

    The probe '' means all probes. Raises UsageError for an invalid value.
    """
    limits = {}
    for text in given:
        name, _, value = text.rpartition("=")
        if name and name not in PROBES:
            raise UsageError(f"--fail-over {text}: unknown probe '{name}'; available: {', '.join(PROBES)}")
        try:
            limit = float(value)
        except ValueError:
            limit = -1.0
        if not 0 <= limit <= 1:
            raise UsageError(
                f"--fail-over {text}: must be a rate between 0 and 1, e.g. 0.1 or injection=0.05"
            )
        limits[name] = limit
    return limits


def _get_gated_value(row: ProbeOutcome, on: str) -> float:
    # An undefined rate fails every limit.
    value = row.rate.value if on == "value" or row.rate.high is None else row.rate.high
    return 1.0 if value is None else value


def _gates(rows: list[ProbeOutcome], limits: dict[str, float], on: str) -> list[Gate]:
    """Return a gate for each probe that has a limit."""
    gates = []
    for row in rows:
        limit = limits.get(row.probe, limits.get(""))
        # A probe that does not apply to the model or the units is not a failure of the judge.
        if limit is None or row.why is not None:
            continue
        seen = _get_gated_value(row, on)
        rate = f"{row.probe} ({on}) is {seen:.3f}"
        if row.rate.value is None:
            rate = f"{row.probe} is undefined: {row.rate.reason}"
        passed = seen <= limit
        gates.append(Gate(row.probe, passed, rate + (f" <= {limit:g}" if passed else f", above {limit:g}")))
    return gates


def _paraphrases(path: Path | None) -> dict[str, str]:
    paraphrases = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines() if path else (), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            paraphrases[str(row["text"])] = str(row["paraphrase"])
        except (ValueError, KeyError, TypeError) as e:
            raise BadInput("not a JSON object with text and paraphrase", path=str(path), line=number) from e
    return paraphrases
