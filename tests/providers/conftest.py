"""The loopback servers, and keys in the environment."""

from tests.loopback.fixtures import anthropic_server, keys, openai_server, run_python

__all__ = ["anthropic_server", "keys", "openai_server", "run_python"]
