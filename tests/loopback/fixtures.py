"""The servers as fixtures: put `pytest_plugins = ["tests.loopback.fixtures"]` in a conftest."""

import subprocess
import sys
from collections.abc import AsyncIterator, Callable

import pytest

from tests.loopback.anthropic_server import AnthropicServer
from tests.loopback.openai_server import OpenAIServer


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
