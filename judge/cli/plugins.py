"""judge plugins: list the plugins of installed packages, where they come from, and their errors."""

from dataclasses import replace
from pathlib import Path

import click

import judge
from judge import plugins as registry
from judge.console import json_option
from judge.document.terminal import emit_rows
from judge.importers import base as importers
from judge.papers.engine.papers import PAPERS
from judge.providers import base as providers
from judge.types import attributes

COLUMNS = ("kind", "name", "package", "target", "problem")


@click.command()
@json_option
def plugins(as_json: bool) -> None:
    """List the plugins of installed packages.

    Plugins add providers, importers, exchange formats, measures and papers. The command tries to load each
    plugin. If a plugin fails, the reason is shown, and the other plugins still work. To write a plugin, see
    docs/plugins.md.
    """
    every = registry.load_all(list_built_in())
    # Providers are created too, because attributes that the runner uses may be set only then.
    every = [
        replace(p, problem=providers.problem_of(p.name)) if p.kind == "providers" and not p.problem else p
        for p in every
    ]
    rows = [attributes(p, *COLUMNS) for p in every]
    emit_rows("plugins", rows, COLUMNS, as_json)


def list_built_in() -> dict[str, list[str]]:
    """Return the built-in names of each kind, which a plugin cannot use."""
    from judge.stats import METRICS

    # The formats are in `annotate`, which `judge` must not import, so their files are listed.
    formats = (Path(judge.__file__).parents[1] / "annotate" / "exchange" / "formats").glob("[!_]*.py")
    return {
        "providers": providers.vendors(),
        "importers": importers.names(),
        "exchange": [path.stem.replace("_", "-") for path in formats],
        "measures": [*METRICS, "krippendorff_alpha", "gwet_ac2"],
        "papers": [*PAPERS],
    }
