"""Read users' files record by record, with line numbers, for importers, label tables and exchange formats.

The formats are delimited tables (see DELIMITERS), JSON Lines, one JSON list, and Parquet. A file may be
compressed with gzip and may begin with a byte order mark. A file that cannot be read to the end (broken gzip,
an unfinished list) raises BadInput, because its remaining content is unknown. A bad record is passed to the
callback `bad`; if the callback returns, reading continues.

Texts are UTF-8. A file in another encoding, such as a spreadsheet saved by Excel, is converted when it is
opened (see `encoding`).
"""

import codecs
import csv
import gzip
import hashlib
import io
import json
import math
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NoReturn, cast

from judge.errors import BadInput, MissingExtra, UsageError

Bad = Callable[[BadInput], None]

LONGEST = 64 * 2**20
"""Maximum length of a line in bytes, and of a cell in characters."""
UTF_8 = "utf-8"
SAMPLE = 2**18
"""Number of bytes of lines that are not ASCII from which an encoding is detected."""
SPREADSHEETS = (
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258"),
    *("cp932", "gb18030", "big5", "cp949", "mac_roman"),
)
"""The encodings in which spreadsheet programs save tables that are not Unicode, most common first."""
DELIMITERS = ",;\t|"
TABS = (".tsv", ".tab")
# The largest float has 309 digits.
MOST_DIGITS = 300
_SEPARATOR = re.compile(rb'"?sep=([,;\t|])"?[\r\n]*')
# Matches numbers that may be too large for a float. Only texts with such numbers are parsed with the slow
# hooks for numbers.
_HUGE = re.compile(r"[0-9][eE]\+?[0-9]{3}|[0-9]{300}")


def stop(error: BadInput) -> NoReturn:
    """Raise the error. Readers that accept no bad records use this function as the callback `bad`."""
    raise error


def file_sha(path: Path) -> str:
    """Return the SHA-256 hash of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def open_input(path: Path) -> Iterator[IO[bytes]]:
    """Open a file as decompressed bytes in UTF-8, after any byte order mark.

    Raises BadInput if the file cannot be read.
    """
    name = encoding(path)
    with _open_bytes(path) as handle:
        if name == UTF_8:
            skip_byte_order_mark(handle)
            yield handle
            return
        # A temporary file is converted in blocks and can be rewound, as the readers of formats need it.
        with tempfile.TemporaryFile() as converted:
            text = codecs.getreader(name)(handle, "replace")
            shutil.copyfileobj(text, codecs.getwriter(UTF_8)(converted), 2**16)
            converted.seek(0)
            yield cast("IO[bytes]", converted)


@contextmanager
def _open_bytes(path: Path) -> Iterator[IO[bytes]]:
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            yield cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if packed else raw
    # gzip raises EOFError for a truncated file, and zlib.error for a damaged one.
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"cannot be read: {reason}", path=str(path)) from error


def encoding(path: Path) -> str:
    """Return the encoding of a text file, as Python names it: "utf-8" unless the file is clearly something else.

    A file with the byte order mark of UTF-16 is UTF-16, and other JSON is UTF-8. A table is UTF-8 if one of its lines is valid
    UTF-8 and not ASCII, because then its other lines are damaged and not written in another encoding. For any
    other file that is not ASCII, charset-normalizer chooses among the encodings in `SPREADSHEETS`.

    Raises BadInput if the file cannot be read.
    """
    try:
        stat = path.stat()
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", path=str(path)) from error
    # A pipe can be read only once.
    return _encoding(path, stat.st_mtime_ns, stat.st_size) if path.is_file() else UTF_8


# A file is opened several times during an import, and each time its encoding is needed.
@lru_cache(maxsize=64)
def _encoding(path: Path, changed: int, size: int) -> str:
    sample = b""
    with _open_bytes(path) as handle:
        start = handle.read(4)
        if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16"
        # Parquet is not a text, and JSON is UTF-8 by definition.
        if start == b"PAR1" or start.lstrip(codecs.BOM_UTF8 + b" \r\n\t").startswith((b"[", b"{")):
            return UTF_8
        handle.seek(0)
        while line := handle.readline(LONGEST):
            if line.isascii() or line.startswith(codecs.BOM_UTF8):
                continue
            if is_utf_8(line):
                return UTF_8
            if len(sample) < SAMPLE:
                sample += line
    return _detect(sample) if sample and b"\0" not in sample else UTF_8


def has_byte_order_mark(path: Path) -> bool:
    """Return whether the file begins with a byte order mark of UTF-8 or UTF-16."""
    with _open_bytes(path) as handle:
        return handle.read(3).startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def is_utf_8(line: bytes) -> bool:
    """Return whether the bytes are valid UTF-8."""
    try:
        line.decode(UTF_8)
    except UnicodeDecodeError:
        return False
    return True


def _detect(sample: bytes) -> str:
    # It loads its tables of languages, which no file in UTF-8 needs.
    from charset_normalizer import from_bytes

    fits = from_bytes(sample, cp_isolation=list(SPREADSHEETS))
    # A short text fits several encodings equally well. Then the one that is most common decides.
    best = min(
        fits, key=lambda fit: (fit.chaos, -fit.coherence, SPREADSHEETS.index(fit.encoding)), default=None
    )
    # Several encodings may give the same text. Then the most common one is named.
    equal = [name for name in SPREADSHEETS if best and name in (best.encoding, *best.could_be_from_charset)]
    return equal[0] if equal else UTF_8


def note_encoding(path: Path) -> str | None:
    """Return a sentence for the user that names the file's encoding, or None if it is UTF-8."""
    name = encoding(path)
    if name == UTF_8:
        return None
    shown = name.replace("cp125", "Windows-125").replace("utf-16", "UTF-16")
    return f"{path}: read as {shown}; if its letters look wrong in the study, save the file as UTF-8"


@contextmanager
def whole_file(path: Path, of: str = "") -> Iterator[Path]:
    """Yield a temporary path, which is renamed to `path` if the block ends without an error.

    `of` is inserted into the temporary name. Two processes can write the same file at the same time if they
    pass different values of `of`.
    """
    partial = path.with_name(f"{path.name}{of}.part")
    try:
        yield partial
        # Renaming is atomic: a reader sees either the old file or the new file, and a failed write keeps
        # the old file.
        partial.replace(path)
    # BaseException includes Ctrl-C, which must not leave a partial file either.
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def write_lines(output: Path | None, lines: Iterator[str]) -> int:
    """Write the lines and return their number.

    The output is stdout, a device, a pipe or a file. A file appears only when it is complete.
    """
    if output is None:
        return _write_lines(sys.stdout, lines)
    # A device or pipe is written to directly, because replacing it would destroy it.
    if output.exists() and not output.is_file():
        with output.open("w", encoding="utf-8", newline="") as file:
            return _write_lines(file, lines)
    with whole_file(output.resolve()) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        return _write_lines(file, lines)


def _write_lines(file: IO[str], lines: Iterator[str]) -> int:
    count = 0
    for line in lines:
        file.write(line)
        count += 1
    return count


PAGE = {".html": "html", ".htm": "html"}
"""File extensions of an HTML page."""
CSV = {".csv": "csv"}
RECIPE = {".yaml": "yaml", ".yml": "yaml"}
"""File extensions of a recipe."""


def format_of(path: Path, endings: Mapping[str, str], given: str | None = None, option: str = "") -> str:
    """Return the format in which to write a file.

    The format is `given` or, if that is None, the format of the file extension. `endings` maps extensions,
    including the dot, to formats. `option` is the name of the option that sets `given`.

    Raises UsageError if neither the extension nor the option specifies a format, or if they specify different
    formats.
    """
    ending = path.suffix.lower()
    named = endings.get(ending)
    if named is None and given is None:
        or_option = f", or set the format with {option}" if option else ""
        raise UsageError(f"{path}: unknown file extension; use one of {', '.join(endings)}{or_option}")
    if named is not None and given not in (None, named):
        raise UsageError(
            f"{path}: the file extension means {named}, but {option} is {given}; change one of them"
        )
    return given or str(named)


def skip_byte_order_mark(handle: IO[bytes]) -> None:
    """Skip the byte order mark, if there is one."""
    if handle.read(3) != codecs.BOM_UTF8:
        handle.seek(0)


def delimiter(path: Path, handle: IO[bytes], hint: Sequence[str] = ()) -> str:
    """Return the delimiter of a table. The position of the handle does not change.

    If the extension is that of a tab-separated file, the delimiter is a tab. For any other file, several
    delimiters are tried on the header, and the one that finds the most column names from `hint` is returned.
    A tie is broken by the total number of columns.
    """
    # The header of a .tsv file may contain more commas than tabs.
    if Path(path.name.removesuffix(".gz")).suffix.lower() in TABS:
        return "\t"
    _allow_long_cells()
    start = handle.tell()
    if mark := skip_separator(handle):
        handle.seek(start)
        return mark
    line = b""
    while not line.strip() and (part := handle.readline(LONGEST)):
        line = part
    handle.seek(start)
    # A header that is not UTF-8 is reported later, with its column. A lone \r ends a line for csv, but not
    # for `readline`.
    header = line.decode("utf-8", "surrogateescape").replace("\r", "\n").partition("\n")[0]

    def rate(mark: str) -> tuple[int, int]:
        names = next(csv.reader([header], delimiter=mark), [])
        return len(set(hint) & set(names)), len(names)

    return max(DELIMITERS, key=rate)


def skip_separator(handle: IO[bytes]) -> str | None:
    """Skip a first line such as `sep=;`, and return the delimiter that it names, or None if there is no such line.

    Excel reads and writes this line to tell its delimiter.
    """
    start = handle.tell()
    named = _SEPARATOR.fullmatch(handle.readline(100))
    if named:
        return named[1].decode("ascii")
    handle.seek(start)
    return None


def _allow_long_cells() -> None:
    # The default limit of 131,072 characters is too small for a long document.
    csv.field_size_limit(LONGEST)


def rows(handle: IO[bytes], path: Path, mark: str, bad: Bad) -> Iterator[tuple[int, list[str] | None]]:
    """Yield (line, cells) for each record of a delimited table.

    A malformed record is passed to `bad`, and its `cells` is None.

    Bytes that are not UTF-8 become lone surrogates, so that a later error can name the cell (see `is_text`).
    """
    _allow_long_cells()
    first = 2 if skip_separator(handle) else 1
    # Without newline="", line breaks within quotes would be changed.
    text = io.TextIOWrapper(handle, encoding="utf-8", errors="surrogateescape", newline="")
    # In strict mode, an unclosed quote is an error. Otherwise it would make the rest of the file one cell.
    reader = csv.reader(text, delimiter=mark, strict=True)
    try:
        while True:
            # A record may span several lines; errors name its first one.
            start = reader.line_num + first
            cells: list[str] | None
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                bad(BadInput(f"not CSV: {error} (perhaps an unclosed quote)", path=str(path), line=start))
                cells = None
            yield start, cells
    finally:
        # The caller opened the handle and closes it.
        text.detach()


def is_text(cell: str) -> bool:
    """Return whether the bytes of a cell were valid UTF-8."""
    if cell.isascii():
        return True
    try:
        cell.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def start_of(handle: IO[bytes]) -> bytes:
    """Return the first bytes after leading white space. The position of the handle does not change."""
    at = handle.tell()
    start = handle.read(4096).lstrip()
    handle.seek(at)
    return start


def is_list(handle: IO[bytes]) -> bool:
    """Return whether the file contains one JSON list instead of one object per line."""
    return start_of(handle).startswith(b"[")


def refuse_list(handle: IO[bytes], path: Path, wanted: str) -> None:
    """Raise BadInput if the file contains a JSON list of objects instead of the format `wanted`."""
    # A table may also begin with a bracket, in the name of its first column.
    if b"".join(start_of(handle).split()).startswith(b"[{"):
        raise BadInput(
            f"this is a JSON list, not {wanted}; change the file extension to .json", path=str(path), line=1
        )


def is_json(handle: IO[bytes]) -> bool:
    """Return whether the file begins with a JSON list or object."""
    return start_of(handle).startswith((b"[", b"{"))


def is_parquet(handle: IO[bytes]) -> bool:
    """Return whether the file is in Parquet format."""
    return start_of(handle).startswith(b"PAR1")


def json_lines(handle: IO[bytes], path: Path, bad: Bad) -> Iterator[tuple[int, Any]]:
    """Yield (line, value) for each line of a JSON Lines file. Blank lines are skipped."""
    number = 0
    # The length is bounded, because a file in another format may have no line breaks.
    while line := handle.readline(LONGEST):
        number += 1
        if len(line) == LONGEST and not line.endswith(b"\n"):
            # Skip the rest of the line, which must not be parsed as a separate line.
            while line and not line.endswith(b"\n"):
                line = handle.readline(LONGEST)
            bad(BadInput(f"the line is longer than {LONGEST >> 20} MB", path=str(path), line=number))
            continue
        if line.isspace():
            continue
        try:
            value = loads(line.decode("utf-8"))
        except UnicodeDecodeError:
            bad(BadInput("not UTF-8: save the file as UTF-8", path=str(path), line=number))
        except (ValueError, RecursionError) as error:
            bad(BadInput(describe_json_error(error), path=str(path), line=number))
        else:
            yield number, value


def json_list(handle: IO[bytes], path: Path) -> Iterator[tuple[int, Any]]:
    """Yield (first line, value) for each element of one JSON list.

    The whole file is read first. Raises BadInput.
    """
    data = handle.read()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        line = data.count(b"\n", 0, e.start) + 1
        raise BadInput("not UTF-8: save the file as UTF-8", path=str(path), line=line) from e
    # Elements are parsed one by one, because json.loads would lose their line numbers.
    at, line, counted = _skip(text, text.index("[") + 1), 1, 0
    while text[at : at + 1] != "]":
        line, counted = line + text.count("\n", counted, at), at
        try:
            value, end = _parse_whole(text, at)
            at = _skip(text, end)
            if text[at : at + 1] not in (",", "]"):
                raise ValueError("expected a comma or ] after an element of the list")
            if text[at] == ",":
                at = _skip(text, at + 1)
                if text[at : at + 1] == "]":
                    raise ValueError("the list has a comma before its ]")
        except (ValueError, RecursionError) as error:
            raise BadInput(describe_json_error(error), path=str(path), line=line) from error
        yield line, value
    if text[at + 1 :].strip():
        line += text.count("\n", counted, at)
        raise BadInput("there is more text after the end of the list", path=str(path), line=line)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def parquet(handle: IO[bytes], path: Path) -> tuple[list[str], Iterator[tuple[int, dict[str, Any]]]]:
    """Return the columns of a Parquet file, and an iterator over (number, row).

    Raises BadInput or MissingExtra.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as e:
        raise MissingExtra(f"{path}: Parquet needs pyarrow: pip install 'adjudge[parquet]'") from e

    def refused(error: Exception) -> BadInput:
        return BadInput(f"not Parquet: {str(error).split(chr(10))[0]}", path=str(path))

    try:
        # Parquet has its index at the end, so a compressed file must be decompressed completely.
        file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(handle.read()))
    except (pyarrow.ArrowException, OSError) as e:
        raise refused(e) from e

    def read_rows() -> Iterator[tuple[int, dict[str, Any]]]:
        number = 0
        try:
            # All rows as Python objects would take many times the memory of the file.
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
        # Python has no dates after the year 9999 (OverflowError), and no texts that are not UTF-8 (ValueError).
        except (pyarrow.ArrowException, OSError, OverflowError, ValueError) as e:
            raise refused(e) from e

    return list(file.schema_arrow.names), read_rows()


NAMELESS = "an object has a key without a name"


class BadObject(ValueError):
    """A JSON object with valid syntax but an ambiguous meaning."""


def twice(name: str) -> str:
    """Return the message for a duplicate key.

    A duplicate key is an error, because JSON readers differ in which of the values they use.
    """
    return f"the key '{name}' occurs twice in one object"


def find_duplicate(names: Iterable[str]) -> str | None:
    """Return the first name that occurs for the second time, or None."""
    # One pass: a file from somebody else may have a million names.
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def whole_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Build a dictionary from the pairs of a JSON object (`object_pairs_hook`).

    Raises BadObject for a duplicate or blank key.
    """
    result = dict(pairs)
    # Lengths are compared first, because this function is called for every object of a file.
    if len(result) != len(pairs):
        raise BadObject(twice(str(find_duplicate(name for name, _ in pairs))))
    if not all(map(str.strip, result)):
        raise BadObject(NAMELESS)
    return result


def loads(text: str) -> Any:
    """Parse a JSON text strictly.

    Raises ValueError for duplicate or blank keys, numbers that are too large for a float, and lone
    surrogates. Raises RecursionError if the text is nested too deeply.
    """
    value = (_CAREFUL if _HUGE.search(text) else _PLAIN).decode(text)
    # Only an escape can produce a lone surrogate, because the text itself was decoded from UTF-8.
    if "\\u" in text:
        _refuse_halves(value)
    return value


def _refuse_halves(value: Any) -> None:
    # A lone surrogate is valid JSON, but neither SQLite nor any provider accepts it.
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as e:
        half = f"\\u{ord(e.object[e.start]):04x}"
        raise ValueError(f"{half} is half of a surrogate pair, not a character") from e


def describe_json_error(error: Exception) -> str:
    """Describe why `loads` rejected a text."""
    if isinstance(error, BadObject):
        return str(error)
    return f"not JSON: {'nested too deeply' if isinstance(error, RecursionError) else error}"


def _parse_whole(text: str, at: int) -> tuple[Any, int]:
    value, end = _CAREFUL.raw_decode(text, at)
    if text.find("\\u", at, end) >= 0:
        _refuse_halves(value)
    return value, end


def _refuse_constant(name: str) -> NoReturn:
    # Python would accept NaN and Infinity, which no other JSON reader does.
    raise ValueError(f"{name} is not valid JSON")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {_shorten(text)} is too large for a float")
    return value


def _int(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(
            f"the number {_shorten(text)} has {len(text):,} digits; if it is an id, put it in quotes"
        )
    return int(text)


def _shorten(text: str) -> str:
    return text if len(text) <= 20 else f"{text[:20]}..."


_PLAIN = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=whole_object)
_CAREFUL = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_float=_float, parse_int=_int, object_pairs_hook=whole_object
)
