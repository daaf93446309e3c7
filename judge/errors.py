"""The expected errors, as one tree. The library raises them; only the command line prints them.

AdjudgeError                    exit 1
├── BadInput                    exit 1   a row, file or field that cannot be used
├── StudyError                  exit 1   the study file is missing, invalid, too new, busy or full
│   └── WriteFailed             exit 1   a commit did not reach the disk
├── UsageError                  exit 2   the command names something that does not exist
│   ├── NothingToScore          exit 2   the study has no data for this score
│   ├── OtherModel              exit 2   a reply comes from another model than the run's first one
│   └── TaskError               exit 2   a task file that cannot be loaded
├── MissingExtra                exit 1   an optional package is not installed
├── LimitReached                exit 4   a limit is too low for the start-up probes
├── ProviderError               exit 3   the model could not be called
│   ├── KeyProblem              exit 3   the key is missing or refused
│   ├── Unreachable             exit 3   no connection, reset, time-out          (retried)
│   ├── RateLimited             exit 3   429, or overloaded                      (retried, slows down)
│   ├── ServerFault             exit 3   5xx, or a malformed reply               (retried)
│   └── Rejected                exit 3   4xx: this request can never succeed
└── BelowThreshold              exit 5   a measure is below the requested threshold
"""

import re
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of both command lines."""

    DONE = 0
    ERROR = 1
    USAGE = 2
    PROVIDER = 3
    INCOMPLETE = 4
    BELOW = 5
    # 128 + SIGINT, as shells report it.
    INTERRUPTED = 130


class AdjudgeError(Exception):
    """An expected failure. Its message says what is wrong, where, and what to do next."""

    exit_code = Exit.ERROR


_LONGEST_WORD = 500
_SHORTENED = 60


class BadInput(AdjudgeError):
    """Raised for data that cannot be used.

    `path`, `line` and `field` specify the place (lines count from 1, and 0 means the whole file).
    """

    def __init__(self, reason: str, *, path: str = "", line: int = 0, field: str = "") -> None:
        # In a malformed file, an id or label can be a whole text, which would make the message unreadable.
        reason = re.sub(rf"\S{{{_LONGEST_WORD},}}", lambda word: f"{word[0][:_SHORTENED]}…", reason)
        self.reason, self.path, self.line, self.field = reason, path, line, field
        # This is the format of compiler errors, which editors and terminals turn into links.
        where = path + (f":{line}" if line else "")
        parts = [p for p in (where, f"field '{field}'" if field else "", reason) if p]
        super().__init__(": ".join(parts))


class StudyError(AdjudgeError):
    """The study file cannot be used in its current state. `passing` is True if a later attempt may succeed."""

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


class WriteFailed(StudyError):
    """A commit failed (disk full, file deleted). Nothing in that commit was stored."""


class UsageError(AdjudgeError):
    """The command refers to something that does not exist, or combines options that cannot be used together."""

    exit_code = Exit.USAGE


class NothingToScore(UsageError):
    """The study has no data for this score, such as pairs or answers."""


class OtherModel(UsageError):
    """A reply comes from a model other than the one that gave the run's first reply."""


class TaskError(UsageError):
    """A task file cannot be used. The message names the file and the field."""


class MissingExtra(AdjudgeError):
    """A package that the feature needs is not installed."""


class LimitReached(AdjudgeError):
    """A token, cost or time limit is too low for the start-up probes, which precede the first unit."""

    # The exit code is the same as for a run that stops at its limit: some units have no label.
    exit_code = Exit.INCOMPLETE


class ProviderError(AdjudgeError):
    """The model could not be called. `retryable` is True if the same request may succeed later."""

    exit_code = Exit.PROVIDER
    retryable = False


class KeyProblem(ProviderError):
    """The key is missing or was refused. The message never contains the key."""


class Unreachable(ProviderError):
    """No connection, a reset, or a time-out.

    `sent` is True if the server may have received the request, and False if no connection was made.
    `timed_out` is True if a connection was made but no answer came in time. `stale` is True if the server had
    closed an idle connection that was reused, so that a retry on a new connection is likely to succeed.
    """

    retryable = True

    def __init__(
        self, message: str, sent: bool = True, *, timed_out: bool = False, stale: bool = False
    ) -> None:
        super().__init__(message)
        self.sent, self.timed_out, self.stale = sent, timed_out, stale


class RateLimited(ProviderError):
    """The server temporarily refuses calls. `retry_after` is in seconds, or None if the server did not send it."""

    retryable = True

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ServerFault(ProviderError):
    """The server failed (5xx), or its answer does not have the vendor's format.

    `retry_after` is in seconds, or None if the server did not send it. `overloaded` is True for status 503.
    `answered` is True if the server reported success, but its answer is malformed. Waiting does not mend that.
    """

    retryable = True

    def __init__(
        self,
        message: str,
        retry_after: float | None = None,
        *,
        overloaded: bool = False,
        answered: bool = False,
    ) -> None:
        super().__init__(message)
        self.retry_after, self.overloaded, self.answered = retry_after, overloaded, answered


class Rejected(ProviderError):
    """The server rejected this request (4xx), and a retry cannot succeed.

    `status` is the HTTP status, or 0 if there was none.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class BelowThreshold(AdjudgeError):
    """A measure is below the requested threshold."""

    exit_code = Exit.BELOW
