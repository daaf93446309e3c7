"""Convert a Label Studio annotation to a response: its answers, evidence, note and annotator.

Regions are checked here too, because Label Studio's SDK may not be installed.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from annotate.exchange.base import Inputs
from annotate.exchange.label_studio.config import EVIDENCE, MARK, NOTE, ConfigLayout
from annotate.exchange.label_studio.server import User
from annotate.exchange.label_studio.tasks import input_text
from annotate.exchange.proof import TextOfRecord, Unproven
from annotate.exchange.responses import Response
from annotate.exchange.values import read_number, read_time, text_of
from judge.errors import BadInput
from judge.prompts.spec import Question
from judge.store.study import dumps
from judge.types import Where

Span = tuple[str, int, int]


@dataclass(slots=True)
class Marked:
    """The parsed `result` of one annotation. `problems` names the regions that cannot be imported."""

    answers: dict[str, str] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    note: str | None = None
    problems: list[str] = field(default_factory=list)


def read_result(layout: ConfigLayout, result: Any, text: str) -> Marked:
    """Parse the regions of one annotation. `text` is the main input as Label Studio showed it.

    Raises BadInput, naming the control, if a control, type, label or number does not belong to the task, or
    if one question has two answers.
    """
    if not isinstance(result, list):
        raise BadInput("must be a list of regions", field="result")
    out = Marked()
    for number, region in enumerate(result, 1):
        if not isinstance(region, Mapping):
            raise BadInput(f"region {number} must be an object", field="result")
        if region.get("type") == "relation":
            out.problems.append(
                f"region {number}: left out, because tasks do not support relations between spans"
            )
            continue
        name, value = region.get("from_name"), region.get("value")
        if not isinstance(name, str) or not isinstance(value, Mapping):
            raise BadInput(f"region {number} needs from_name (text) and value (an object)", field="result")
        if name == EVIDENCE and layout.evidence:
            _need_type(region, "labels", name)
            _add_span(layout, value, text, number, out)
        elif name == NOTE:
            _need_type(region, "textarea", name)
            texts = [t.strip() for t in _texts(value, name) if t.strip()]
            out.note = "\n".join(filter(None, [out.note, *texts])) or None
        elif name in layout.fields:
            _add_answer(layout.fields[name], region, value, out)
        else:
            known = ", ".join([*layout.fields, EVIDENCE, NOTE])
            raise BadInput(f"the task has no such control; available: {known}", field=name)
    out.spans = sorted(set(out.spans))
    return out


def _need_type(region: Mapping[str, Any], wanted: str, name: str) -> None:
    if region.get("type") != wanted:
        raise BadInput(f"type is '{region.get('type')}', but must be '{wanted}'", field=name)


def _add_answer(question: Question, region: Mapping[str, Any], value: Mapping[str, Any], out: Marked) -> None:
    name = question.field
    if question.level == "interval":
        _need_type(region, "number", name)
        number = value.get("number")
        if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
            raise BadInput(f"value.number is {number!r}, but must be a number", field=name)
        # Labels are compared as text, and 2 and 2.0 are the same answer.
        answer = dumps(int(number) if float(number).is_integer() else number)
    elif question.level == "text":
        _need_type(region, "textarea", name)
        texts = _texts(value, name)
        answer = dumps(texts) if question.many else "\n".join(texts)
    else:
        _need_type(region, "choices", name)
        choices = value.get("choices")
        if not isinstance(choices, list) or len(choices) != 1:
            raise BadInput(f"value.choices is {choices!r}, but must be a list with one label", field=name)
        answer = text_of(choices[0], name)
    if name in out.answers:
        raise BadInput("there are two answers to this question", field=name)
    out.answers[name] = answer


def _texts(value: Mapping[str, Any], name: str) -> list[str]:
    texts = value.get("text")
    if isinstance(texts, str):
        texts = [texts]
    if not isinstance(texts, list) or not all(isinstance(t, str) for t in texts):
        raise BadInput("value.text must be a string or a list of strings", field=name)
    return texts


def _add_span(layout: ConfigLayout, value: Mapping[str, Any], text: str, number: int, out: Marked) -> None:
    start, end, labels = value.get("start"), value.get("end"), value.get("labels")
    if labels != [MARK]:
        raise BadInput(f"value.labels is {labels!r}, but must be ['{MARK}']", field=EVIDENCE)
    start, end = _offset(start), _offset(end)
    if start is None or end is None:
        raise BadInput("value.start and value.end must be whole numbers", field=EVIDENCE)
    said = value.get("text")
    place = find_span(text, start, end, said if isinstance(said, str) else None)
    if place is None:
        expected = f"'{said[:60]}'" if isinstance(said, str) else "its words"
        out.problems.append(
            f"region {number} ({EVIDENCE}): {start} to {end} of the {len(text)} code points of {layout.main} are not {expected}, so the span is left out"
        )
    else:
        out.spans.append((layout.main, *place))


def _offset(value: Any) -> int | None:
    # Older versions of Label Studio write offsets as text.
    # Python refuses to convert a text of thousands of digits, and no text is so long.
    if isinstance(value, str) and value.isdecimal() and len(value) < 20:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def find_span(text: str, start: int, end: int, said: str | None) -> tuple[int, int] | None:
    """Return the span in code points, or None if it does not contain the text `said`.

    `start` and `end` may count code points or UTF-16 units. If `said` is None, they must be code points within
    `text`.
    """
    if said is None:
        return (start, end) if 0 <= start < end <= len(text) else None
    wanted = said.split()
    if 0 <= start < end <= len(text) and text[start:end].split() == wanted:
        return start, end
    # The page of server 1.23 counts code points, but other programs that write this format count UTF-16 units.
    # A text may contain half of a surrogate pair, which UTF-16 would otherwise reject.
    units = text.encode("utf-16-le", "surrogatepass")
    if not 0 <= 2 * start < 2 * end <= len(units):
        return None
    try:
        first = len(units[: 2 * start].decode("utf-16-le"))
        inside = units[2 * start : 2 * end].decode("utf-16-le")
    except UnicodeDecodeError:
        # The offset is inside a character.
        return None
    return (first, first + len(inside)) if inside.split() == wanted else None


def user_id(value: Any) -> Any:
    """Return the id of a user. An annotation names its users by id, or by an object with `id`, `email` and `username`."""
    return value.get("id", value.get("email")) if isinstance(value, Mapping) else value


def read_user(value: Any) -> User:
    """Return the user of a value of `completed_by` or `updated_by`."""
    named = value if isinstance(value, Mapping) else {"email" if "@" in str(value) else "id": value}
    email, username = (str(named.get(key) or "") for key in ("email", "username"))
    return User(user_id(value), email, username)


@dataclass(slots=True)
class Reader:
    """Converts the annotations for one task file to responses."""

    layout: ConfigLayout
    inputs: Inputs
    author: Callable[[Any], str]
    """Return the annotator for a value of `completed_by`. Raises BadInput if the value has no annotator."""
    name_user: Callable[[Any], str]
    """Return the name of any user of the server, who may be no annotator."""

    def response(
        self,
        annotation: Any,
        unit: str,
        *,
        blind: bool | None,
        where: Where,
        data: Mapping[str, Any],
        source: str = "",
    ) -> Response:
        """Return the response. Raises BadInput, which names the field, if the annotation is unusable."""
        if not isinstance(annotation, Mapping):
            raise BadInput("must be an object", field="annotations")
        inputs = self.inputs(unit)
        if inputs is None:
            raise BadInput(f"unit '{unit}' is not in the batch", field="adjudge_unit_id")
        result = annotation.get("result")
        marked = read_result(self.layout, result, input_text(inputs.get(self.layout.main)))
        skipped = annotation.get("was_cancelled") or False
        if not isinstance(skipped, bool):
            raise BadInput("must be true or false", field="was_cancelled")
        doubt = None
        try:
            who = self.author(annotation.get("completed_by"))
        except Unproven as e:
            who, doubt = e.who, (e.code, e.reason)
        return Response(
            unit=unit,
            annotator=who,
            answers={} if skipped else marked.answers,
            spans=None if skipped else marked.spans,
            skipped=skipped,
            note=marked.note,
            seconds=read_number(annotation, "lead_time"),
            at=read_time(annotation, "updated_at", "created_at"),
            # An annotation that was made from a prediction is not blind, even if the predictions were deleted
            # later.
            blind=False if _from_prediction(annotation) else blind,
            where=where,
            # Anybody with access to the server can edit the data of a task, so an empty text is compared as well.
            shown=TextOfRecord({name: data.get(name, "") for name in self.layout.inputs}),
            # A server's record has an address of its own.
            user="" if source else str(read_user(annotation.get("completed_by"))),
            edited_by=self._find_editor(annotation),
            problems=marked.problems,
            doubt=doubt,
            source=source,
        )

    def _find_editor(self, annotation: Mapping[str, Any]) -> str | None:
        """Return the name of the user who edited an annotation last, or None if this is the user who created it."""
        # In the free edition of Label Studio, every user can edit every annotation, which keeps its author.
        author, editor = annotation.get("completed_by"), annotation.get("updated_by")
        if editor is None or user_id(editor) == user_id(author):
            return None
        return self.name_user(editor)


def _from_prediction(annotation: Mapping[str, Any]) -> bool:
    """Return whether an annotation says that it was made from a prediction."""
    result = annotation.get("result")
    regions = [r for r in result if isinstance(r, Mapping)] if isinstance(result, list) else []
    # Regions that were copied from a prediction have the origin "prediction" or "prediction-changed".
    return bool(annotation.get("parent_prediction") or annotation.get("prediction")) or any(
        str(r.get("origin", "")).startswith("prediction") for r in regions
    )


class Authors:
    """Maps the users of a server or of its export to annotators.

    `given` maps users by e-mail, user name or id. Any other user is mapped to the person whose name is the user's
    e-mail, the user name, or the part of the e-mail before the @. If `people` is None, all people are known by that
    part. If two users match the same annotator, neither is mapped. `option` is the option that maps a user.
    """

    def __init__(
        self, users: Sequence[User], given: Mapping[str, str], people: Sequence[str] | None, option: str
    ) -> None:
        self._people, self._users, self._option = people, users, option
        declared = {user: _get_declared_name(user, given) for user in users}
        guessed = {user: self._guess(user) for user in users if not declared[user]}
        matches = Counter(guessed.values())
        self._names: dict[User, str] = {user: name for user, name in declared.items() if name}
        # If two users are called alice, a guess could assign the labels of one to the other.
        self._names |= {
            user: name
            for user, name in guessed.items()
            if name and matches[name] == 1 and name not in declared.values()
        }

    def _guess(self, user: User) -> str | None:
        if self._people is None:
            return user.email.partition("@")[0] or None
        return next((name for name in list_names(user) if name in (self._people or ())), None)

    def _find(self, value: Any) -> User:
        """Return the user of a value of `completed_by`. An e-mail identifies a user better than an id, because the exports
        of two servers may be in one file.
        """
        named = read_user(value)
        same = [u for u in self._users if (u.email == named.email if named.email else u.id == named.id)]
        return same[0] if len(same) == 1 else named

    def find_author(self, completed_by: Any) -> str:
        """Return the annotator. Raises Unproven for a user who is not an annotator of the batch."""
        user = self._find(completed_by)
        name = self._names.get(user)
        if name is None:
            known = (
                "an annotator"
                if self._people is None
                else f"one of the batch's annotators ({', '.join(self._people)})"
            )
            reason = f"{user} is not {known}, or another user has the same name"
            key = user.email or user.username or user.id
            raise Unproven(
                "person",
                f"{reason}: map the user with {self._option}{key}=NAME",
                field="completed_by",
                who=str(user),
            )
        return name

    def name_user(self, user: Any) -> str:
        """Return the annotator for a user or, for any other user, the e-mail, user name or id."""
        known = self._find(user)
        return self._names.get(known) or str(known)


def list_names(user: User) -> list[str]:
    """Return the names by which a user can be mapped."""
    return [n for n in (user.email, user.username, user.email.partition("@")[0], str(user.id)) if n]


def _get_declared_name(user: User, given: Mapping[str, str]) -> str | None:
    return next((given[n] for n in (user.email, user.username, str(user.id)) if n in given), None)
