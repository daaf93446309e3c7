"""The labelling screen in a browser: textual-serve on the loopback, behind a token that works once."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from judge.errors import MissingExtra

COOKIE = "annotate"


# textual-serve's page asks another site for a font: whoever labels here is nobody else's business.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' ws://127.0.0.1:*; frame-ancestors 'none'"
)


# The terminal takes keys once it has the focus; without this, only after a click.
FOCUS = """<script>
(function () {
  var timer = setInterval(function () {
    var area = document.querySelector(".xterm-helper-textarea");
    if (area) { area.focus(); }
    if (document.activeElement === area && document.body.classList.contains("-first-byte")) { clearInterval(timer); }
  }, 100);
})();
</script>
"""


def _focused(response: Any) -> Any:
    """The page with a script that gives the terminal the focus; anything else as it is."""
    if response.content_type == "text/html" and getattr(response, "text", None):
        response.text = response.text.replace("</body>", FOCUS + "</body>")
    return response


async def _only_from_here(request: Any, response: Any) -> None:
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Cache-Control"] = "no-store"


def make_server(command: str, port: int) -> tuple[Any, str]:
    """A server that runs `command` for whoever brings the token, and the address to open.

    The first request with the token gets a cookie; after that the token is spent and the cookie is
    needed. textual-serve has no login of its own. Raises MissingExtra without the package.
    """
    try:
        from aiohttp import web
        from textual_serve.server import Server
    except ImportError as e:
        raise MissingExtra("annotate serve needs textual-serve: pip install 'adjudge[serve]'") from e

    token, cookie = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
    unspent = [token]

    @web.middleware
    async def guard(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if secrets.compare_digest(request.cookies.get(COOKIE, ""), cookie):
            host = request.headers.get("Host", "")
            origin = request.headers.get("Origin")
            if origin is not None and origin.partition("://")[2] != host:
                raise web.HTTPForbidden(text="asked from another site")
            found: web.StreamResponse = _focused(await handler(request))
            return found
        given = request.query.get("token", "")
        if unspent and secrets.compare_digest(given, unspent[0]):
            unspent.clear()
            home = web.HTTPFound("/")
            home.set_cookie(COOKIE, cookie, httponly=True, samesite="Strict")
            raise home
        raise web.HTTPForbidden(text="open the address that annotate serve printed; it works once")

    class Guarded(Server):  # type: ignore[misc, unused-ignore]
        async def _make_app(self) -> web.Application:
            app: web.Application = await super()._make_app()
            app.middlewares.append(guard)
            app.on_response_prepare.append(_only_from_here)
            return app

        async def on_startup(self, app: web.Application) -> None:
            return None

        def initialize_logging(self) -> None:
            return None

    server = Guarded(
        command, host="127.0.0.1", port=port, title="annotate", public_url=f"http://127.0.0.1:{port}"
    )
    return server, f"http://127.0.0.1:{port}/?token={token}"
