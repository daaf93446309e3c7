"""annotate serve in a real browser: the token, the screen, a key that labels."""

import asyncio
import io
import re
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import matplotlib.image
import pytest

from tests.annotate.report_browser import Page, browser
from tests.tui.studies import batch, build, drawn, labels, rows_of

pytest.importorskip("textual_serve")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return drawn(tmp_path, n=6)


@asynccontextmanager
async def serving(study: Path, *args: str) -> AsyncIterator[str]:
    """The real command on a free port; gives the address it prints, and ends with the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        "-m",
        "annotate",
        "serve",
        "pilot",
        "--as",
        "alice",
        "--port",
        str(port),
        "-d",
        str(study),
        *args,
    ]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        line = (await asyncio.wait_for(process.stderr.readline(), 60)).decode()
        result = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)
        assert result, line
        for _ in range(300):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                break
            except OSError:
                await asyncio.sleep(0.1)
        yield result[0]
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def status(url: str, **kwargs: object) -> int:
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, allow_redirects=False, **kwargs) as reply,  # type: ignore[arg-type]
    ):
        return reply.status


async def until(study: Path, count: int) -> None:
    for _ in range(300):
        if len(labels(study)) == count:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{len(labels(study))} labels, not {count}")


async def test_the_token_works_once_and_nothing_works_without(study: Path) -> None:
    async with serving(study) as address:
        home = address.partition("?")[0]
        assert await status(home) == 403
        assert await status(f"{home}?token=wrong") == 403
        assert await status(f"{home}static/js/textual.js") == 403
        assert await status(f"{home}ws") == 403
        # unsafe: an address without a name may set cookies, as browsers allow.
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            async with session.get(address) as reply:
                assert reply.status == 200 and "token" not in str(reply.url)
                cookie = reply.history[0].headers["Set-Cookie"]
            assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
            assert (await session.get(home)).status == 200
            # Another site's page may hold the cookie's browser, but not open the socket with it.
            with pytest.raises(aiohttp.WSServerHandshakeError) as e:
                await session.ws_connect(f"{home}ws", headers={"Origin": "http://evil.example"})
            assert e.value.status == 403
        assert await status(address) == 403, "the second use"
        assert await status(home, cookies={cookie.partition("=")[0]: "guess"}) == 403


@pytest.mark.real
async def test_a_key_in_the_browser_labels(study: Path, tmp_path: Path) -> None:
    async with serving(study) as address, browser() as page:
        for domain in ("Page", "Network"):
            await page.call(f"{domain}.enable")
        await page.look(width=1100)
        await page.call("Emulation.setFocusEmulationEnabled", enabled=True)
        await page.call("Page.navigate", url=address)
        for _ in range(300):
            sittings = rows_of(study, "SELECT count(*) FROM sessions")[0][0]
            if sittings:
                break
            await asyncio.sleep(0.1)
        await asyncio.sleep(2)  # nobody clicks: the terminal has the focus by itself
        for count, key in enumerate("srn", 1):
            await page.press(key)
            await until(study, count)
        await asyncio.sleep(1)
        await page.screenshot(tmp_path / "page.png", whole=False)
        picture = matplotlib.image.imread(io.BytesIO((tmp_path / "page.png").read_bytes()))
        # A terminal with text in it: not one colour, and most of it the dark ground.
        dark = (picture[..., :3].max(axis=2) < 0.3).mean()
        light = (picture[..., :3].min(axis=2) > 0.6).mean()
        assert dark > 0.5 and light > 0.005, (dark, light)
        home = address.partition("?")[0]
        asked = [url for url in page.requests if not url.startswith((home, "data:", "blob:"))]
        assert all(page.blocked) and len(page.blocked) >= len(asked), "nothing is fetched from elsewhere"
    assert sorted(labels(study).values()) == ["neutral", "refute", "support"]


@pytest.mark.real
@pytest.mark.parametrize("text", ["القطة على السجادة", "The cat is on the mat"], ids=["arabic", "english"])
async def test_the_browser_is_told_that_right_to_left_text_is_in_the_wrong_order(
    text: str, tmp_path: Path
) -> None:
    path = drawn(tmp_path, items=1, each=1, texts={"one": text}, n=1)
    async with serving(path) as address, browser() as page:
        for domain in ("Page", "Network"):
            await page.call(f"{domain}.enable")
        await page.look(width=1100)
        await page.call("Page.navigate", url=address)
        for _ in range(300):
            await page.script("0")  # what came meanwhile is noted
            if "Passage" in "".join(page.frames) and "quit" in "".join(page.frames):
                break
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        await page.script("0")
        is_warned = "shows right-to-left text in the wrong order" in "".join(page.frames)
        assert is_warned is (text[0] > "\u0590")
        await page.screenshot(tmp_path / "page.png", whole=False)


@pytest.mark.real
async def test_two_servers_share_a_browser_and_a_tunnel_may_end_on_any_port(
    study: Path, tmp_path: Path
) -> None:
    """Cookies are of a host, whatever its port: the second server's must not replace the first's."""
    other = build(tmp_path / "other.db")
    batch(other, n=6)
    async with serving(study) as one, serving(other) as two, browser() as page:
        await page.call("Page.enable")
        for address in (one, two):
            await page.call("Page.navigate", url=address)
            assert await eventually(page, "document.body.classList.contains('-first-byte')")
        async with tunnel(int(re.findall(r":(\d+)/", one)[0])) as port:
            await page.call("Page.navigate", url=f"http://127.0.0.1:{port}/")
            assert await eventually(page, "document.body.classList.contains('-first-byte')")
            await page.call("Page.navigate", url=f"http://localhost:{port}/")
            assert await eventually(page, "document.body.innerText.includes('annotate serve printed')")


@pytest.mark.real
async def test_a_second_tab_says_why_it_has_no_screen(study: Path) -> None:
    async with serving(study) as address, browser() as page:
        home = address.partition("?")[0]
        await page.call("Page.enable")
        await page.call("Page.navigate", url=address)
        assert await eventually(page, "document.body.classList.contains('-first-byte')")
        # The same page again is no second tab: its own session ends first.
        await page.call("Page.reload")
        await asyncio.sleep(0.5)
        assert await eventually(page, "document.body.classList.contains('-first-byte')")
        # A second tab, of which the browser tells no more than the socket that its page opens.
        await page.script(
            f"(s => {{ s.onclose = (e) => {{ window.code = e.code; }} }})(new WebSocket('{home}ws'.replace('http', 'ws')))"
        )
        assert await eventually(page, "document.body.innerText.includes('is open in another tab')")
        assert "Try again" in await page.script("document.body.innerText")
        await page.call("Page.navigate", url="about:blank")
        await asyncio.sleep(1)
        await page.call("Page.navigate", url=home)
        assert await eventually(page, "document.body.classList.contains('-first-byte')")


async def eventually(page: Page, expression: str) -> bool:
    for _ in range(300):
        if await page.script(expression):
            return True
        await asyncio.sleep(0.1)
    return False


@asynccontextmanager
async def tunnel(port: int) -> AsyncIterator[int]:
    """What `ssh -L FREE:127.0.0.1:PORT` does."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(copy(reader, there_writer), copy(there_reader, writer))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def test_complaints_come_before_the_browser(study: Path) -> None:
    async def refused(*args: str) -> tuple[int | None, str]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "annotate", "serve", *args, "-d", str(study), stderr=asyncio.subprocess.PIPE
        )
        _, err = await asyncio.wait_for(process.communicate(), 60)
        return process.returncode, err.decode()

    code, text = await refused("pilot", "--as", "zoe")
    assert code == 2 and "its annotators are: alice" in text
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, text = await refused("pilot", "--as", "alice", "--port", str(taken.getsockname()[1]))
        assert code == 1 and "--port" in text
