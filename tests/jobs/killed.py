"""`judge run --batch` killed (SIGKILL) at every step, one after the other: `python -m tests.jobs.killed DB MODEL URL`

Every run is a child of its own, forked from a process that has everything imported; it kills itself at its step, and
the next one goes on. Prints, as JSON, the steps at which a child died and the report of the last run, which nothing
stops.
"""

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from judge.asking.jobs import run_in_batches
from judge.asking.run import complete_asking, prepare
from judge.jobs import anthropic, follow, openai, post, read, whole, write
from judge.run_options import RunOptions
from judge.store import Store, jobs

whole.POLL_SECONDS = 0.01
STEPS = (
    "files written", "job kept", "about to upload", "uploaded", "about to post", "posted", "batch kept",
    "end noted", "first results fetched", "all results kept", "first page read", "all read",
)  # fmt: skip


def die(*_: Any) -> None:
    """As by kill -9."""
    os.kill(os.getpid(), signal.SIGKILL)


def after(owner: Any, name: str, when: Callable[[Any], bool] = lambda result: True) -> None:
    """Die when the function has done its work."""
    real = getattr(owner, name)

    def wrapped(*args: Any, **options: Any) -> Any:
        result = real(*args, **options)
        if when(result):
            die()
        return result

    setattr(owner, name, wrapped)


def arm(step: str) -> None:
    """See to it that this process dies at the step."""
    for vendor in (openai.OpenAIBatches, anthropic.AnthropicBatches):
        if step.startswith("about to"):
            setattr(vendor, "upload" if step.endswith("upload") else "create", die)
        after_of = {"uploaded": "upload", "posted": "create", "first results fetched": "fetch"}
        if step in after_of:
            after(vendor, after_of[step])
    match step:
        case "files written":
            after(write._Files, "keep")
        case "job kept":
            after(write.jobs, "complete")
        case "batch kept":
            after(post, "submit")
        case "end noted":
            after(follow, "poll", lambda found: any(s.file.state == "ended" for s in found))
        case "all results kept":
            after(follow, "fetch", bool)
        case "first page read":
            after(read._Reading, "page")
        case "all read":
            after(follow, "read_results")


def release(db: Path) -> None:
    """Release the units of the newest job, as `judge jobs cancel last --release`: the user checked that nothing was posted."""
    with Store.open(db, create=False) as store:
        follow.cancel(store, jobs.find(store, "last"), None, release=True)


def run(db: Path, model: str, url: str) -> dict[str, Any]:
    options = RunOptions(base_url=(url,), answers="json", retry=())
    with Store.open(db, create=False) as store:
        asked = complete_asking(store, prepare("stance", model, options), options)
        ran = run_in_batches(store, asked, options)
    if ran.report.error is not None:
        raise ran.report.error
    return ran.report.as_json(ran.plan)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("db", type=Path)
    parser.add_argument("model")
    parser.add_argument("url")
    options = parser.parse_args()
    post.SETTLE_SECONDS = 0.0
    import_module(options.model.partition("/")[0])  # the vendor's client, once for all children
    died = []
    for step in STEPS:
        child = os.fork()
        if child == 0:
            try:
                arm(step)
                if step == "posted":
                    # The child before this one was killed just before the post, which only the user can tell.
                    release(options.db)
                run(options.db, options.model, options.url)
            except BaseException as e:
                print(f"{step}: {type(e).__name__}: {e}", file=sys.stderr, flush=True)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            died.append(step)
    print(json.dumps({"died": died, "report": run(options.db, options.model, options.url)}))


if __name__ == "__main__":
    main()
