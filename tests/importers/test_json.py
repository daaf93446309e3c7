"""JSON that is legal for many readers and no data set: refused with its place, in little memory."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import BadInput
from judge.importers.records import DEEPEST, Shallow, json_pairs, json_records
from tests.real import ROOT
from tests.suites.helpers import Judge

CODE = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
from pathlib import Path
from judge.errors import BadInput
from judge.importers.records import json_records
try:
    list(json_records(Path(sys.argv[1]), print).rows)
except BadInput as e:
    print(e)
"""


def test_a_hundred_thousand_brackets_need_no_gigabytes(tmp_path: Path) -> None:
    """It took 22 GB: the parser kept the whole path of each of them. Here it has 2 GB."""
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000)
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert f"{path}: lists and objects are nested more than {DEEPEST} levels deep" in done.stdout


@given(
    st.recursive(
        st.text('ab"\\[]{}é\n'),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    ),
    st.integers(1, 7),
)
def test_brackets_in_texts_are_not_counted_wherever_the_bytes_are_cut(value: object, size: int) -> None:
    """Written out, read in pieces of a few bytes: at the end nothing is open."""
    for data in (json.dumps(value).encode(), json.dumps(value, ensure_ascii=False).encode()):
        shallow = Shallow(io.BytesIO(data), "x")
        read = b""
        while piece := shallow.read(size):
            read += piece
        assert read == data
        assert (shallow._depth, shallow._in_string) == (0, False)


@pytest.mark.parametrize(
    "text", ['[{"id": "a", "n": %s}]', '{"question": "q", "n": %s}', '{"name": %s, "calibration": []}']
)
def test_an_endless_number_is_refused(judge: Judge, tmp_path: Path, text: str) -> None:
    """ijson's parser written in C ended the process: Python makes no integer of over 4,300 digits."""
    path = tmp_path / "x.json"
    path.write_text(text % ("9" * 5000))
    told = judge("items", "import", path, code=1).err
    assert str(path) in told and "digits" in told
    for size in (1, 7, 5000):
        pieces = Shallow(io.BytesIO(b"[" + b"1" * 4001), "x")
        with pytest.raises(BadInput, match="more than 4,000 digits"):
            while pieces.read(size):
                pass
        short = Shallow(io.BytesIO((b"[" + b"1" * 4000 + b",") * 2), "x")
        while short.read(size):
            pass


def test_the_depth_is_that_of_open_brackets(tmp_path: Path) -> None:
    for opened, deep in ((DEEPEST, False), (DEEPEST + 1, True)):
        path = tmp_path / "x.json"
        path.write_text("[" * opened + "]" * opened)
        if deep:
            with pytest.raises(BadInput, match="nested more than"):
                list(json_records(path, lambda e: None).rows)
        else:
            assert list(json_records(path, lambda e: None).rows)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"id": "a", "id": "b"}', "'id' occurs twice"),
        ('{"p": [{"x": {"y": 1, "y": 1}}]}', "'y' occurs twice"),
        ('{"p": {"": "a"}}', "without a name"),
        ('{"p": {"  ": "a"}}', "without a name"),
        ('{"score": 1e400}', "overflow"),
    ],
)
def test_what_only_some_readers_take_in_an_array(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(f'[{{"id": "1"}}, {text}, {{"id": "3"}}]')
    rows = iter(json_records(path, lambda e: None).rows)
    assert next(rows) == (1, {"id": "1"})
    with pytest.raises(BadInput, match=said) as told:
        list(rows)
    assert "element 2" in str(told.value)
    assert ("not UTF-8 JSON" in str(told.value)) == (said == "overflow"), (
        "only what is none is said to be none"
    )


def test_a_key_twice_in_a_file_that_is_one_object(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"q1": [1], "q2": [2], "q1": [3]}')
    with pytest.raises(BadInput, match=r"element 3: .*'q1' occurs twice"):
        list(json_pairs(path))
