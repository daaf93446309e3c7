"""Times in headers: when to retry, and durations."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from judge.providers.waits import duration, retry_after


def test_retry_after_as_a_date() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert retry_after({"retry-after": later}) == pytest.approx(30, abs=2)
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0
    # By the server's own clock, where it tells it: ours may be years off, or may have jumped.
    headers = {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT", "date": "Wed, 21 Oct 2015 07:27:15 GMT"}
    assert retry_after(headers) == 45.0
    assert retry_after({**headers, "date": "today"}) == 0.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("6s", 6), ("1m30s", 90), ("120ms", 0.12), ("1h2m3.5s", 3723.5), ("2d", 172800), ("0s", 0), ("7.5", 7.5)]
    + [(bad, None) for bad in ("", "soon", "6x", "s6", "-1", "nan", "6s later")],
)
def test_durations(text: str, seconds: float | None) -> None:
    assert duration(text) == (None if seconds is None else pytest.approx(seconds))
