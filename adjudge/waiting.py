"""Run a function that needs an event loop when one is already running, as in a notebook or a web server."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def loop_is_running() -> bool:
    """Return whether this thread has a running event loop, in which `asyncio.run` fails."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def outside_the_loop(work: Callable[[], T], stop: Callable[[], None]) -> T:
    """Run `work` and return its result.

    `work` runs in this thread or, if this thread has a running event loop, in a new thread.

    Ctrl-C (or a notebook's stop button) calls `stop` and waits until `work` has ended; then KeyboardInterrupt is raised.
    """
    if not loop_is_running():
        return work()
    done: dict[str, Any] = {}

    def in_thread() -> None:
        try:
            done["value"] = work()
        # Every error is caught, because it is raised again in the caller's thread.
        except BaseException as error:
            done["error"] = error
        finally:
            ended.set()

    # An event is used instead of `join`, because an interrupted `join` marks the thread as stopped (Python
    # 3.11, bpo-45274).
    ended = threading.Event()
    # The thread formats commands in messages as this thread does (judge.commands).
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=[in_thread], name="adjudge").start()
    try:
        ended.wait()
    # The loop of a notebook leaves Ctrl-C to the code that runs in it.
    except KeyboardInterrupt:
        # Answers that are on their way are stored before the notebook continues.
        stop()
        ended.wait()
        raise
    if "error" in done:
        raise done["error"]
    result: T = done["value"]
    return result
