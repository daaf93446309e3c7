"""judge examples: the samples as they ship, and nothing of the user's replaced."""

from pathlib import Path

from tests.cli.helpers import Judge
from tests.real import ROOT


def test_the_samples_are_copied_as_they_ship(judge: Judge, tmp_path: Path) -> None:
    told = judge("examples").out
    shipped = {
        p.relative_to(ROOT / "data"): p.read_bytes()
        for p in (ROOT / "data").rglob("*")
        if p.is_file() and p.parent.name != "minilm"
    }
    copied = {
        p.relative_to(tmp_path / "data"): p.read_bytes()
        for p in (tmp_path / "data").rglob("*")
        if p.is_file()
    }
    assert copied == shipped
    assert told == f"copied {len(shipped)} files into data\n"
    judge("items", "import", "jsonl", "data/examples/pairs.jsonl")


def test_again_nothing_changes_and_what_is_missing_comes_back(judge: Judge, tmp_path: Path) -> None:
    judge("examples", "mine/samples")
    votes = tmp_path / "mine" / "samples" / "examples" / "votes.csv"
    votes.unlink()
    assert judge("examples", "mine/samples").out.startswith("copied 1 files into mine/samples, ")
    assert votes.is_file()


def test_a_file_of_the_users_stays(judge: Judge, tmp_path: Path) -> None:
    own = tmp_path / "data" / "scifact" / "claims.jsonl"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    told = judge("examples", code=2).err
    assert told.count("\n") == 1
    assert "data/scifact/claims.jsonl already exists" in told
    assert own.read_text() == "mine"
    assert [p for p in (tmp_path / "data").rglob("*") if p.is_file()] == [own], "nothing was copied"
    # A link into another folder is not a place to write either.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "SOURCES.md").symlink_to(elsewhere / "new.md")
    judge("examples", "linked", code=2)
    assert not list(elsewhere.iterdir())
