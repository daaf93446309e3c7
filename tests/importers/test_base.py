"""The registry: every format is found, complete and named in errors."""

import pytest

from judge.errors import UsageError
from judge.importers import base


@pytest.mark.parametrize("name", base.names())
def test_each_says_what_it_is(name: str) -> None:
    module = base.get(name)
    assert (module.NAME, bool(module.HELP)) == (name, True)


def test_unknown_format() -> None:
    with pytest.raises(UsageError, match="no format 'xml'; available formats: beir, chat, claim-pairs, csv,"):
        base.get("xml")
