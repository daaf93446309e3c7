"""annotate serve: the labelling screen in a browser."""

from __future__ import annotations

import shlex
import socket
import sys
from pathlib import Path

import click

from annotate.cli._named import BatchName, Person
from judge.console import db_option, note
from judge.errors import StudyError


@click.command("serve")
@click.argument("name", cls=BatchName)
@click.option("--as", "person", cls=Person, required=True, metavar="NAME", help="Who labels.")
@click.option("--port", type=click.IntRange(1, 65535), default=8642)
@db_option
def serve(name: str, person: str, port: int, db: Path) -> None:
    """Label the batch NAME in a browser on this machine.

    Listens on 127.0.0.1 only; the printed address holds a token that works once. From elsewhere, use
    an SSH tunnel: ssh -L 8642:127.0.0.1:8642 HOST. Ctrl+C ends it.
    """
    from annotate.sitting.desk import Desk
    from annotate.store import open_study
    from annotate.tui.web import make_server

    with open_study(db) as store:
        Desk.open(store, name, person).close()  # every complaint comes here, not into the browser
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as e:
            raise StudyError(f"port {port} is taken; choose another with --port") from e
    program = [sys.executable, "-m", "annotate", "open", name, "--as", person, "-d", str(db.resolve())]
    server, address = make_server(shlex.join(program), port)
    note(f"open {address}")
    server.serve()
