"""A sheet that LibreOffice has opened and saved."""

import json
import subprocess
from pathlib import Path

import pytest

from annotate.store import open_study
from tests import real
from tests.annotate.exchange_helpers import all_labels, study, take_in
from tests.annotate.test_gate import fill_sheet, rows_count, sort_texts

pytestmark = pytest.mark.real
UTF_8, WINDOWS_1252 = 76, 1
"""The numbers of character sets in LibreOffice's filter for CSV."""


def save(file: Path, ending: str, charset: int = UTF_8) -> Path:
    """The file, opened by LibreOffice and saved in another format, in a folder of its own."""
    folder = file.parent / f"{file.stem}-{ending}-{charset}"
    into = f"csv:Text - txt - csv (StarCalc):44,34,{charset}" if ending == "csv" else ending
    words = [
        real.require("soffice"),
        f"-env:UserInstallation={(file.parent / 'profile').as_uri()}",
        "--headless",
    ]
    words += ["--infilter=Text - txt - csv (StarCalc):44,34,76"] if file.suffix == ".csv" else []
    subprocess.run(
        [*map(str, words), "--convert-to", into, "--outdir", str(folder), str(file)], check=True, timeout=120
    )
    return folder / f"{file.stem}.{ending}"


def filled(tmp_path: Path) -> tuple[Path, Path]:
    """A study with texts that spreadsheets like to change, and its sheet, filled in."""
    path = study(tmp_path / "s.db", task="stance", judged=False)
    awkward = [
        "0012",
        "2024-03-01",
        "=1+1",
        "1234567890123456",
        "naïve – “quoted”, “twice”",
        "two\nlines, with; marks",
    ]
    with open_study(path) as store, store.transaction() as conn:
        ids = [row[0] for row in conn.execute("SELECT DISTINCT unit_id FROM assignments ORDER BY 1")]
        for unit, text in zip(ids, awkward, strict=False):
            conn.execute("UPDATE passages SET text = ? WHERE passage_id = ?", [text, unit])
    fill_sheet(path, tmp_path / "sheet.csv", lambda rows: None)
    return path, tmp_path / "sheet.csv"


def test_a_sheet_that_was_saved_as_a_spreadsheet_and_as_csv_again(tmp_path: Path) -> None:
    path, sheet = filled(tmp_path)
    saved = save(save(sheet, "ods"), "csv")
    done = take_in(path, saved, "csv", "--as", "alice", "--blind")
    assert rows_count(done) == {"stored": 6}
    assert {row[5] for row in all_labels(path)} == {"support"}


def test_a_sheet_in_another_character_set_says_how_to_go_on(tmp_path: Path) -> None:
    """The sheet has one word with a letter outside ASCII, so its encoding is a guess. A wrong guess changes this text."""
    path, sheet = filled(tmp_path)
    saved = save(sheet, "csv", WINDOWS_1252)
    done = take_in(path, saved, "csv", "--as", "alice", "--blind", code=1)
    assert "sheet.csv: read as Windows-125" in done.stderr and "UTF-8" in done.stderr
    assert rows_count(json.loads(done.stdout)) == {"stored": 5, "quarantined": 1}
    assert len(all_labels(path)) == 5


def test_a_sheet_that_was_sorted_badly_in_a_spreadsheet(tmp_path: Path) -> None:
    path = study(tmp_path / "s.db", task="stance", judged=False)
    fill_sheet(path, tmp_path / "sheet.csv", sort_texts)
    saved = save(save(tmp_path / "sheet.csv", "xlsx"), "csv")
    done = take_in(path, saved, "csv", "--as", "alice", "--blind", code=1, document=True)
    assert rows_count(done) == {"quarantined": 6} and all_labels(path) == set()
