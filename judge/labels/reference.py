"""What judges are held against, by one word in every command: gold, decided, majority, or a person's name."""

from __future__ import annotations

from dataclasses import dataclass

from judge.errors import UsageError
from judge.labels.panel import Panel
from judge.labels.words import ALIASES, DECIDED, MAJORITY
from judge.types import GOLD, AnnotatorKind


@dataclass(frozen=True)
class Reference:
    """`word` as in WORDS, or the annotator's name; `name` is the column of the panel's table, `text` the words for it.

    `chosen`: it was asked for by name, not taken by default.
    """

    word: str
    name: str
    text: str
    chosen: bool = False


def there(panel: Panel) -> list[Reference]:
    """The words that can be held against, in the order in which they are taken by default."""
    found = []
    ruled = panel.of_kind(AnnotatorKind.ADJUDICATED)
    if ruled and panel.decided is not None:
        d = panel.decided
        text = f"the adjudicated labels ({_units(d.n_ruled)}) and those that people agree on ({d.n_agreed:,})"
        found.append(Reference(DECIDED, d.name, text))
    elif ruled:
        found.append(Reference(DECIDED, ruled[0], "the adjudicated labels"))
    if gold := panel.of_kind(AnnotatorKind.GOLD):
        found.append(Reference(GOLD, gold[0], "the gold labels"))
    if panel.majority is not None:
        found.append(Reference(MAJORITY, panel.majority.name, "the people's majority"))
    elif len(panel.people) == 1:
        found.append(Reference(MAJORITY, panel.people[0], f"the labels of {panel.people[0]}"))
    return found


def resolve(panel: Panel, wanted: str | None = None) -> Reference | None:
    """The reference of this word or name; without one the first that there is, None when there is nothing.

    Raises UsageError for a word that the field has no labels of, a name that is nobody's, and the only judge itself.
    """
    known = there(panel)
    if wanted is None:
        return next(iter(known), None)
    word = ALIASES.get(wanted, wanted)
    if panel.judges == [wanted]:
        raise UsageError(f"--reference {wanted}: that is the judge, and nothing is held against itself")
    for found in known:
        if word == found.word:
            return Reference(found.word, found.name, found.text, chosen=True)
    if wanted in panel.ratings.annotators:
        return Reference(wanted, wanted, f"the labels of {wanted}", chosen=True)
    names = [found.word for found in known] + panel.people
    told = ", ".join(list(dict.fromkeys(names))[:20]) or "none"
    raise UsageError(f"--reference {wanted}: no such labels of '{panel.field}'; references there are: {told}")


def voices(panel: Panel, reference: Reference | None) -> list[str]:
    """The people that a verdict compares the judge with: a single one does not speak where another was asked for by name."""
    alone = len(panel.people) == 1 and reference is not None and reference.chosen
    return [] if alone and reference is not None and reference.name not in panel.people else panel.people


def _units(n: int) -> str:
    return f"{n:,} unit" if n == 1 else f"{n:,} units"
