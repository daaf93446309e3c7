"""Read system answers from JSON Lines, a JSON array or CSV, for `judge systems import`.

`judge items import` does not accept this format.

    {"id": "q1",                                the item's id, with or without its data set
     "system": "gpt-4", "condition": "top5",    per row, or for the whole file with --system, --condition
     "document": "p1",                          the only passage that the system saw (RAGuard's oracle)
     "text": "Paris [1].",                      the answer; may be empty, a number or true/false
     "cited": ["p2", "cite_3"],                 default: the citation markers in the text
     "context": ["p1", "p2"],                   the passages that the system saw, in order; default: unknown
     "claims": ["text" or {"text", "gold", "votes"}],
     "probabilities": {"A": 0.7, "B": 0.3},     one per option of a multiple-choice question (URAG); if
                                                `text` is missing, the most probable letter is used
     "gold": {"FIELD": "label"}, "votes": {"FIELD": {"ANNOTATOR": "label"}},
     "meta": {...}}                             other strings and numbers are kept in `meta`, other lists are dropped

A row may also contain several answers under the key "answers": either {SYSTEM: "text" or an object as above
without id}, or a list of such objects with a "system" each. `--map` reads a key from another path
(`answers=model_outputs`, or `answers.text=output` within the elements). In a CSV cell, a list is written as
JSON, or its elements are separated by `;`.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from judge.errors import BadInput, UsageError
from judge.files import loads
from judge.importers import fields
from judge.importers.base import Bad, Options
from judge.importers.paths import MISSING, describe_unmet, follow, remove_paths
from judge.importers.records import Records, build_all, table_or_json
from judge.types import DEFAULT_CONDITION, Answer, AnswerRow, Claim, Vote

KEYS = (
    "id",
    "system",
    "condition",
    "text",
    "cited",
    "context",
    "claims",
    "meta",
    "gold",
    "votes",
    "probabilities",
    "document",
    "model",
)
_BRACKETS = re.compile(r"\[([^\[\]]+)\]")


def read_answers(
    path: Path, options: Options, system: str | None, condition: str | None, bad: Bad
) -> Iterator[AnswerRow]:
    """Yield the answers in one file. Raises UsageError if a --map names an unknown key, or a path that no row
    has.
    """
    records, is_table = table_or_json(path, bad)
    yield from read_records(records, options, system, condition, is_table, bad)


def read_records(
    records: Records, options: Options, system: str | None, condition: str | None, cells: bool, bad: Bad
) -> Iterator[AnswerRow]:
    """Yield the answers in `records`. Raises the same errors as `read_answers`.

    If `cells` is True, the records are table rows, in which lists are written as text.
    """
    reader = AnswerReader(options, system, condition, cells)
    for answer, where in build_all(records, reader.answers, bad):
        yield AnswerRow(answer, where)
    reader.finish(records.path)


ROUNDING = 0.005
"""The largest change that rounding to two decimals can make to a probability."""


class AnswerReader:
    """Turns the rows of one file into answers. Call `answers` for each row and `finish` once at the end."""

    def __init__(self, options: Options, system: str | None, condition: str | None, cells: bool) -> None:
        allowed = {*KEYS, "answers", *(f"answers.{key}" for key in KEYS if key != "id")}
        for name, where in options.maps.items():
            group = name.removeprefix("answers.").partition(".")
            if name not in allowed and not (group[0] in ("gold", "votes") and group[2]):
                raise UsageError(
                    f"--map {name}={where}: '{name}' is not a key of an answer; available keys: "
                    f"{', '.join([*KEYS, 'answers'])}, answers.KEY, gold.FIELD, votes.FIELD"
                )
            if not where:
                raise UsageError(f"--map {name}=: the path is empty")
        self._maps = options.maps
        self._system, self._condition, self._cells = system, condition, cells
        self._labels = fields.Labels(options)
        self._met: set[str] = set()
        self._first: list[str] | None = None
        self._n_texts = 0

    def answers(self, raw: Any) -> list[Answer]:
        """Return the answers in one row. Raises a BadInput that names the field if a value is unusable."""
        row = fields.record(raw)
        if self._first is None:
            self._first = list(row)
            self._check_columns(row)
        item = fields.identifier(self._value(row, "id"), "id")
        several = self._value(row, "answers")
        # A cell of a table can contain an object only as text.
        if self._cells and isinstance(several, str):
            several = fields.json_in(several, "answers")
        if several is None:
            return [self._answer(row, item, "", None)]
        if isinstance(several, Mapping):
            named = [(str(name), value) for name, value in several.items()]
        elif isinstance(several, list):
            named = [("", value) for value in several]
        else:
            raise BadInput(f"must be an object or a list, not {fields.kind(several)}", field="answers")
        out = []
        for place, (name, value) in enumerate(named):
            if not isinstance(value, str | Mapping | None):
                reason = f"must be text or an object, not {fields.kind(value)}"
                raise BadInput(reason, field=f"answers.{name or place}")
            out.append(self._answer("" if value is None else value, item, "answers.", name or None))
        return out

    def finish(self, path: Path) -> None:
        """Raise UsageError if no row has the path given in a --map option, and BadInput if no row has a text.

        Report label maps that had no effect.
        """
        # Known only after the last row, because a path may be in one row alone.
        unmet = {name: where for name, where in self._maps.items() if where not in self._met}
        if self._first is not None and unmet:
            raise UsageError(f"{path}: {describe_unmet(unmet, self._first)}")
        # A key that no row has is more likely a wrong name than a system that never answers.
        if self._first is not None and not self._n_texts:
            keys = ", ".join(self._first)
            raise BadInput(
                f"no row has the text of an answer; its keys are: {keys}", path=str(path), field="text"
            )
        self._labels.finish()

    def _check_columns(self, row: Mapping[str, Any]) -> None:
        """Raise BadInput if columns are missing. The error names all the missing columns."""
        several = "answers" in row or any(name.startswith("answers") for name in self._maps)
        several = several or "probabilities" in row or "probabilities" in self._maps
        wanted = [
            "id",
            *([] if several else ["text", *([] if self._system or "model" in row else ["system"])]),
        ]
        missing = [name for name in wanted if name not in row and name not in self._maps]
        if missing:
            # All of them in one message, with the options to type, so that one more try is enough.
            names = " ".join(f"--map {name}=COLUMN" for name in missing)
            reason = f"the row has no {', '.join(missing)}: {names}; its keys are: {', '.join(row)}"
            if "text" in missing:
                reason += '; option probabilities must be in one column named probabilities, for example {"A": 0.7, "B": 0.3}'
            raise BadInput(reason, field=missing[0])

    def _answer(self, value: str | Mapping[str, Any], item: str, prefix: str, system: str | None) -> Answer:
        source = {} if isinstance(value, str) else value

        def get(name: str) -> Any:
            return self._value(source, name, prefix)

        body = value if isinstance(value, str) else get("text")
        masses = self._masses(get("probabilities"), f"{prefix}probabilities")
        if body is None and masses:
            body = max(masses, key=lambda letter: masses[letter])
        if isinstance(body, bool | int | float):
            # pandas turns such a column of a CSV file into booleans or numbers.
            body = fields.word(body, f"{prefix}text")
        self._n_texts += body is not None
        # An absent or empty text is an answer without words: the system failed, which must count in its scores.
        body = "" if body is None else body
        if not isinstance(body, str):
            raise BadInput(f"must be text, not {fields.kind(body)}", field=f"{prefix}text")
        listed = get("claims")
        claims = self._claims(listed, f"{prefix}claims")
        meta = self._meta(source, prefix, get("meta"))
        if listed is not None and not claims:
            # An empty list says that the answer makes no claim, so nobody needs to decompose it.
            meta = {**meta, "claims": []}
        return Answer(
            item=item,
            system=system
            or fields.identifier(get("system") or self._system or get("model"), f"{prefix}system"),
            condition=fields.word(get("condition") or self._condition, f"{prefix}condition")
            or DEFAULT_CONDITION,
            text=body,
            cited=_names(get("cited"), f"{prefix}cited"),
            context=_names(get("context"), f"{prefix}context"),
            claims=claims,
            # Letters have no sentences that could be judged.
            prose=not masses,
            meta=meta | ({"probabilities": masses} if masses else {}),
            votes=self._votes(source, prefix),
            document=fields.word(get("document"), f"{prefix}document"),
        )

    def _value(self, source: Mapping[str, Any], name: str, prefix: str = "") -> Any:
        where = self._maps.get(f"{prefix}{name}")
        if where is None:
            value = source.get(name)
        else:
            value = follow(source, where)
            # A key may be absent in some rows; only a path that no row has is an error (`finish`).
            if value is MISSING:
                return None
            self._met.add(where)
        # An empty text is an answer without words, not a missing value.
        return None if self._cells and value == "" and name != "text" else value

    def _votes(self, source: Mapping[str, Any], prefix: str) -> list[Vote]:
        votes: list[Vote] = []
        for group, read_votes in (("gold", self._labels.gold), ("votes", self._labels.people)):
            value = self._value(source, group, prefix)
            labels = dict(
                fields.mapping(fields.json_in(value, group) if isinstance(value, str) else value, group)
            )
            labels |= {k.removeprefix(f"{group}."): v for k, v in source.items() if k.startswith(f"{group}.")}
            for name in self._maps:
                if name.startswith(f"{prefix}{group}."):
                    key = name.removeprefix(prefix)
                    labels[key.removeprefix(f"{group}.")] = self._value(source, key, prefix)
            if group == "votes":
                labels = fields.nest_votes(
                    {name: fields.decode_votes(value, name) for name, value in labels.items()}
                )
            for name, value in labels.items():
                votes += read_votes(name, value, f"{prefix}{group}.{name}")
        return votes

    def _claims(self, value: Any, place: str) -> list[Claim]:
        claims = []
        if self._cells and isinstance(value, str):
            value = fields.json_in(value, place)
        for number, entry in enumerate(fields.listing(value, place)):
            entry = {"text": entry} if isinstance(entry, str) else fields.mapping(entry, f"{place}.{number}")
            text = fields.require_text(entry.get("text"), f"{place}.{number}.text")
            votes: list[Vote] = []
            for name, label in fields.mapping(entry.get("gold"), f"{place}.{number}.gold").items():
                votes += self._labels.gold(name, label, f"{place}.{number}.gold.{name}")
            for name, labels in fields.mapping(entry.get("votes"), f"{place}.{number}.votes").items():
                votes += self._labels.people(name, labels, f"{place}.{number}.votes.{name}")
            claims.append(Claim(text, tuple(votes)))
        return claims

    def _masses(self, value: Any, place: str) -> dict[str, float]:
        """Return the option probabilities, keyed by letter.

        Each probability must be at least 0, and their sum must be above 0 and at most 1.

        If rounding to two decimals has made the sum slightly larger than 1, the probabilities are divided by
        their sum.
        """
        if self._cells and isinstance(value, str):
            value = fields.json_in(value, place)
        masses = {}
        for letter, mass in fields.mapping(value, place).items():
            if isinstance(mass, bool) or not isinstance(mass, int | float) or not 0 <= mass <= 1:
                raise BadInput("must be a number from 0 to 1", field=f"{place}.{letter}")
            masses[letter] = float(mass)
        total = sum(masses.values())
        if masses and not 0 < total <= 1 + ROUNDING * len(masses) + 1e-9:
            raise BadInput(
                f"the probabilities sum to {total:.9g}; the sum must be above 0 and at most 1", field=place
            )
        if total > 1:
            # Conformal sets add up probabilities, and would otherwise pass 1 before the last option.
            masses = {letter: mass / total for letter, mass in masses.items()}
        return masses

    def _meta(self, source: Mapping[str, Any], prefix: str, row_meta: Any) -> dict[str, Any]:
        """Return the strings, numbers and booleans in the row that were not used for a known key or a map.

        If the row has a `meta` object, its values are added and take precedence.
        """
        used = {*KEYS, "answers"} - {k.removeprefix(prefix) for k in self._maps if k.startswith(prefix)}
        left = {k: v for k, v in source.items() if k not in used and not k.startswith(("gold.", "votes."))}
        paths = [where for name, where in self._maps.items() if name.startswith(prefix)]
        rest = {
            k: v for k, v in remove_paths(left, paths).items() if v != "" and not isinstance(v, dict | list)
        }
        named = fields.json_in(row_meta, "meta") if isinstance(row_meta, str) else row_meta
        return {**rest, **(named if isinstance(named, dict) else {} if named is None else {"meta": named})}


def _names(value: Any, place: str) -> list[str] | None:
    """Return the passage ids in a list, or in a text such as `["a"]`, `[1][2]` or `a; b`.

    Return None if the value is missing.
    """
    if not isinstance(value, str):
        return None if value is None else fields.texts(value, place)
    if value.lstrip().startswith("["):
        try:
            # `[1][2]` and `[cite_3, cite_5]` begin like JSON and are none.
            cited = loads(value)
        except (ValueError, RecursionError):
            return [n.strip() for inside in _BRACKETS.findall(value) for n in inside.split(",") if n.strip()]
        return fields.texts(cited, place)
    return [n.strip() for n in value.split(";") if n.strip()]
