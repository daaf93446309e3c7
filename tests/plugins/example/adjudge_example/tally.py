"""`tally`: how often each label of a batch was given, as text."""

from collections import Counter
from collections.abc import Mapping

from annotate.exchange.base import Export, Out

NAME = "tally"
HELP = "how often each label was given (--labels)"
WRITES = "file"


def write(export: Export, out: Out, options: Mapping[str, str]) -> None:
    """One line a label, the commonest first."""
    counts = Counter(value for response in export.responses() for value in response.answers.values())
    with out.open() as file:
        file.writelines(f"{label}\t{n}\n" for label, n in counts.most_common())
    out.rows[out.path.name] = len(counts)
