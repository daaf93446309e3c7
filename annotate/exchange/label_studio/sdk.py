"""The only module that imports Label Studio's SDK: its client, its check of tasks and regions, and its errors.

The key is read from LABEL_STUDIO_API_KEY and passed only to the SDK's client.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from judge.addresses import no_proxy, server
from judge.errors import BadInput, KeyProblem, MissingExtra, Rejected, ServerFault, Unreachable, UsageError

if TYPE_CHECKING:
    import httpx

KEY = "LABEL_STUDIO_API_KEY"
SECONDS = 300.0
"""The time limit for one call to the server. On a busy server, importing a few hundred tasks can take minutes."""


def load() -> Any:
    """Import the package. Raises MissingExtra, which names the extra, if it is not installed."""
    # The package reads the key from the environment when it is imported, and stores it as a default.
    try:
        import label_studio_sdk
    except ImportError as e:
        raise MissingExtra(
            "Label Studio's SDK is not installed: pip install 'adjudge[label-studio]' "
            "(files in its format, --to label-studio and --from label-studio, work without it)"
        ) from e
    return label_studio_sdk


def _interface(xml: str) -> Any:
    """Return the vendor's parsed configuration. Raises ServerFault if the vendor's check rejects it."""
    load()
    from label_studio_sdk.label_interface.interface import LabelInterface

    try:
        interface: Any = LabelInterface(xml)
        interface.validate()
    except Exception as e:
        raise ServerFault(f"Label Studio's own check rejects the labelling configuration: {e}") from e
    return interface


def address(url: str) -> str:
    """Return the server's address in the form that the study stores, without a slash at the end. Raises
    UsageError for an invalid address.
    """
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"--url {url}: write it as http://localhost:8080")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise UsageError(f"--url: must be only the server's address; set the key in {KEY}")
    return f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")


def connect(url: str) -> tuple[Any, httpx.Client]:
    """Return a client of the SDK, and its HTTP connections, which the caller must close. Raises KeyProblem for
    a missing or expired key.
    """
    sdk = load()
    key = os.environ.get(KEY, "").strip()
    if not key:
        raise KeyProblem(f"{KEY} is not set: copy a key from {url}/user/account (Access Token)")
    if not key.isascii() or not key.isprintable():
        raise KeyProblem(f"{KEY} contains characters that are not allowed in a key")
    import httpx

    def check(answer: httpx.Response) -> None:
        if answer.has_redirect_location:
            raise Rejected(
                f"{url} redirects to another address (HTTP {answer.status_code}); pass the final address",
                answer.status_code,
            )

    # A redirect would carry the texts to another server. The SDK sends a personal access token in a body, and
    # no client removes the body from a redirected request.
    http = httpx.Client(
        timeout=SECONDS,
        follow_redirects=False,
        event_hooks={"response": [check]},
        mounts=no_proxy(server(url)),
    )
    try:
        with explain_errors(url):
            return sdk.LabelStudio(base_url=url, api_key=key, timeout=SECONDS, httpx_client=http), http
    except BaseException:
        http.close()
        raise


@contextmanager
def explain_errors(url: str, missing: str = "") -> Iterator[None]:
    """Convert exceptions from the SDK to errors of adjudge. `missing` is the message for a 404."""
    import httpx
    from label_studio_sdk.core.api_error import ApiError

    # `from None` is needed because, with JUDGE_DEBUG=1, a traceback would print the SDK's text, including
    # cookies.
    try:
        yield
    except ApiError as e:
        raise _error_of(url, e.status_code or 0, _detail(e.body), missing) from None
    except httpx.TimeoutException:
        raise Unreachable(f"{url}: no answer within {SECONDS:.0f} s; run the same command again") from None
    except (httpx.HTTPError, httpx.InvalidURL) as e:
        raise Unreachable(f"{url}: no connection ({type(e).__name__}): is the server running?") from None
    except (ValueError, TypeError, KeyError, AttributeError) as e:
        raise ServerFault(
            f"{url}: does not appear to be a Label Studio server ({type(e).__name__})"
        ) from None


def _error_of(url: str, status: int, detail: str, missing: str) -> Exception:
    said = f" ({detail})" if detail else ""
    if status == 401 and "expired" in detail.lower():
        return KeyProblem(f"{url}: {KEY} has expired: make a new one at {url}/user/account")
    if status == 401:
        return KeyProblem(f"{url}: the server rejects {KEY}{said}: is it a key for this server?")
    if status == 403:
        return KeyProblem(f"{url}: {KEY} does not have permission for this request{said}")
    if status == 404:
        return Rejected(f"{url}: {missing or 'not found'}{said if not missing else ''}", 404)
    if status >= 500 or status == 0:
        return ServerFault(f"{url}: the server failed ({status or 'no status'}); run the same command again")
    return Rejected(f"{url}: the server rejected the request ({status}){said}", status)


def _detail(body: Any) -> str:
    """Return the server's explanation of an error as one short line. Anything that looks like a key is removed."""
    if isinstance(body, dict):
        errors = body.get("validation_errors") or {}
        parts = (
            [str(body.get("detail") or ""), *(f"{k}: {v}" for k, v in errors.items())]
            if isinstance(errors, dict)
            else []
        )
        body = "; ".join(p for p in parts if p)
    text = " ".join(str(body or "").split())
    # A proxy answers with a page of HTML.
    text = "" if text.startswith("<") else text
    # A server may repeat the key that it rejects.
    return re.sub(r"[\w-]{20,}(\.[\w-]+)*", "…", text)[:200]


_REGION_PREFIX = "Region 0: "
"""The prefix of the vendor's messages about a region. Regions are checked one by one, so the region's number is
always 0.
"""


class Check:
    """A check of tasks and regions against a configuration. It runs on this machine, with the SDK's
    LabelInterface.
    """

    def __init__(self, xml: str) -> None:
        """Raise MissingExtra if the SDK is not installed."""
        self._interface = _interface(xml)

    def task(self, task: Mapping[str, Any]) -> None:
        """Raise BadInput if a task lacks data that the configuration shows."""
        if not self._interface.validate_task(dict(task)):
            missing = [
                o.value_name for o in self._interface.objects if task["data"].get(o.value_name) is None
            ]
            raise BadInput(
                "the configuration shows this field, but the task lacks it",
                field=", ".join(missing) or "data",
            )

    def regions(self, result: Sequence[Mapping[str, Any]]) -> None:
        """Raise BadInput if the SDK rejects a region, naming the control of the first such region."""
        # Regions are checked one by one, because the vendor's check of a whole annotation returns only True or
        # False.
        for number, region in enumerate(result, 1):
            if region.get("type") == "relation":
                continue
            errors = self._interface.validate_region(dict(region), return_errors=True)
            if errors:
                reason = str(errors[0]).removeprefix(_REGION_PREFIX)
                name = region.get("from_name")
                raise BadInput(
                    f"region {number}: {reason}", field=name if isinstance(name, str) else "result"
                )
