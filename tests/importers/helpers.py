"""Reading files in tests: items, what was bad, what was noted, labels counted."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from judge.errors import BadInput
from judge.importers import base
from judge.types import Item, Where


@dataclass
class Loaded:
    """The outcome of one read with bad rows skipped."""

    items: list[Item] = field(default_factory=list)
    wheres: list[Where] = field(default_factory=list)
    bads: list[BadInput] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def places(self) -> list[tuple[str, int, str]]:
        """(file name, line, field) of each bad row."""
        return [(Path(b.path).name, b.line, b.field) for b in self.bads]

    def gold(self, field_name: str) -> Counter[str]:
        """Gold labels of a field, of items and passages, counted."""
        votes = [v for i in self.items for v in i.votes]
        votes += [v for i in self.items for p in i.passages for v in p.votes]
        return Counter(v.value for v in votes if v.field == field_name and v.annotator == "gold")

    @property
    def passages(self) -> int:
        return sum(len(i.passages) for i in self.items)


def load(
    name: str,
    *paths: Path,
    maps: Mapping[str, str] | None = None,
    label_maps: Mapping[str, Mapping[str, str]] | None = None,
    dataset: str | None = None,
) -> Loaded:
    """Read files; bad rows are collected, as with --skip-bad."""
    loaded = Loaded()
    options = base.Options(dataset, maps or {}, label_maps or {}, loaded.notes.append)
    for row in base.get(name).read_rows(list(paths), options, loaded.bads.append):
        loaded.items.append(row.item)
        loaded.wheres.append(row.where)
    return loaded


def write(path: Path, text: str | bytes) -> Path:
    """A file as given."""
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path
