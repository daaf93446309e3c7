"""`azure/DEPLOYMENT`: OpenAI's models at Azure, through OpenAI's Azure client.

The endpoint is `--base-url` or AZURE_OPENAI_ENDPOINT (https://NAME.openai.azure.com), the API version
`--option api_version=` or OPENAI_API_VERSION, the key AZURE_OPENAI_API_KEY or, for Entra ID,
AZURE_OPENAI_AD_TOKEN.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from judge.errors import KeyProblem, UsageError
from judge.providers import chat, http, openai
from judge.providers.base import Needs, Settings

NEEDS = Needs(examples="azure/my-deployment", key="AZURE_OPENAI_API_KEY")


class Provider(openai.Provider):
    """One deployment. Raises UsageError if the endpoint or the API version is missing."""

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
                "azure: name the API version: --option api_version=2024-10-21, or OPENAI_API_VERSION"
            )

    def _address(self, settings: Settings) -> str:
        url = settings.base_url or os.environ.get("AZURE_OPENAI_ENDPOINT")
        if not url:
            raise UsageError(
                "azure: name the endpoint: --base-url https://NAME.openai.azure.com, or AZURE_OPENAI_ENDPOINT"
            )
        return url

    def _wired(self) -> http.Connection:
        key, token = self._own_key(), ""
        # An explicitly named key, or none, must not be replaced by another credential of the environment.
        if not (self._options.key or self._options.is_keyless):
            token = http.key_from("AZURE_OPENAI_AD_TOKEN")
        credentials = {"azure_ad_token": token} if token else {"api_key": key}
        if not (key or token):
            raise KeyProblem(f"{self._key} is not set: export it, or AZURE_OPENAI_AD_TOKEN for Entra ID")
        return self._client(
            "AsyncAzureOpenAI", "bedrock", (key, token),
            azure_endpoint=self._at.url, api_version=self._version, **credentials,
        )  # fmt: skip
