"""The registry: every format is found, complete and named in errors."""

import pytest

from judge.errors import UsageError
from judge.importers import base

FORMATS = [
    "beir",
    "claim-pairs",
    "csv",
    "garage",
    "jsonl",
    "langfuse",
    "langsmith",
    "mirage",
    "otlp",
    "phoenix",
    "raguard",
    "scifact",
    "trec",
    "urag",
]


def test_names() -> None:
    assert base.names() == FORMATS


@pytest.mark.parametrize("name", FORMATS)
def test_each_says_what_it_is(name: str) -> None:
    module = base.get(name)
    assert (module.NAME, bool(module.HELP)) == (name, True)
    together = ("beir", "langfuse", "langsmith", "mirage", "otlp", "phoenix", "raguard", "scifact", "trec")
    assert getattr(module, "TOGETHER", False) == (name in together)


def test_unknown_format() -> None:
    with pytest.raises(UsageError, match="no format 'xml'; available formats: beir, claim-pairs, csv,"):
        base.get("xml")
