"""`azure/DEPLOYMENT`: OpenAI's models on Azure, called with OpenAI's Azure client.

The endpoint is set by `--base-url` or AZURE_OPENAI_ENDPOINT (https://NAME.openai.azure.com), and the API
version by `--option api_version=VERSION` or OPENAI_API_VERSION. The credentials are the key in
AZURE_OPENAI_API_KEY, or an Entra ID token in AZURE_OPENAI_AD_TOKEN.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from judge.errors import KeyProblem, UsageError
from judge.providers import chat, http, openai
from judge.providers.base import Needs, Settings

NEEDS = Needs(examples="azure/my-deployment", key="AZURE_OPENAI_API_KEY")


class Provider(openai.Provider):
    """A deployment on Azure. Raises UsageError if the endpoint or the API version is missing."""

    vendor = "azure"
    known: Collection[str] = ("api_version", *openai.Provider.known)
    key = "AZURE_OPENAI_API_KEY"

    def __init__(self, name: str, settings: Settings) -> None:
        super().__init__(name, settings)
        # Azure serves OpenAI's own models, whose features are documented, so nothing is probed.
        self._is_openai = True
        self._dialect = chat.Dialect()
        self._version = self._options.vendor_options.get("api_version") or os.environ.get(
            "OPENAI_API_VERSION"
        )
        if not self._version:
            raise UsageError(
                "azure: the API version is not set; pass --option api_version=VERSION (for example 2024-10-21), or set "
                "OPENAI_API_VERSION"
            )

    def _address(self, settings: Settings) -> str:
        url = settings.base_url or os.environ.get("AZURE_OPENAI_ENDPOINT")
        if not url:
            raise UsageError(
                "azure: the endpoint is not set; pass --base-url https://NAME.openai.azure.com, or set AZURE_OPENAI_ENDPOINT"
            )
        return url

    def _make_connection(self) -> http.Connection:
        key, token = self._read_key(), ""
        # If the user names a key or sets key=none, no other credential from the environment may replace it.
        if not (self._options.key or self._options.is_keyless):
            token = http.key_from("AZURE_OPENAI_AD_TOKEN")
        credentials = {"azure_ad_token": token} if token else {"api_key": key}
        if not (key or token):
            raise KeyProblem(
                f"{self._key} is not set; export it, or export AZURE_OPENAI_AD_TOKEN to use Entra ID"
            )
        return self._client(
            "AsyncAzureOpenAI", "bedrock", (key, token),
            azure_endpoint=self._at.url, api_version=self._version, **credentials,
        )  # fmt: skip
