"""`lines`: a text file with a question a line; what follows a bar is a passage."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from judge.errors import BadInput
from judge.importers.base import Bad, Options, Row
from judge.types import Item, Passage, Where

NAME = "lines"
HELP = "a question a line, its passages after bars"


def read_rows(paths: Sequence[Path], options: Options, bad: Bad) -> Iterator[Row]:
    """One item a line; a line without a passage is bad."""
    for path in paths:
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            question, *passages = (part.strip() for part in line.split("|"))
            if not passages:
                bad(BadInput("a question without a passage", path=str(path), line=number))
                continue
            item = Item(source_id=str(number), dataset=options.dataset or path.stem, question=question)
            item.passages = [Passage(text) for text in passages]
            yield Row(item, Where(str(path), number))
