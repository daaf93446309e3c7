"""The outcome of a search: as sentences, JSON, an HTML page, and the recipe file."""

from collections.abc import Iterator
from dataclasses import replace
from html import escape
from pathlib import Path

from judge.commands import command
from judge.improve.outcome import Improved
from judge.improve.recipe import Recipe
from judge.prompts.load import Task, find_tasks, with_constant
from judge.store.study import now
from judge.types import Json, attributes

MOST_PAIRS = 8


def proved(improved: Improved) -> Recipe:
    """Return the winner with the evidence for it."""
    assert improved.winner is not None and improved.difference is not None and improved.proof is not None
    value, low, high = improved.difference
    look = improved.proof.look
    made: dict[str, Json] = {
        "at": now(),
        "model": improved.model,
        "reference": improved.reference,
        "look": look.look if look else None,
        "test_units": improved.proof.n_shared,
        "test_questions": improved.proof.n_clusters,
        "difference": round(value, 4),
        "low": None if low is None else round(low, 4),
        "high": None if high is None else round(high, 4),
    }
    return replace(improved.winner, made=made)


def written(improved: Improved, path: Path | None = None) -> Path:
    """Write the proved recipe (default: TASK.recipe.yaml) and return its path.

    If the text of the task has changed, its next version is written beside it.
    """
    target = path or Path(f"{improved.task.task_id}.recipe.yaml")
    target.write_text(proved(improved).text(), encoding="utf-8")
    task = next_version(improved, target.parent)
    if task is not None:
        file = target.parent / f"{task.name}.md"
        file.write_text(task.text, encoding="utf-8")
        improved.notes.append(f"the task with the new instructions, for people and other models: {file}")
    return target


def next_version(improved: Improved, folder: Path) -> Task | None:
    """Return the task with the winner's instructions as its next unused version; None if its text is unchanged."""
    assert improved.winner is not None
    text = improved.winner.instructions
    if text is None:
        return None
    known, version = find_tasks(), improved.task.version + 1
    while (name := f"{improved.task.task_id}.v{version}") in known or (folder / f"{name}.md").exists():
        version += 1
    return with_constant(improved.task, text, version)


NOTHING_TRIED = (
    "nothing was tried: the judge agrees with people as well as they agree with each other, so a better judge could not be "
    "distinguished from a worse one (--anyway searches nevertheless). First improve the guidelines where people differ:"
)
NOTHING_BETTER = "no improvement shown: no candidate is better on tune than the task as it is; the sealed test was not opened"


def sentences(improved: Improved, path: Path | None = None) -> list[str]:
    """Return the outcome in sentences."""
    lines = [*_people(improved)]
    if improved.refused:
        return [*lines, *_spent(improved)]
    if improved.stopped:
        lines.append(
            f"the search stopped early: {improved.stopped}; the same command with a higher limit resumes it"
        )
    if improved.winner is None:
        return [*lines, NOTHING_BETTER, *_spent(improved)]
    lines.append(f"best on tune: {improved.winner.words}")
    if improved.proof is None:
        return [*lines, *_spent(improved)]
    lines += list(_proof(improved))
    if improved.proved:
        lines.append(
            f"the recipe is in {path}: {command('judge run', improved.task.name, '-m', improved.model, '--recipe', path)}"
            if path
            else "a recipe is written"
        )
    return [*lines, *(_spent(improved))]


def _proof(improved: Improved) -> Iterator[str]:
    proof, difference = improved.proof, improved.difference
    assert proof is not None
    look = proof.look.look if proof.look else 0
    where = f"on the sealed test ({proof.n_shared:,} units in {proof.n_clusters:,} questions, look {look}, tested at {improved.level:.4g})"
    if difference is None:
        yield f"no improvement shown {where}: the difference is undefined"
        return
    value, low, high = difference
    span = "no interval" if low is None or high is None else f"{low:+.3f} … {high:+.3f}"
    head = "improved" if improved.proved else "no improvement shown"
    yield f"{head} {where}: kappa {value:+.3f} ({span} at {100 * (1 - improved.level):.4g} %) against the task as it is"
    if not improved.proved:
        if improved.needed is not None:
            yield (
                f"a difference of this size would be detected at the next look with about {improved.needed:,} labelled units in the "
                "test (chance 80 %)"
            )
        else:
            yield "the observed difference is not above 0, so more labels are not expected to show an improvement"


def _people(improved: Improved) -> Iterator[str]:
    people = improved.people
    if people is None:
        return
    yield f"kappa of the judge with people {people.judge:.3f}, of people with each other {people.people:.3f} (learn and tune)"
    if not people.as_well:
        return
    if improved.refused:
        yield NOTHING_TRIED
    else:
        yield "the judge agrees with people as well as they agree with each other; people differ on:"
    for label, other, n in people.pairs[:MOST_PAIRS]:
        yield f"  {label} / {other}: {n:,} unit{'s' if n != 1 else ''}"
    if people.clauses:
        yield "what the task says of these labels:"
        yield from (f"  {text}" for text in people.clauses)
    if people.notes:
        yield "what the lead wrote:"
        yield from (f"  {text}" for text in people.notes)


def _spent(improved: Improved) -> list[str]:
    tokens = improved.spent["input_tokens"] + improved.spent["output_tokens"]
    line = f"spent: {tokens:,} tokens" + (f", ${improved.cost:.4f}" if improved.cost is not None else "")
    return [line]


def as_json(improved: Improved, path: Path | None = None) -> dict[str, Json]:
    """Return the documented JSON shape."""
    value, low, high = improved.difference or (None, None, None)
    proof = improved.proof
    return {
        "task": improved.task.name,
        **attributes(improved, "field", "model", "reference"),
        "tried": [
            {
                "step": t.rung,
                "candidate": t.recipe.words,
                "run": t.run_id,
                **attributes(t, "kappa", "coverage"),
                "units": t.n_units,
                "questions": t.n_questions,
                "tokens_per_unit": t.tokens,
            }
            for t in improved.tried
        ],
        "people": None
        if improved.people is None
        else {
            **attributes(improved.people, "judge", "people"),
            "differ_on": [{"labels": [a, b], "units": n} for a, b, n in improved.people.pairs],
            "clauses": list(improved.people.clauses),
            "notes": list(improved.people.notes),
        },
        "refused": improved.refused,
        "winner": improved.winner.words if improved.winner else None,
        "test": None
        if proof is None
        else {
            "look": proof.look.look if proof.look else None,
            "level": improved.level,
            "units": proof.n_shared,
            "questions": proof.n_clusters,
            "runs": [c.run_id for c in proof.contenders],
            "difference": value,
            "low": low,
            "high": high,
            "units_needed": improved.needed,
        },
        "improved": improved.proved,
        "recipe": None if path is None else str(path),
        "tokens": improved.spent["input_tokens"] + improved.spent["output_tokens"],
        "cost_usd": improved.cost,
        "stopped": improved.stopped,
        "said": sentences(improved, path),
        "notes": list(improved.notes),
    }


STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}
h1{font-size:1.6rem;line-height:1.25}h2{font-size:1.2rem;margin-top:2rem}.about{color:#555}
.said{border-left:.3rem solid #888;padding:.4rem 1rem;background:#f4f4f2}.said.proved{border-color:#2a7a3b}.said p{margin:.4rem 0}
.said p:first-child{font-weight:600}pre{white-space:pre-wrap;background:#f4f4f2;padding:.8rem 1rem}
table{border-collapse:collapse;width:100%;font-size:.93rem}th,td{text-align:left;padding:.3rem .6rem;vertical-align:top}
tr.step>*{border-top:1px solid #bbb}tr.after td{color:#555}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.wide{overflow-x:auto}tr.best td{font-weight:600;color:inherit;background:#e9f3ea}svg text{font:13px system-ui,sans-serif;fill:currentColor}
@media(prefers-color-scheme:dark){body{color:#eee;background:#161616}.about,tr.after td{color:#aaa}.said,pre{background:#232323}
tr.step>*{border-color:#555}tr.best td{background:#1f3324}}"""


def as_html(improved: Improved) -> str:
    """Return a self-contained page: the outcome, the difference on the sealed test, and every candidate."""
    title = f"Improving {improved.task.name} with {improved.model}"
    paragraphs = "".join(f"<p>{escape(_capital(text))}</p>\n" for text in _outcome_first(improved))
    notes = "".join(f"<p>{escape(_capital(text))}</p>\n" for text in improved.notes)
    new = improved.winner.instructions if improved.winner else None
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>\n<h1>{escape(title)}</h1>\n"
        f"<p class=about>Field {escape(improved.field)}, held against {escape(improved.reference)}. Chosen on tune, proved on the "
        f'sealed test.</p>\n<div class="said{" proved" if improved.proved else ""}">{paragraphs}</div>\n{_drawn(improved)}{notes}'
        + (f"<h2>The instructions that won</h2>\n<pre>{escape(new)}</pre>\n" if new else "")
        + "<h2>What was tried</h2>\n<div class=wide><table><thead><tr><th>step</th><th>candidate</th><th class=n>kappa on tune</th>"
        "<th class=n>labelled</th><th class=n>units</th><th class=n>questions</th><th class=n>tokens a unit</th></tr></thead>\n"
        f"<tbody>\n{''.join(_rows(improved))}</tbody></table></div>\n</body></html>\n"
    )


def _rows(improved: Improved) -> Iterator[str]:
    """Yield a row for each candidate; a step is named once, and a calibrated candidate follows its base."""
    best = improved.winner.words if improved.winner else "as it is today"
    last = None
    for t in improved.tried:
        words = t.recipe.words
        kinds = ["step"] * (t.rung != last) + ["after"] * (t.recipe.calibration is not None)
        kinds += ["best"] * (
            words == best and t.n_questions == max(candidate.n_questions for candidate in improved.tried)
        )
        yield (
            f'<tr class="{" ".join(kinds)}"><td>{escape(t.rung) if t.rung != last else ""}</td><td>{escape(words)}</td>'
            f"<td class=n>{'undefined' if t.kappa is None else f'{t.kappa:.3f}'}</td><td class=n>{t.coverage:.0%}</td>"
            f"<td class=n>{t.n_units:,}</td><td class=n>{t.n_questions:,}</td>"
            f"<td class=n>{'' if t.tokens is None else f'{round(t.tokens):,}'}</td></tr>\n"
        )
        last = t.rung


def _outcome_first(improved: Improved) -> list[str]:
    """Return the sentences, beginning with the result on the sealed test or why it was not opened."""
    lines = sentences(improved)
    if improved.refused:
        head = NOTHING_TRIED
    elif improved.winner is None:
        head = NOTHING_BETTER
    elif improved.proof is not None:
        head = next(_proof(improved))
    else:
        return lines
    return [text for text in lines if text == head] + [text for text in lines if text != head]


def _capital(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:]


def _drawn(improved: Improved) -> str:
    """Return an SVG of the difference with its interval beside zero; empty if there is none."""
    value, low, high = improved.difference or (0.0, None, None)
    if low is None or high is None:
        return ""
    least, most = min(-0.1, low - 0.05), max(0.1, high + 0.05)

    def x(at: float) -> float:
        return round(20 + 560 * (at - least) / (most - least), 1)

    title = f"Difference of kappa on the sealed test: {value:+.3f}, from {low:+.3f} to {high:+.3f}"
    return (
        f'<svg viewBox="0 0 600 84" role="img" width="600" style="max-width:100%"><title>{escape(title)}</title>'
        f'<line x1="{x(0)}" x2="{x(0)}" y1="8" y2="56" stroke="currentColor" stroke-dasharray="4 3"/>'
        f'<line x1="{x(low)}" x2="{x(high)}" y1="32" y2="32" stroke="#1b5fa8" stroke-width="3"/>'
        f'<circle cx="{x(value)}" cy="32" r="6" fill="#1b5fa8"/>'
        f'<text x="{x(value)}" y="18" text-anchor="middle">{value:+.3f}</text>'
        f'<text x="{x(low)}" y="52" text-anchor="end">{low:+.3f}</text><text x="{x(high)}" y="52">{high:+.3f}</text>'
        f'<text x="{x(0)}" y="74" text-anchor="middle">0: as good as today</text></svg>\n'
    )
