"""Prompt templates: text with `{{ name }}`, `{{ name.part }}`, `{% if %}` and `{% for %}`, and nothing else.

A task file may come from anybody. Jinja2 only parses the template: its engine would let a template call
methods of Python objects. This module renders the parsed tree itself, from strings, lists and dictionaries.
A template can therefore call nothing, and every other construct is refused when the file is loaded.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from jinja2 import Environment, TemplateSyntaxError, nodes

from judge.errors import TaskError

MAX_CHARACTERS = 10_000_000
"""The largest text that a template may produce. It is larger than any context window."""
MAX_STEPS = 1_000_000
"""The most pieces of text and passes of loops in one rendering."""
MAX_LOOPS = 2
"""How deep loops may be nested: two are needed for questions and their labels."""

_SYNTAX = "a template may contain {{ name }}, {{ name.part }}, {% if name %} and {% for name in list %} only"

_PARSER = Environment(trim_blocks=True, lstrip_blocks=True)


class PromptTemplate:
    """A parsed template. `names` maps each variable that it uses to the line of the first use."""

    def __init__(self, tree: nodes.Template, where: str, first_line: int) -> None:
        self.tree = tree
        self._where, self._first_line = where, first_line
        self.names: dict[str, int] = {}
        self._check_body(tree.body, frozenset(), 0)

    def render(self, values: Mapping[str, Any], show: Callable[[Any], str]) -> str:
        """Return the text. `show` turns each value into text, and is never called with None.

        Raises TaskError if a value is missing, or if the text is too long.
        """
        pieces: list[str] = []
        size = 0
        try:
            for piece in self._write(self.tree.body, values, show):
                size += len(piece)
                if size > MAX_CHARACTERS or len(pieces) > MAX_STEPS:
                    raise self.error(
                        1, "the text for one unit is too long; shorten the input or the template"
                    )
                pieces.append(piece)
        except RecursionError as e:
            raise self.error(1, _SYNTAX) from e
        return "".join(pieces)

    def error(self, line: int | None, problem: str) -> TaskError:
        """Return an error that names the file and the line, or the first line if Jinja gives no line."""
        line = line or 1
        return TaskError(f"{self._where}: template, line {self._first_line + line - 1}: {problem}")

    def _write(
        self, body: list[nodes.Node], scope: Mapping[str, Any], show: Callable[[Any], str]
    ) -> Iterator[str]:
        for node in body:
            # Empty pieces are steps too. Loops and tests that show nothing must also reach the limit.
            yield ""
            if isinstance(node, nodes.Output):
                for part in node.nodes:
                    yield part.data if isinstance(part, nodes.TemplateData) else self._show(part, scope, show)
            elif isinstance(node, nodes.If):
                for branch in (node, *node.elif_):
                    yield from ("" for _ in _names(branch.test))
                yield from self._write(self._choose(node, scope), scope, show)
            elif isinstance(node, nodes.For):
                yield from self._repeat(node, scope, show)

    def _show(self, node: nodes.Node, scope: Mapping[str, Any], show: Callable[[Any], str]) -> str:
        value = self._value(node, scope)
        if value is None:
            raise self.error(
                node.lineno, "the template shows an input that is missing; put it in an {% if %}"
            )
        return show(value)

    def _choose(self, node: nodes.If, scope: Mapping[str, Any]) -> list[nodes.Node]:
        for branch in (node, *node.elif_):
            if self._holds(branch.test, scope):
                return branch.body
        return node.else_

    def _repeat(self, node: nodes.For, scope: Mapping[str, Any], show: Callable[[Any], str]) -> Iterator[str]:
        values = self._value(node.iter, scope)
        # A text would be split into its characters.
        if not isinstance(values, list | tuple):
            raise self.error(node.lineno, f"'{'.'.join(_path(node.iter))}' is not a list")
        (name,) = _path(node.target)
        last = len(values)
        for index, value in enumerate(values, 1):
            loop = {"index": index, "first": index == 1, "last": index == last}
            # An empty piece for each pass, so that loops without output are counted too.
            yield ""
            yield from self._write(node.body, {**scope, name: value, "loop": loop}, show)

    def _holds(self, test: nodes.Node, scope: Mapping[str, Any]) -> bool:
        if isinstance(test, nodes.Not):
            return not self._holds(test.node, scope)
        if isinstance(test, nodes.And):
            return self._holds(test.left, scope) and self._holds(test.right, scope)
        if isinstance(test, nodes.Or):
            return self._holds(test.left, scope) or self._holds(test.right, scope)
        return bool(self._value(test, scope))

    def _value(self, node: nodes.Node, scope: Mapping[str, Any]) -> Any:
        name, *parts = _path(node)
        value = scope.get(name)
        for part in parts:
            # Only keys of plain dictionaries: an attribute of an object could be a method.
            if not isinstance(value, dict) or part not in value:
                raise self.error(node.lineno, f"'{'.'.join(_path(node))}' does not exist")
            value = value[part]
        return value

    def _check_body(self, body: list[nodes.Node], bound: frozenset[str], depth: int) -> None:
        """Raise TaskError unless all nodes are of the permitted kinds. `bound` has the variables of loops."""
        for node in body:
            if isinstance(node, nodes.Output):
                for part in node.nodes:
                    if not isinstance(part, nodes.TemplateData):
                        self._check_value(part, bound)
            elif isinstance(node, nodes.If):
                for branch in (node, *node.elif_):
                    self._check_test(branch.test, bound)
                    self._check_body(branch.body, bound, depth)
                self._check_body(node.else_, bound, depth)
            elif isinstance(node, nodes.For):
                self._check_loop(node, bound, depth)
            else:
                raise self.error(node.lineno, _SYNTAX)

    def _check_loop(self, node: nodes.For, bound: frozenset[str], depth: int) -> None:
        if node.recursive or node.test or node.else_ or not isinstance(node.target, nodes.Name):
            raise self.error(node.lineno, _SYNTAX)
        if depth == MAX_LOOPS:
            raise self.error(node.lineno, f"loops may be nested at most {MAX_LOOPS} levels deep")
        self._check_value(node.iter, bound)
        self._check_body(node.body, bound | {node.target.name, "loop"}, depth + 1)

    def _check_test(self, test: nodes.Node, bound: frozenset[str]) -> None:
        if isinstance(test, nodes.Not):
            self._check_test(test.node, bound)
        elif isinstance(test, nodes.And | nodes.Or):
            self._check_test(test.left, bound)
            self._check_test(test.right, bound)
        else:
            self._check_value(test, bound)

    def _check_value(self, node: nodes.Node, bound: frozenset[str]) -> None:
        path = _path(node)
        if not path:
            raise self.error(node.lineno, _SYNTAX)
        if path[0] not in bound:
            self.names.setdefault(path[0], self._first_line + node.lineno - 1)


def _path(node: nodes.Node) -> tuple[str, ...]:
    """Return the words of `name.part.part`, or an empty tuple if the node is any other expression."""
    if isinstance(node, nodes.Getattr):
        outer = _path(node.node)
        return (*outer, node.attr) if outer else ()
    return (node.name,) if isinstance(node, nodes.Name) else ()


def _names(test: nodes.Node) -> Iterator[nodes.Name]:
    """Return each use of a variable in a test."""
    if isinstance(test, nodes.Name):
        yield test
    yield from test.find_all(nodes.Name)


def find_present(test: nodes.Node, outcome: bool = True) -> set[str]:
    """Return the variables that are certainly present if the test has this outcome."""
    if isinstance(test, nodes.Not):
        return find_present(test.node, not outcome)
    if isinstance(test, nodes.And | nodes.Or):
        left, right = find_present(test.left, outcome), find_present(test.right, outcome)
        # `a and b` that holds needs both, and `a or b` that fails excludes both.
        return left | right if isinstance(test, nodes.And) is outcome else left & right
    return {test.name} if outcome and isinstance(test, nodes.Name) else set()


@lru_cache(maxsize=256)
def parse_template(source: str, where: str, first_line: int = 1) -> PromptTemplate:
    """Parse a template that begins on line `first_line` of the file `where`.

    Raises a TaskError that names the file and the line if the template has any other construct than the
    permitted ones.
    """
    try:
        return PromptTemplate(_PARSER.parse(source), where, first_line)
    except TemplateSyntaxError as e:
        raise TaskError(f"{where}: template, line {first_line + e.lineno - 1}: {e.message}") from e
    except (RecursionError, ValueError) as e:
        # The parser and the checks call themselves for each level, and Python refuses numbers of thousands of digits.
        raise TaskError(f"{where}: template, line {first_line}: {_SYNTAX}") from e
