"""`bedrock/MODEL`: models on Amazon Bedrock, called with the vendors' own clients.

The clients sign each request (SigV4).

Anthropic's models (`bedrock/anthropic.claude-...`, `bedrock/us.anthropic...`) are called through the Messages
API, and all other models through chat completions. If the name does not show which API to use, as with an
ARN, select it with `--option speaks=anthropic` or `--option speaks=openai`. The region is set by `--option
region=REGION` or AWS_REGION. Credentials are found in the same way as by other AWS tools: in the environment,
in a profile (`--option profile=NAME`) or from a role. A token in AWS_BEARER_TOKEN_BEDROCK also works. The
extra `adjudge[bedrock]` is required.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from typing import Any

from judge.errors import UsageError
from judge.providers import anthropic, http, openai
from judge.providers.base import Needs, Settings

NEEDS = Needs(
    examples="bedrock/us.anthropic.claude-sonnet-5-v1:0, bedrock/openai.gpt-oss-120b-1:0",
    packages=("botocore", "boto3"),
    install="the extra adjudge[bedrock]",
)

BEARER = "AWS_BEARER_TOKEN_BEDROCK"
_PLACE = ("profile", "region", "speaks")
_ANTHROPIC = re.compile(r"(?:^|[./])anthropic\.")


def Provider(name: str, settings: Settings) -> OfOpenAI | OfAnthropic:
    """Return the provider for the API through which the model is called.

    Raises UsageError if `speaks` is invalid.
    """
    # This function has the name of a class, because `base.get` calls `module.Provider` for every vendor.
    speaks = (settings.options or {}).get("speaks") or ("anthropic" if _ANTHROPIC.search(name) else "openai")
    if speaks not in ("anthropic", "openai"):
        raise UsageError(f"--option speaks={speaks}: must be anthropic or openai")
    return OfAnthropic(name, settings) if speaks == "anthropic" else OfOpenAI(name, settings)


def region_of(settings: Settings) -> str:
    """Return the AWS region. Raises UsageError if it is missing or invalid."""
    given = (settings.options or {}).get("region")
    region = given or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or ""
    # The region becomes part of a host name, so it must not contain anything else.
    if not re.fullmatch(r"[a-z]{2}(-[a-z]+)+-\d", region):
        raise UsageError(
            "bedrock: the region is missing or invalid; pass --option region=REGION (for example us-east-1), "
            "or set AWS_REGION"
        )
    return region


def _aws_secrets() -> list[str]:
    # The client signs with these, and its messages may repeat them.
    return [os.environ.get(name, "") for name in ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")]


class OfOpenAI(openai.Provider):
    """A Bedrock model that is called through chat completions."""

    vendor = "bedrock"
    known: Collection[str] = (*_PLACE, *openai.Provider.known)
    facts: Collection[str] = (*_PLACE, *openai.Provider.facts)
    key = BEARER

    def __init__(self, name: str, settings: Settings) -> None:
        self._region = region_of(settings)
        self._elsewhere = settings.base_url
        super().__init__(name, settings)

    def _address(self, settings: Settings) -> str:
        return settings.base_url or f"https://bedrock-mantle.{self._region}.api.aws/openai/v1"

    def _make_connection(self) -> http.Connection:
        key = self._read_key()
        given: dict[str, Any] = {
            "aws_region": self._region,
            "aws_profile": self._options.vendor_options.get("profile"),
        }
        # The client builds the usual address itself. A named profile has priority over a token in the environment.
        given |= {"base_url": self._at.url} if self._elsewhere else {}
        given |= {"api_key": key} if key and not given["aws_profile"] else {}
        return self._client("AsyncBedrockOpenAI", "bedrock", (key, *_aws_secrets()), **given)


class OfAnthropic(anthropic.Provider):
    """A Bedrock model that is called through the Messages API.

    On Bedrock, this API cannot list models or count tokens.
    """

    vendor = "bedrock"
    known: Collection[str] = (*_PLACE, *anthropic.Provider.known)
    facts: Collection[str] = _PLACE
    key = BEARER

    def __init__(self, name: str, settings: Settings) -> None:
        self._region = region_of(settings)
        super().__init__(name, settings)

    def _address(self, settings: Settings) -> str:
        return settings.base_url or f"https://bedrock-runtime.{self._region}.amazonaws.com"

    async def open(self) -> None:
        """Create the client. Raises KeyProblem, MissingExtra or UsageError."""
        self._connect()

    def _make_connection(self) -> http.Connection:
        key = self._read_key()
        given: dict[str, Any] = {"aws_region": self._region, "base_url": self._at.url}
        given["aws_profile"] = profile = self._options.vendor_options.get("profile")
        given |= {"api_key": key} if key and not profile else {}
        return self._client("AsyncAnthropicBedrock", "bedrock", (key, *_aws_secrets()), **given)
