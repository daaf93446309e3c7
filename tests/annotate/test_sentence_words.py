"""The sentence of a verdict has at most 66 words, whatever its parts: these are read from the code, with all that an f-string of
them may become."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from annotate.drawing import sequences, source
from annotate.report import rulings
from judge.stats import decision, objections
from judge.stats.looks import Draw, Looks
from judge.stats.verdict_inputs import Limits
from judge.stats.verdict_rows import LabelRow
from tests import words

NUMBER = "1,000"
"""What stands for a value that is not text of the module: one word, as a name or a number is."""


class Texts:
    """All texts that the expressions of a module may become."""

    def __init__(self, module: Any) -> None:
        self.tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
        self.open: list[str] = []
        self.functions = {n.name: n for n in ast.walk(self.tree) if isinstance(n, ast.FunctionDef)}
        self.within = {id(inner): outer for outer in self.functions.values() for inner in ast.walk(outer)}

    def of(self, node: ast.expr) -> list[str]:
        """The texts of one expression; a value that is not text is one word."""
        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.JoinedStr(values=parts):
                return ["".join(some) for some in product(*map(self.of, parts))]
            case ast.FormattedValue(value=value):
                return self.of(value)
            case ast.IfExp(body=body, orelse=other):
                return [*self.of(body), *self.of(other)]
            case ast.BoolOp(values=values):
                return [text for value in values for text in self.of(value)]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return ["".join(both) for both in product(self.of(left), self.of(right))]
            case ast.Call(func=ast.Name(id="command"), args=parts):
                return [" ".join(some) for some in product(*map(self.of, parts))]
            case ast.Name(id=name):
                return self.of_variable(self.within.get(id(node)), name)
            case (
                ast.Attribute(value=ast.Name(id="self"), attr=name)
                | ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name))
            ) if name in self.functions:
                return self.returned(name)
        return [NUMBER]

    def returned(self, name: str) -> list[str]:
        """What a function returns."""
        returns = [n.value for n in ast.walk(self.functions[name]) if isinstance(n, ast.Return) and n.value]
        return [text for value in returns for text in self.of(value)]

    def of_variable(self, function: ast.FunctionDef | None, name: str) -> list[str]:
        """What a function assigns to a variable, with each text that it adds."""
        result: list[str] = []
        added = [""]
        if name in self.open:
            # A variable that keeps what it was adds no text.
            return []
        self.open.append(name)
        for node in ast.walk(function) if function else ():
            match node:
                case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                    result += self.of(value)
                case ast.AugAssign(target=ast.Name(id=target), value=value) if target == name:
                    added += self.of(value)
        self.open.remove(name)
        return [text + more for text in result for more in added] or [NUMBER]

    def argument(self, call: str, name: str, position: int | None = None) -> list[str]:
        """What calls of a function take for an argument."""
        result = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and call in (getattr(node.func, "id", ""), "replace"):
                values = [k.value for k in node.keywords if k.arg == name]
                if position is not None and isinstance(node.func, ast.Name) and node.func.id == call:
                    values += node.args[position : position + 1]
                result += [text for value in values for text in self.of(value)]
        return result


SOURCE, DECISION, OBJECTIONS = Texts(source), Texts(decision), Texts(objections)
REFUSED = sorted(
    {
        text
        for text in [
            *SOURCE.argument("Draw", "refused"),
            *SOURCE.of_variable(SOURCE.functions["_draw_looks"], "reason"),
            *SOURCE.of_variable(SOURCE.functions["draw"], "reason"),
        ]
        if len(text.split()) > 3
    }
)
HELD_UP = sorted(
    {
        text
        for text in [
            *DECISION.of_variable(DECISION.functions["_objections"], "objection"),
            *OBJECTIONS.of_variable(OBJECTIONS.functions["coverage"], "objection"),
            f"{NUMBER} agrees with the other people less than they agree with each other",
            f"{NUMBER} labels are in conflict (annotate conflicts list)",
        ]
        if len(text.split()) > 3
    }
)


def frames() -> Iterable[str]:
    """How a frame is named, with each of its limits or without."""
    for where, left_out in product(("item_id <> 'a'", None), (("a",), ())):
        plan = SimpleNamespace(frame=3000, where=where, left_out=left_out)
        yield sequences._words(SimpleNamespace(plan=plan))  # type: ignore[arg-type]


def drawn() -> list[str]:
    """How the units behind a verdict were drawn."""
    result = {Draw().words}
    for text in (
        *SOURCE.argument("Draw", "words", 0),
        *SOURCE.of_variable(SOURCE.functions["_draw_looks"], "words"),
    ):
        for frame in frames():
            result.add(text.replace(f"from {NUMBER}", f"from {frame}"))
    return sorted(result)


def verdict(draw: Draw, **parts: Any) -> Any:
    """What the sentence reads of a verdict."""
    condition = SimpleNamespace(name="evidence", state="open")
    given: dict[str, Any] = {
        "people": ("ann", "bob"), "source": None, "draw": draw, "decision": "undecided", "regime": "people", "limits": Limits(),
        "labels": (), "held_up": "", "refused": draw.refused, "conditions": (condition,), "outlook": None, "more_units": None,
        "of": SimpleNamespace(n_units=150, n_asked=200, sums=SimpleNamespace(weighted=False)),
        "measures": [SimpleNamespace(measure="pooled_kappa", value=0.5)] * 2,
    }  # fmt: skip
    return SimpleNamespace(**given | parts)


def draws(refused: str = "") -> Iterable[Draw]:
    """Every way to draw, on fewer units than were drawn, for one judge of ten."""
    looked = Looks((), (200,), (300,), (0.01,), 200)
    for text in drawn():
        yield Draw(text, is_random="equal" in text, refused=refused, looks=looked, judges=10)


def longest(result: Iterable[Any]) -> str:
    """The longest sentence of these verdicts."""
    subject: Any = SimpleNamespace(panel=SimpleNamespace(field="stance"))
    return max((" ".join(rulings.words(subject, "m/one", one)) for one in result), key=words.count)


def rows(states: Iterable[tuple[str, str]]) -> tuple[LabelRow, ...]:
    made = []
    for i, both in enumerate(states):
        for direction, state in zip(("finds", "means"), both, strict=True):
            made.append(LabelRow(f"label {i}", direction, state, 20.0, 0.5, 0.5, 0.0, -0.1, 0.1))  # type: ignore[arg-type]
    return tuple(made)


def test_the_code_has_the_messages() -> None:
    """Should the code be written in another way, this finds that the tests below look at nothing."""
    assert len(REFUSED) >= 5 and len(HELD_UP) >= 5 and len(drawn()) >= 8, (REFUSED, HELD_UP, drawn())
    assert all(
        any(part in text for text in REFUSED)
        for part in ("draw a batch", "imported labels give only estimates", "To test 1,000")
    )


@pytest.mark.parametrize("refused", REFUSED)
def test_a_sentence_without_a_verdict(refused: str) -> None:
    sentence = longest(verdict(draw) for draw in draws(refused))
    assert words.count(sentence) <= words.MOST, (words.count(sentence), sentence)


@pytest.mark.parametrize("held_up", HELD_UP)
def test_a_sentence_of_a_verdict_that_is_held_up(held_up: str) -> None:
    sentence = longest(verdict(draw, held_up=held_up) for draw in draws())
    assert words.count(sentence) <= words.MOST, (words.count(sentence), sentence)


STATES = tuple(product(("shown", "missed", "not shown"), repeat=2))


@pytest.mark.parametrize("decision", ["trust", "trust in part", "do not trust"])
def test_a_sentence_of_a_verdict(decision: str) -> None:
    for labels in (rows(STATES[:6]), rows(STATES[3:]), rows(STATES)):
        # One source of labels has no label by label.
        ways = ((None, "people"), ("gold", "threshold"))[: 1 if decision == "trust in part" else 2]
        for alone, regime in ways:
            parts = {"decision": decision, "labels": labels, "source": alone, "regime": regime}
            people = () if alone else ("a", "b")
            sentence = longest(verdict(d, people=people, **parts) for d in draws())
            assert words.count(sentence) <= words.MOST, (words.count(sentence), sentence)


def test_an_undecided_sentence() -> None:
    outlooks = (
        None,
        SimpleNamespace(why="", curve=(SimpleNamespace(more_units=1000, decided=0.5),)),
        SimpleNamespace(why="even 1,000 more units have a chance of 50% only", curve=()),
    )
    names = ("evidence", "people_agree", "non_inferiority", "threshold")
    for name, state in zip(names, ("open", "open", "open", "holds"), strict=True):
        for outlook, more in product(outlooks, (None, 1000)):
            condition = SimpleNamespace(name=name, state=state)
            result = (verdict(d, conditions=(condition,), outlook=outlook, more_units=more) for d in draws())
            sentence = longest(result)
            assert words.count(sentence) <= words.MOST, (words.count(sentence), sentence)
