"""The servers as fixtures, for a conftest to import."""

import subprocess
import sys
from collections.abc import AsyncIterator, Callable

import pytest

from tests.loopback.anthropic_server import AnthropicServer
from tests.loopback.openai_server import OpenAIServer

OPENAI_KEY, ANTHROPIC_KEY = "sk-test-0123456789abcdef", "sk-ant-test-0123456789abcdef"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both vendors have a key, and the environment names no other address."""
    for vendor, key in (("OPENAI", OPENAI_KEY), ("ANTHROPIC", ANTHROPIC_KEY)):
        monkeypatch.setenv(f"{vendor}_API_KEY", key)
        monkeypatch.delenv(f"{vendor}_BASE_URL", raising=False)


@pytest.fixture
async def openai_server() -> AsyncIterator[OpenAIServer]:
    """A fresh server that records bodies."""
    async with OpenAIServer(record=True) as server:
        yield server


@pytest.fixture
async def anthropic_server() -> AsyncIterator[AnthropicServer]:
    """A fresh server that records bodies."""
    async with AnthropicServer(record=True) as server:
        yield server


@pytest.fixture
def run_python() -> Callable[[str], str]:
    """Runs code in a fresh interpreter and returns what it printed."""

    def run(code: str) -> str:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        return done.stdout

    return run
