"""Plans of how many units to label, as documents: for an interval, for a decision, and for a judge's verdict."""

from collections.abc import Iterator, Sequence

from judge.document.blocks import Block, Cell, Document, Notes, Paragraph, Section, Table, heads
from judge.stats.planning import Design, SampleSize
from judge.stats.verdict_plan import VerdictPlan

MOST_NAMED = 5


def as_document(
    design: Design, goals: Sequence[tuple[str, Sequence[SampleSize]]], notes: Sequence[str]
) -> Document:
    """Return the numbers of questions and units for each goal, which is a title with its plans."""
    tables = [_sizes(number, title, sizes, design) for number, (title, sizes) in enumerate(goals, 1)]
    return Document("", sections=[Section("plan", "Plan", [*tables, Notes(notes)])])


def _sizes(number: int, title: str, sizes: Sequence[SampleSize], design: Design) -> Table:
    names = {"per_cluster": "units per question", "n_clusters": "questions", "n_units": "units"}
    if design.n_units:
        # Without a pilot nothing is labelled yet.
        names |= {"more_clusters": "more questions", "more_units": "more units"}
    names["design_effect"] = "design effect"
    rows = [[getattr(size, name) for name in names] for size in sizes]
    return Table(f"plan_{number}", title, heads("number", *names.values()), rows)


def verdict_document(plans: Sequence[VerdictPlan]) -> Document:
    """Return for each judge the conditions of the verdict, the missing labels, and the chances to decide it."""
    sections = [
        Section(f"verdict_{n}", plan.verdict.judge, list(_verdict(n, plan)))
        for n, plan in enumerate(plans, 1)
    ]
    return Document("", sections=sections)


def _verdict(number: int, plan: VerdictPlan) -> Iterator[Block]:
    verdict = plan.verdict
    yield Paragraph(f"{chr(10) if number > 1 else ''}{verdict.judge}: {plan.decision}\n{verdict.because}")
    rows: list[list[Cell]] = [
        [c.name.replace("_", " "), c.state, c.value, c.low, c.high, c.limit] for c in verdict.conditions
    ]
    columns = heads("text", "condition", "") + heads("number", "value", "low", "high", "limit")
    yield Table(f"conditions_{number}", "", columns, rows)
    yield Paragraph(f"\n{describe_needs(plan)}")
    if plan.curve:
        chances: list[list[Cell]] = [
            [c.more_units, c.more_clusters, c.decided, c.trusted, c.distrusted] for c in plan.curve
        ]
        columns = heads("number", "more units", "more questions") + heads(
            "share", "decided", "trust", "do not trust"
        )
        yield Table(f"chances_{number}", "", columns, chances)
    yield Notes([f"rule: {verdict.rule}", *plan.assumed])


def describe_needs(plan: VerdictPlan) -> str:
    """Return a sentence that says how many more units are needed and who must label them.

    The sentence also says how many units give a probability of 50 % and of 90 % that the verdict is decided.
    """
    if plan.decision != "undecided":
        return "Decided: no more labels are needed for a verdict."
    if plan.more_units is None or plan.more_clusters is None:
        return f"More labels may not decide the verdict: {plan.why}."
    # With one unit for each question, both numbers are the same.
    questions = f" on {plan.more_clusters:,} more questions" if plan.more_clusters != plan.more_units else ""
    start = f"Still needed: about {plan.more_units:,} more units{questions}, labelled by {describe_annotators(plan.labelled_by)}"
    if not plan.curve:
        return f"{start}; {plan.why}."
    half = f"{plan.half:,} for a probability of 50 %" if plan.half is not None else ""
    most = f"{plan.most:,} for 90 %" if plan.most is not None else "no number on the curve reaches 90 %"
    return (
        f"{start}, for a probability of {100 * plan.power:g} % ({', '.join(x for x in (half, most) if x)})."
    )


def describe_annotators(names: tuple[str, ...]) -> str:
    """Return the names of all annotators as text, or their number if there are many."""
    if len(names) == 1:
        return names[0]
    # A sentence with the names of a whole crowd is not read.
    if len(names) > MOST_NAMED:
        return f"the {len(names)} people"
    return f"{', '.join(names[:-1])} and {names[-1]}, each of them"
