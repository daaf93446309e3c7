"""Who of a batch's annotators the users of a server are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from annotate.exchange.label_studio.server import User
from annotate.exchange.proof import Unproven
from annotate.sitting.desk import BatchInfo
from annotate.sitting.standing import people_of
from judge.errors import UsageError
from judge.store import Store


class Authors:
    """A user is who `given` says (by e-mail, user name or id), else the annotator of the batch with the same
    e-mail, user name, or name before the @ of the e-mail, unless two users have that name, or somebody else was said to be that annotator."""

    def __init__(
        self, store: Store, info: BatchInfo, users: Mapping[int, User], given: Mapping[str, str]
    ) -> None:
        """Raises UsageError for a name in `given` that no user has."""
        self._people = people_of(store.conn, info.batch)
        self._users = users
        for name in given:
            if users and not any(name in _names(u) for u in users.values()):
                known = ", ".join(str(u) for u in users.values())
                raise UsageError(f"--annotator {name}={given[name]}: no such user there; there are: {known}")
        told = {number: _told(user, given) for number, user in users.items()}
        guessed = {number: self._guess(user) for number, user in users.items() if not told[number]}
        taken = Counter(guessed.values())
        self._found: dict[Any, str] = {number: name for number, name in told.items() if name}
        self._found |= {
            number: name
            for number, name in guessed.items()
            if name and taken[name] == 1 and name not in told.values()
        }

    def _guess(self, user: User) -> str | None:
        return next((name for name in _names(user) if name in self._people), None)

    def of(self, completed_by: Any) -> str:
        """The annotator. Raises Unproven for a user who is none of the batch's."""
        number = completed_by.get("id") if isinstance(completed_by, Mapping) else completed_by
        name = self._found.get(number)
        if name is None:
            user = self._users.get(number) if isinstance(number, int) else None
            who = (user.email or user.username or number) if user else number
            raise Unproven(
                "person",
                f"{who} is none of the batch's annotators ({', '.join(self._people)}): "
                f"say who that is with --annotator {who}=NAME",
                field="completed_by",
                who=str(who),
            )
        return name


def _names(user: User) -> list[str]:
    return [n for n in (user.email, user.username, user.email.partition("@")[0], str(user.id)) if n]


def _told(user: User, given: Mapping[str, str]) -> str | None:
    return next((given[n] for n in (user.email, user.username, str(user.id)) if n in given), None)
