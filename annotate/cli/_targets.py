"""The output files of a report. They are checked before anything is computed, and either all of them are
written or none.
"""

import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from judge.errors import UsageError, WriteFailed
from judge.gates import Files

FORMATS = ("html", "md", "json", "csv", "tex")
ENDINGS = {**{f".{form}": form for form in FORMATS}, ".htm": "html", ".markdown": "md"}


def check_targets(files: Files, source: Path) -> None:
    """Raise UsageError if a report cannot be written to one of the paths.

    The paths are checked before anything is computed. A path is refused if it is not writable, if it is given
    twice, or if the labels are read from it.
    """
    named: dict[Path, Path] = {}
    for path in (*files.pages, *files.junit, *files.summaries):
        # Links are followed first, so that no spelling hides one file behind two names.
        where = path.resolve()
        if where in named:
            raise UsageError(f"-o {path}: the same file as -o {named[where]}; specify each file only once")
        named[where] = path
        if where == source.resolve():
            raise UsageError(f"-o {path}: the labels are read from this file; choose another file")
        touched = where if where.exists() else where.parent
        # A regular file appears by renaming, for which its folder must be writable.
        if not os.access(touched, os.W_OK) or not (_is_device(where) or os.access(where.parent, os.W_OK)):
            raise UsageError(f"-o {path}: cannot be written; choose another file or folder")


def write(texts: Mapping[Path, str]) -> None:
    """Write every text to its path. The files appear only when all of them have been written to disk.

    Links are followed. An existing path that is not a regular file (a pipe, /dev/stdout) is written to, but
    never replaced. If a regular file cannot be written, raises WriteFailed and changes no file.
    """
    with ExitStack() as files:
        for path, text in texts.items():
            if not _is_device(path):
                files.enter_context(_replace_at_end(path, text))
        for path, text in texts.items():
            # After the parts of all files, because nothing can be taken back from a pipe.
            if _is_device(path):
                with _explain_errors(path), path.open("w", encoding="utf-8", newline="\n") as file:
                    file.write(text)


@contextmanager
def _replace_at_end(path: Path, text: str) -> Iterator[None]:
    """Replace the target with the text when the `with` block ends. Until then, a temporary file contains it.

    If the block raises an error, the target is not changed.
    """
    target = path.resolve()
    # A random name, because two reports may be written into one folder at once.
    part = target.with_name(f".adjudge-{secrets.token_hex(6)}.part")
    try:
        with _explain_errors(path):
            with part.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
                file.flush()
                # A power cut after the renaming could otherwise leave an empty file.
                os.fsync(file.fileno())
            if target.exists():
                # The new file keeps the permissions of the one that it replaces.
                part.chmod(stat.S_IMODE(target.stat().st_mode))
        yield
        with _explain_errors(path):
            part.replace(target)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _is_device(path: Path) -> bool:
    """Return whether the path exists and is neither a file nor a folder."""
    return path.exists() and not path.is_file() and not path.is_dir()


@contextmanager
def _explain_errors(path: Path) -> Iterator[None]:
    try:
        yield
    # A reader of stdout that has gone is no error (judge.console).
    except BrokenPipeError:
        raise
    except OSError as e:
        raise WriteFailed(f"-o {path}: {e.strerror or e}; no file was changed") from e
