"""Servers that are reached through a vendor's own client class: Azure, Bedrock, Vertex.

Their addresses, tokens and signatures (SigV4, Google's refreshed tokens) are the client's business. Retries are off, its
response models are left aside, and redirects are not followed: they would carry prompts and keys to another server.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from judge.errors import KeyProblem, MissingExtra, Unreachable, UsageError
from judge.providers import http
from judge.providers.options import Looked

_RAW = {"X-Stainless-Raw-Response": "true"}
# What the clients say when their optional packages are not there.
_MISSING = ("pip install", "No module named")


class Client(http.Door):
    """A vendor's client (an `openai` or `anthropic` one) as a way to its server; `who` names it in errors.

    Every call raises KeyProblem without credentials, and MissingExtra without the package that looks for them.
    """

    def __init__(
        self, vendor: Any, client: Any, who: str, timeout: float, secrets: Sequence[str | None], extra: str
    ) -> None:
        super().__init__(secrets)
        self._vendor, self._client, self._who, self._timeout = vendor, client, who, timeout
        self._extra = extra

    async def _send(self, method: str, path: str, body: bytes | None) -> http.HttpAnswer:
        # A dictionary of its own each time: the clients write into what they are given.
        given: dict[str, Any] = {"cast_to": object, "options": {"headers": dict(_RAW)}}
        try:
            async with http.TimeLimit(self._timeout):
                if body is None:
                    answer = await self._client.get(path, **given)
                else:
                    answer = await self._client.post(path, body=json.loads(body), **given)
                raw = answer.http_response
        except self._vendor.APIStatusError as e:
            raw = e.response
        except TimeoutError as e:
            raise self._late() from e
        except self._vendor.APIConnectionError as e:
            cause = e.__cause__ or e
            # Only a connection that never stood is sure to have sent nothing.
            if type(cause).__name__ in ("ConnectError", "ConnectTimeout"):
                said = self.clean(str(cause)) or type(cause).__name__
                raise Unreachable(f"{self._who}: cannot connect: {said}", sent=False) from e
            if isinstance(e, self._vendor.APITimeoutError):
                raise self._late() from e
            raise Unreachable(f"{self._who}: connection lost: {self.clean(str(cause))}") from e
        except Exception as e:
            # What is left comes from the clients' search for credentials.
            raise credentials(e, self._who, self._extra, self.clean) from e
        return http.HttpAnswer(raw.status_code, raw.headers, raw.content)

    def _late(self) -> Unreachable:
        return Unreachable(f"{self._who}: no answer within {self._timeout:g} s", timed_out=True)

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()


def made(
    make: Callable[..., Any], vendor: Any, who: str, asked: Looked, timeout: float, extra: str, **given: Any
) -> Any:
    """A client of this class, with its own aiohttp transport. Raises KeyProblem, MissingExtra or UsageError."""
    transport = vendor.DefaultAioHttpClient(follow_redirects=False, timeout=timeout)
    try:
        return make(
            max_retries=0,
            timeout=timeout,
            http_client=transport,
            default_headers=dict(asked.headers) or None,
            default_query=dict(asked.query) or None,
            **{name: value for name, value in given.items() if value is not None},
        )
    except ValueError as e:
        raise UsageError(f"{who}: {http.clean(str(e), asked.secrets)}") from e
    except Exception as e:
        raise credentials(e, who, extra, lambda text: http.clean(text, asked.secrets)) from e


def credentials(
    error: Exception, who: str, extra: str, clean: Callable[[str], str]
) -> KeyProblem | MissingExtra:
    """The error for a client that has found no credentials, or not the package that looks for them."""
    said = clean(str(error)) or type(error).__name__
    if isinstance(error, ImportError) or any(word in str(error) for word in _MISSING):
        return MissingExtra(
            f"{who} needs the extra adjudge[{extra}]: pip install 'adjudge[{extra}]' ({said})"
        )
    return KeyProblem(f"{who}: no credentials: {said}")
