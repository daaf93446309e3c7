"""The labelling screen in a browser. textual-serve serves it on the loopback address, and its URL has a one-time token."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from html import escape
from pathlib import Path
from typing import Any

from judge.errors import AdjudgeError, MissingExtra

# textual-serve's page requests a font from another site, which must not learn who labels here.
# Older browsers do not count a WebSocket to the page's own address as 'self', so loopback sockets are listed, too.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self' ws://127.0.0.1:* ws://localhost:*; frame-ancestors 'none'"
)
RELOAD_SECONDS = 5.0
"""The seconds that a tab waits for the previous session to end. When a tab is reloaded, its old session is closing."""
BUSY = 4409
"""The code with which a WebSocket is closed if its tab gets no labelling screen. serve.js uses the same code."""
FOLDER = Path(__file__).parent


def _with_script(response: Any) -> Any:
    """Return the response, with our script added if it is an HTML page."""
    if response.content_type == "text/html" and getattr(response, "text", None):
        script = (FOLDER / "serve.js").read_text(encoding="utf-8")
        response.text = response.text.replace("<head>", f"<head><script>{script}</script>")
    return response


async def _require_local(request: Any, response: Any) -> None:
    response.headers["Content-Security-Policy"] = POLICY
    # The address of the first request contains the token, so neither another site nor the cache may keep it.
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Cache-Control"] = "no-store"


def make_server(command: str, port: int, check: Callable[[], None]) -> tuple[Any, str]:
    """Return a server that runs `command` in the browser, and the URL to open. The URL contains a one-time token.

    The first request with the token is answered with a cookie. From then on, the token is invalid and every request
    needs the cookie, because textual-serve has no login of its own. `check` raises an AdjudgeError if the command
    cannot start, and the page then shows the error. Raises MissingExtra if textual-serve is not installed.
    """
    try:
        from aiohttp import web
        from textual_serve.server import Server
    except ImportError as e:
        raise MissingExtra("annotate serve needs textual-serve: pip install 'adjudge[serve]'") from e

    token, cookie = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
    # Browsers send a cookie to every port of a host. Because the name is unique, no other server on 127.0.0.1 (on
    # another port, or at the other end of a tunnel) can overwrite the cookie.
    cookie_name = f"annotate-{port}-{secrets.token_hex(4)}"
    unspent = [token]

    @web.middleware
    async def guard(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if secrets.compare_digest(request.cookies.get(cookie_name, ""), cookie):
            # To a browser, a page on another port of this host belongs to the same site. It can open a WebSocket here, and
            # the browser sends the cookie.
            host = request.headers.get("Host", "")
            origin = request.headers.get("Origin")
            if origin is not None and origin.partition("://")[2] != host:
                raise web.HTTPForbidden(text="the request came from another site")
            response: web.StreamResponse = _with_script(await handler(request))
            return response
        given = request.query.get("token", "")
        if unspent and secrets.compare_digest(given, unspent[0]):
            # The address may stay in the history of the browser or of a shell, so it works once.
            unspent.clear()
            home = web.HTTPFound("/")
            home.set_cookie(cookie_name, cookie, httponly=True, samesite="Strict")
            raise home
        raise web.HTTPForbidden(text="open the address that annotate serve printed; it works once")

    class Guarded(Server):  # type: ignore[misc, unused-ignore]
        is_labelling = False
        """Whether the labelling screen is open in a tab. Without this check, the command would refuse a second tab only late."""
        reason = ""
        """The reason why the labelling screen was refused to the last tab that got none."""

        async def handle_index(self, request: web.Request) -> Any:
            # textual-serve writes absolute addresses into the page. Through a tunnel the browser's port is not ours.
            self.public_url = f"{request.scheme}://{request.host}"
            return await super().handle_index(request)

        async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
            if (reason := await self._busy()) is not None:
                self.reason = reason
                socket = web.WebSocketResponse()
                await socket.prepare(request)
                await socket.close(code=BUSY)
                return socket
            self.is_labelling = True
            try:
                return await super().handle_websocket(request)
            finally:
                self.is_labelling = False

        async def handle_busy(self, request: web.Request) -> web.Response:
            """Return a page that explains why the labelling screen cannot be opened in this tab."""
            page = (FOLDER / "busy.html").read_text(encoding="utf-8")
            return web.Response(text=page.format(reason=escape(self.reason)), content_type="text/html")

        async def _busy(self) -> str | None:
            """Return the reason why the labelling screen cannot be opened now, or None if it can."""
            reason = (
                "this batch is open in another tab of your browser; continue there, or close that tab first"
            )
            deadline = asyncio.get_running_loop().time() + RELOAD_SECONDS
            while True:
                if not self.is_labelling:
                    try:
                        check()
                        return None
                    except AdjudgeError as e:
                        reason = str(e)
                if asyncio.get_running_loop().time() > deadline:
                    return reason
                await asyncio.sleep(0.2)

        async def _make_app(self) -> web.Application:
            app: web.Application = await super()._make_app()
            app.router.add_get("/busy", self.handle_busy)
            app.middlewares.append(guard)
            app.on_response_prepare.append(_require_local)
            return app

        # textual-serve prints an address without the token, and a log with tracebacks that contain values of variables.
        async def on_startup(self, app: web.Application) -> None:
            return None

        def initialize_logging(self) -> None:
            return None

    server = Guarded(
        command, host="127.0.0.1", port=port, title="annotate", public_url=f"http://127.0.0.1:{port}"
    )
    return server, f"http://127.0.0.1:{port}/?token={token}"
