"""Validate the values in a row before it becomes an item.

Each function takes a value and the name of its field. If the value is invalid, it raises a BadInput that
names the field. The function that reads the file adds the path and the line.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from judge.errors import BadInput, UsageError
from judge.files import describe_json_error, loads
from judge.importers.base import Options
from judge.types import GOLD, AnnotatorKind, Item, Passage, Vote

POLARITIES = ("original", "counter")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def kind(value: Any) -> str:
    """Return a description of a JSON value's type, for error messages."""
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return "true/false"
    names = {str: "text", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)


def record(value: Any) -> Mapping[str, Any]:
    """Return the row, or raise BadInput if it is not an object."""
    if not isinstance(value, dict):
        raise BadInput(f"a row must be an object, not {kind(value)}")
    return value


def mapping(value: Any, field: str) -> Mapping[str, Any]:
    """Return the value, which must be an object. Return {} if the value is None."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadInput(f"must be an object, not {kind(value)}", field=field)
    return value


def listing(value: Any, field: str) -> list[Any]:
    """Return the value, which must be a list. Return [] if the value is None."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadInput(f"must be a list, not {kind(value)}", field=field)
    return value


def json_in(cell: str, field: str) -> Any:
    """Return the JSON value in a table cell."""
    # Python's own parser would keep the last of two equal keys, and so drop a label without a message.
    try:
        return loads(cell)
    except (ValueError, RecursionError) as error:
        raise BadInput(describe_json_error(error), field=field) from error


def text(value: Any, field: str) -> str | None:
    """Return the value, which must be None or text that is not blank."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise BadInput(f"must be text, not {kind(value)}", field=field)
    if not value.strip():
        # A blank text would be judged like any other, and its label would count.
        raise BadInput("the text is empty", field=field)
    return value


def require_text(value: Any, field: str) -> str:
    """Return the value, which must be text that is not blank."""
    got = text(value, field)
    if got is None:
        raise BadInput("missing", field=field)
    return got


def word(value: Any, field: str) -> str | None:
    """Return an id, a date or a label as a string, or None if it is empty.

    Numbers and booleans are formatted as in JSON.
    """
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        # The format is JSON's, because Python's "True" would be a different label from "true" in the file.
        return json.dumps(value)
    raise BadInput(f"must be text or a number, not {kind(value)}", field=field)


def identifier(value: Any, field: str) -> str:
    """Return the value as a string, as `word` does, but raise BadInput if it is missing."""
    got = word(value, field)
    if got is None or not got.strip():
        raise BadInput("missing", field=field)
    return got


def texts(value: Any, field: str) -> list[str] | None:
    """Return a string or a list as a list of strings. Return None if the value is None."""
    if value is None:
        return None
    if not isinstance(value, list):
        value = [value]
    return [identifier(v, f"{field}.{n}") for n, v in enumerate(value)]


def choices(value: Any, correct: str | None) -> dict[str, str] | None:
    """Return answer options as {letter: text}. If the options are a list, they get the letters A, B, ...

    Raises BadInput if `correct` is missing or is not one of the letters.
    """
    if isinstance(value, list):
        if len(value) > len(LETTERS):
            raise BadInput(f"there are more than {len(LETTERS)} options", field="options")
        value = dict(zip(LETTERS, value, strict=False))
    options = {k: require_text(v, f"options.{k}") for k, v in mapping(value, "options").items()}
    if options and correct is None:
        raise BadInput("the correct option is not given", field="correct")
    if correct is not None and correct not in options:
        raise BadInput(f"'{correct}' is not among the options {list(options)}", field="correct")
    return options or None


def check_item(item: Item) -> Item:
    """Return the item. Raises BadInput if its parts are inconsistent. These checks apply to all formats."""
    # An item id is `dataset:source_id`, so a colon in the data set would make ids ambiguous.
    if ":" in item.dataset or not item.dataset.strip():
        raise BadInput(f"'{item.dataset}' must be a name without ':'", field="dataset")
    if item.polarity is not None and item.polarity not in POLARITIES:
        raise BadInput(f"'{item.polarity}' must be original or counter", field="polarity")
    if (item.polarity is None) != (item.pair_id is None):
        missing, other = ("pair_id", "polarity") if item.pair_id is None else ("polarity", "pair_id")
        raise BadInput(f"this field is missing, but {other} is present", field=missing)
    if item.question is None and item.claim is None and not item.passages:
        raise BadInput("the row has no question, claim or passages", field="question")
    seen: dict[str, int] = {}
    for number, passage in enumerate(item.passages):
        # The line break ensures that a text never equals an id.
        first = seen.setdefault(passage.source_id or f"\n{passage.text}", number)
        if first == number:
            continue
        if passage.source_id:
            reason = f"this passage has the id '{passage.source_id}', but passage {first} has the same id"
            raise BadInput(reason, field=f"passages.{number}.id")
        # Without an id the hash of the text is the id. Repeating a passage is harmless, but two passages with equal texts
        # and different titles or labels would silently become one.
        if _get_other_fields(passage) != _get_other_fields(item.passages[first]):
            reason = f"this passage has the same text as passage {first}, but a different title, date, source or label; give both passages ids"
            raise BadInput(reason, field=f"passages.{number}.text")
    return item


def _get_other_fields(passage: Passage) -> tuple[Any, ...]:
    return passage.title, passage.date, passage.source, passage.votes


class Labels:
    """Applies --map-label to the labels in a file, and records which entries had an effect."""

    def __init__(self, options: Options) -> None:
        for field, names in options.label_maps.items():
            for old, new in names.items():
                # An ambiguous suggestion lists all labels, as in A|B. Pasted unchanged, it would become a label.
                if "|" in new:
                    raise UsageError(
                        f"--map-label {field}:{old}={new}: choose one of {new.replace('|', ', ')}"
                    )
        self._maps = options.label_maps
        self._note: Callable[[str], None] = options.note
        self._idle = {(f, old) for f, m in options.label_maps.items() for old in m}

    def value(self, field: str, raw: Any, where: str) -> str | None:
        """Return the label as a string after applying --map-label, or None if there is no label."""
        got = word(raw, where)
        if got is None or field not in self._maps:
            return got
        # An entry without effect is usually a typing error, so it is reported at the end.
        self._idle.discard((field, got))
        return self._maps[field].get(got, got)

    def read_one_of(self, field: str, raw: Any, where: str, known: Mapping[str, str]) -> str | None:
        """Return a label of a format with fixed labels, or None if the value is missing.

        `known` maps the format's labels to ours. Files and --map-label may also use our labels. Raises
        BadInput if the label is unknown.
        """
        got = word(raw, where)
        if got is None or got in self._maps.get(field, {}):
            return self.value(field, got, where)
        ours = known.get(got, got)
        if ours not in known.values():
            raise BadInput(f"'{got}' is not one of {', '.join(known)}", field=where)
        return self.value(field, ours, where)

    def read_fixed(self, field: str, raw: Any, where: str, known: Mapping[str, str]) -> Iterator[Vote]:
        """Yield a gold vote with the label from `read_one_of`, or nothing if there is no label."""
        value = self.read_one_of(field, raw, where, known)
        if value is not None:
            yield Vote(field, value)

    def gold(self, field: str, raw: Any, where: str) -> Iterator[Vote]:
        """Yield the label as a gold vote, or nothing if it is missing."""
        value = self.value(field, raw, where)
        if value is not None:
            yield Vote(field, value)

    def people(self, field: str, raw: Any, where: str) -> Iterator[Vote]:
        """Yield the votes in an object {annotator: label}."""
        for name, label in mapping(raw, where).items():
            # If a person had the reserved name of the gold annotator, that person's labels would become gold
            # labels.
            if not name.strip() or name == GOLD:
                raise BadInput(f"'{name}' cannot be an annotator's name", field=where)
            value = self.value(field, label, f"{where}.{name}")
            if value is not None:
                yield Vote(field, value, name, AnnotatorKind.HUMAN)

    def finish(self) -> None:
        """Issue a note for each --map-label entry that had no effect."""
        for field, old in sorted(self._idle):
            self._note(
                f"--map-label {field}:{old}=... had no effect, because no row has the label '{old}' "
                f"for {field}"
            )


def decode_votes(cell: Any, name: str) -> Any:
    """Return a cell of the column `votes.NAME`: an object {annotator: label}, or one annotator's label as it is."""
    is_label = "." in name and not (isinstance(cell, str) and cell.lstrip().startswith("{"))
    if not isinstance(cell, str) or is_label:
        return cell
    return json_in(cell, f"votes.{name}") if cell else None


def nest_votes(votes: Mapping[str, Any]) -> dict[str, Any]:
    """Return votes by field: {field: {annotator: label}}.

    A column may also have one annotator's labels and the name `FIELD.ANNOTATOR`. A field's name may have dots too, so only a
    column whose value is no object ends with an annotator.

    Raises BadInput if a person has two votes for a field.
    """
    nested: dict[str, Any] = {}
    for name, value in votes.items():
        field, dot, person = name.rpartition(".")
        if not dot or value in (None, "") or isinstance(value, dict):
            field, people = name, value
        else:
            people = {person: value}
        before = nested.get(field)
        if not isinstance(before, dict) or not isinstance(people, dict):
            nested[field] = before if people in (None, "") else people
        elif twice := before.keys() & people.keys():
            raise BadInput(f"'{min(twice)}' has two votes for the field", field=f"votes.{name}")
        else:
            nested[field] = {**before, **people}
    return nested


def refuse_maps(name: str, options: Options) -> None:
    """Raise UsageError if --map is used with a format whose columns are fixed."""
    if options.maps:
        first = next(iter(options.maps))
        raise UsageError(
            f"--map {first}=... cannot be used with the {name} format, whose columns are fixed; it works "
            "with jsonl and csv"
        )
