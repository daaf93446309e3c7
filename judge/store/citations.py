"""What the citations of an answer stand for: names in the text or the file to passages of the study."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from judge.store.inputs import marked, passages
from judge.text import markers


class Citable:
    """The passages that an answer to one item can cite: those of its context, or, where that is not
    known, all of the item's."""

    def __init__(self, conn: sqlite3.Connection, item_id: str, context: Sequence[str] | None = None) -> None:
        query = "SELECT passage_id FROM passages WHERE item_id = ? ORDER BY position"
        own = [row[0] for row in conn.execute(query, [item_id]) if context is None or row[0] in context]
        self._own = {pid.removeprefix(f"{item_id}/"): pid for pid in own}
        given = own if context is None else list(context)
        item_of: Mapping[str, str] = dict.fromkeys(own, item_id)
        if context is not None:
            item_of = {**item_of, **{p: str(v["item_id"]) for p, v in passages(conn, given).items()}}
        self._ids = set(item_of)
        self._shown = marked(given, item_of)
        self._given = given

    @property
    def known(self) -> set[str]:
        """The names that a bracket in the text may hold beside numbers."""
        return {*self._own, *self._shown}

    def find(self, name: str) -> str | None:
        """The passage that a citation means, None when there is none.

        In this order: the marker it was shown with, its own id, the same with or without `cite_`,
        its place (from 1), its full id.
        """
        name = name.strip().removeprefix("[").removesuffix("]")
        bare = name.lower().removeprefix("cite_")
        for key in (name, bare, f"cite_{bare}"):
            if (found := self._shown.get(key) or self._own.get(key)) is not None:
                return found
        if bare.isdecimal() and len(bare) < 6 and 1 <= int(bare) <= len(self._given):
            return self._given[int(bare) - 1]
        return name if name in self._ids else None

    def in_text(self, text: str) -> tuple[list[str], list[str]]:
        """(passages that the markers of a text cite, markers that stand for none), each once, in order."""
        cited: dict[str, None] = {}
        unknown: dict[str, None] = {}
        for marker in markers(text, self.known):
            for name in marker.ids:
                found = self.find(name)
                if found is None:
                    unknown[name] = None
                else:
                    cited[found] = None
        return list(cited), list(unknown)
