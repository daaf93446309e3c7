"""judge examples: copy the shipped samples into a folder."""

from pathlib import Path

import click

from judge.commands import command
from judge.console import note, print_lines
from judge.errors import UsageError

# The folder of the embedding model is omitted, because its weights are read from the package.
FOLDERS = ("examples", "noveleval", "scifact")


@click.command()
@click.argument("folder", metavar="[DIR]", default="data", type=click.Path(path_type=Path))
def examples(folder: Path) -> None:
    """Copy the sample data into DIR (default: data).

    The commands in the documentation read the samples from this folder.

    \b
    judge examples
    judge examples samples

    The folders 'noveleval' and 'scifact' contain real passages with human labels. The folder 'examples'
    contains made-up rows of every kind. SOURCES.md lists the origins and licences. Existing files that differ
    are never replaced.
    """
    from judge.resources import resource_dir

    source = resource_dir("data")
    sources = [source / "SOURCES.md", *(p for name in FOLDERS for p in sorted((source / name).rglob("*")))]
    wanted = {p: folder / p.relative_to(source) for p in sources if p.is_file()}
    # All targets are checked first, so that nothing is copied if one is refused.
    for path, target in wanted.items():
        # A link could lead the copy into another folder.
        if target.is_symlink() or (target.exists() and not _have_same_content(path, target)):
            raise UsageError(
                f"{target} already exists with different content; choose another folder: {command('judge examples DIR')}"
            )
    new = {path: target for path, target in wanted.items() if not target.exists()}
    for path, target in new.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    print_lines(
        f"copied {len(new)} files into {folder}"
        + (f", {len(wanted) - len(new)} were already there" if len(new) < len(wanted) else "")
    )
    note(f"next: {command('judge items import jsonl', folder / 'noveleval' / 'questions.jsonl')}")


def _have_same_content(first: Path, second: Path) -> bool:
    return second.is_file() and first.read_bytes() == second.read_bytes()
