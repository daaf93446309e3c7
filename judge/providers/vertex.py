"""`vertex/MODEL`: Anthropic's models on Google's Vertex AI, called with Anthropic's own client.

The region is set by `--option region=REGION` or CLOUD_ML_REGION, and the project by `--option project=NAME`
or ANTHROPIC_VERTEX_PROJECT_ID. By default, the client uses Google's application default credentials and
refreshes them. `--option key=env:NAME` names a variable that contains an access token instead. The extra
`adjudge[vertex]` is required. Gemini models are available as `openai/MODEL` with Google's `--base-url`.
"""

import os
import re
from collections.abc import Collection

from judge.errors import KeyProblem, UsageError
from judge.providers import anthropic, http
from judge.providers.base import Needs, Settings

NEEDS = Needs(
    examples="vertex/claude-sonnet-5 (Gemini: openai/ with Google's --base-url)",
    packages=("google.auth",),
    install="the extra adjudge[vertex]",
)

_PLACE = ("project", "region")
_HOSTS = {
    "global": "aiplatform.googleapis.com",
    "us": "aiplatform.us.rep.googleapis.com",
    "eu": "aiplatform.eu.rep.googleapis.com",
}


class Provider(anthropic.Provider):
    """An Anthropic model on Vertex AI. Raises UsageError if the region or the project is missing."""

    vendor = "vertex"
    known: Collection[str] = (*_PLACE, *anthropic.Provider.known)
    facts: Collection[str] = _PLACE
    key = "Google's application default credentials"

    def __init__(self, name: str, settings: Settings) -> None:
        given = (settings.options or {}).get("region") or os.environ.get("CLOUD_ML_REGION") or ""
        # The region becomes part of a host name.
        if not re.fullmatch(r"[a-z]+[a-z0-9-]*", given):
            raise UsageError(
                "vertex: the region is missing or invalid; pass --option region=REGION (for example europe-west1), "
                "or set CLOUD_ML_REGION"
            )
        self._region = given
        project = (settings.options or {}).get("project") or os.environ.get("ANTHROPIC_VERTEX_PROJECT_ID")
        if not project:
            raise UsageError(
                "vertex: the project is not set; pass --option project=NAME, or set ANTHROPIC_VERTEX_PROJECT_ID"
            )
        self._project = project
        super().__init__(name, settings)

    def _address(self, settings: Settings) -> str:
        # The multi-region endpoints have host names of their own; all other regions follow one pattern.
        host = _HOSTS.get(self._region, f"{self._region}-aiplatform.googleapis.com")
        return settings.base_url or f"https://{host}/v1"

    async def open(self) -> None:
        """Create the client. Raises KeyProblem, MissingExtra or UsageError."""
        self._connect()

    def _make_connection(self) -> http.Connection:
        token = http.key_from(self._options.key) if self._options.key else ""
        if self._options.key and not token:
            raise KeyProblem(f"{self._options.key} is not set; set it to the access token")
        return self._client(
            "AsyncAnthropicVertex", "vertex", (token,),
            region=self._region, project_id=self._project, base_url=self._at.url, access_token=token or None,
        )  # fmt: skip
