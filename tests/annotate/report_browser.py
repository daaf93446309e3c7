"""A real browser without a window, driven over its debugging port."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp

from tests.real import require

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)


@dataclass
class Page:
    """One open page: what it asked for, what it complained about, and how it looks."""

    socket: aiohttp.ClientWebSocketResponse
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    blocked: list[str] = field(default_factory=list)
    """Why requests were refused before they left: csp is the page's own policy."""
    frames: list[str] = field(default_factory=list)
    """What came through its sockets."""
    _next: int = 0
    _events: set[str] = field(default_factory=set)

    async def call(self, method: str, **params: Any) -> Any:
        """One command; events that arrive meanwhile are noted."""
        self._next += 1
        number = self._next
        await self.socket.send_str(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(await asyncio.wait_for(self.socket.receive_str(), 60))
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        method, params = message.get("method", ""), message.get("params", {})
        self._events.add(method)
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Network.webSocketFrameReceived":
            data = params["response"]["payloadData"]
            binary = params["response"]["opcode"] == 2
            self.frames.append(base64.b64decode(data).decode(errors="replace") if binary else data)
        elif method == "Network.loadingFailed":
            self.blocked.append(params.get("blockedReason", params.get("errorText", "")))
        elif method == "Log.entryAdded":
            self.complaints.append(f"{params['entry']['level']}: {params['entry']['text']}")
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(f"console.{params['type']}")
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"].get("text")))
        elif method == "Audits.issueAdded":
            self.complaints.append(json.dumps(params["issue"]))

    async def open(self, path: Path) -> None:
        """Load a file and wait until it is there."""
        for domain in ("Network", "Log", "Runtime", "Page", "Audits"):
            await self.call(f"{domain}.enable")
        await self.call("Page.navigate", url=path.as_uri())
        while "Page.loadEventFired" not in self._events:
            self._note(json.loads(await asyncio.wait_for(self.socket.receive_str(), 60)))
        await self.script("0")

    async def look(self, scheme: str = "light", width: int = 1100, media: str = "screen") -> None:
        """Light or dark, wide or narrow, screen or print."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await self.call("Emulation.setEmulatedMedia", media=media, features=features)
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )

    async def script(self, expression: str) -> Any:
        """The value of a JavaScript expression (the page itself may run none)."""
        result = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return result["result"].get("value")

    async def press(self, key: str) -> None:
        """One key, as a person types it."""
        code = {"Tab": 9, "Enter": 13, "Escape": 27}.get(key, ord(key[0].upper()))
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        named = {"key": key, "windowsVirtualKeyCode": code}
        await self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **named)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **named)
        await asyncio.sleep(0.05)

    async def screenshot(self, path: Path, whole: bool = True, **clip: float) -> None:
        """A picture of the page, or of a part of it."""
        extra = {"clip": {**clip, "scale": 1}} if clip else {}
        result = await self.call("Page.captureScreenshot", captureBeyondViewport=whole, **extra)
        path.write_bytes(base64.b64decode(result["data"]))

    async def pdf(self, path: Path) -> None:
        """The page as it prints."""
        result = await self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        path.write_bytes(base64.b64decode(result["data"]))


@asynccontextmanager
async def browser() -> AsyncIterator[Page]:
    """A browser with an empty profile and one empty page; it ends with the block."""
    program = require("chromium")
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            str(program),
            *FLAGS,
            f"--user-data-dir={profile}",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            port_file = Path(profile) / "DevToolsActivePort"
            for _ in range(600):
                if port_file.is_file() and port_file.read_text().count("\n"):
                    break
                await asyncio.sleep(0.1)
            port = port_file.read_text().split("\n")[0]
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://127.0.0.1:{port}/json") as reply:
                    targets = await reply.json()
                address = next(t["webSocketDebuggerUrl"] for t in targets if t["type"] == "page")
                async with session.ws_connect(address, max_msg_size=2**28) as socket:
                    yield Page(socket)
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


def check_page(check: Callable[[Page], Awaitable[None]], path: Path) -> None:
    """Open the page and check it. The test function itself stays synchronous: fixtures import and build."""

    async def main() -> None:
        async with browser() as page:
            await page.open(path)
            await check(page)

    require("chromium")
    asyncio.run(main())
