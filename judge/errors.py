"""What can go wrong, as one tree. The library raises these; only the command line prints.

AdjudgeError                    exit 1
├── BadInput                    exit 1   a row, file or field that cannot be used
├── StudyError                  exit 1   the study file is missing, foreign, newer, busy or full
│   └── WriteFailed             exit 1   a commit did not reach the disk
├── UsageError                  exit 2   the command asks for something that does not exist
│   ├── NothingToScore          exit 2   the study holds nothing of the kind that a score speaks of
│   └── TaskError               exit 2   a task file that does not load
├── MissingExtra                exit 1   an optional package is not installed
├── LimitReached                exit 4   a limit leaves no room for what must be asked before any unit
├── ProviderError               exit 3   the model could not be asked
│   ├── KeyProblem              exit 3   the key is missing or refused
│   ├── Unreachable             exit 3   no connection, reset, time-out          (retried)
│   ├── RateLimited             exit 3   429, or overloaded                      (retried, slows down)
│   ├── ServerFault             exit 3   5xx, or a reply that is not the format  (retried)
│   └── Rejected                exit 3   4xx: this request will never pass
└── BelowThreshold              exit 5   a measure is under the limit asked for
"""

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of both commands."""

    DONE = 0
    ERROR = 1
    USAGE = 2
    PROVIDER = 3
    INCOMPLETE = 4
    BELOW = 5
    INTERRUPTED = 130


class AdjudgeError(Exception):
    """An expected failure; its text says what is wrong, where, and what to do next."""

    exit_code = Exit.ERROR


class BadInput(AdjudgeError):
    """Data that cannot be used.

    `path`, `line` and `field` say where (line counts from 1, 0 = the whole file).
    """

    def __init__(self, reason: str, *, path: str = "", line: int = 0, field: str = "") -> None:
        self.reason, self.path, self.line, self.field = reason, path, line, field
        where = path + (f":{line}" if line else "")
        parts = [p for p in (where, f"field '{field}'" if field else "", reason) if p]
        super().__init__(": ".join(parts))


class StudyError(AdjudgeError):
    """The study file cannot be used as it is. `passing`: the same commit may succeed later."""

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


class WriteFailed(StudyError):
    """A commit failed (disk full, file gone); nothing of that batch is counted as done."""


class UsageError(AdjudgeError):
    """The command asks for something that does not exist or does not fit together."""

    exit_code = Exit.USAGE


class NothingToScore(UsageError):
    """The study holds nothing of the kind that a score speaks of: no pairs, no answers."""


class TaskError(UsageError):
    """A task file that cannot be used; names the file and the field."""


class MissingExtra(AdjudgeError):
    """A package that this feature needs is not installed."""


class LimitReached(AdjudgeError):
    """A limit of tokens, money or time leaves no room for what must be asked before any unit."""

    exit_code = Exit.INCOMPLETE


class ProviderError(AdjudgeError):
    """The model could not be asked. `retryable` says whether the same request may pass later."""

    exit_code = Exit.PROVIDER
    retryable = False


class KeyProblem(ProviderError):
    """The key is missing or was refused; the message never holds the key."""


class Unreachable(ProviderError):
    """No connection, a reset, or a time-out.

    `sent`: the server may have the request; False when nothing took the connection. `timed_out`: it had no
    answer in time.
    """

    retryable = True

    def __init__(self, message: str, sent: bool = True, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.sent, self.timed_out = sent, timed_out


class RateLimited(ProviderError):
    """The server asks to slow down. `retry_after` is in seconds, None when it did not say."""

    retryable = True

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ServerFault(ProviderError):
    """5xx, or an answer that is not in the vendor's format. `retry_after` as in RateLimited; `overloaded`: status 503."""

    retryable = True

    def __init__(self, message: str, retry_after: float | None = None, *, overloaded: bool = False) -> None:
        super().__init__(message)
        self.retry_after, self.overloaded = retry_after, overloaded


class Rejected(ProviderError):
    """The server refused this very request (4xx); sending it again cannot help.

    `status` is the HTTP status, 0 when there was none.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class BelowThreshold(AdjudgeError):
    """A measure is below the limit that the command was given."""

    exit_code = Exit.BELOW
