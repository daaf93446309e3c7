"""Servers on 127.0.0.1 that speak the vendors' wire formats, with faults on demand.

In a test: `async with OpenAIServer() as server: ... server.url`. As a process:
`python -m tests.loopback.openai_server --port 0 --delay 0.05` prints its base URL.
"""
