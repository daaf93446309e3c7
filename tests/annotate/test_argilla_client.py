"""Argilla's own SDK reads what we write, and what it writes comes in: submitted, drafts, discarded, edited."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.annotate.agreement_helpers import annotate
from tests.annotate.exchange_helpers import all_labels, rows_of, study, take_in
from tests.real import ROOT, require

pytestmark = pytest.mark.real
ALICE, BOB = "5f6b1b1e-8c8e-4f5e-9b1e-2f1b6b1e8c8e", "6f6b1b1e-8c8e-4f5e-9b1e-2f1b6b1e8c8e"


def test_the_circle_through_the_real_sdk(tmp_path: Path) -> None:
    python = require("argilla")
    path = study(tmp_path / "s.db", task="stance", judged=False)
    folder = tmp_path / "out"
    annotate("export", "pilot", "--to", "argilla", "-o", folder, "-d", path)
    units = [json.loads(line)["id"] for line in (folder / "records.jsonl").read_text("utf-8").splitlines()]
    assert len(units) == 6
    states = ["submitted", "submitted", "submitted", "draft", "discarded"]
    words = ["support", "refute", "neutral"]
    said = {
        ALICE: {u: ["stance", words[i % 3], "submitted"] for i, u in enumerate(units)},
        BOB: {
            u: ["stance", words[i % 3], state]
            for i, (u, state) in enumerate(zip(units, states, strict=False))
        },
    }
    (tmp_path / "said.json").write_text(json.dumps(said), "utf-8")
    script = ROOT / "tests" / "annotate" / "argilla_client.py"
    done = subprocess.run(
        [str(python), str(script), str(folder), str(tmp_path / "said.json"), str(tmp_path)],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1])[0] == "stance"
    (tmp_path / "users.json").write_text(json.dumps({ALICE: "alice", BOB: "bob"}))

    nested = take_in(path, tmp_path / "nested.json", "argilla", "--blind", code=1, document=True)
    assert nested["new"] == {} and nested["held"] == 11 and all_labels(path) == set(), "it has no status"
    came = take_in(path, tmp_path / "flat.json", "argilla", "--blind")
    assert came["new"] == {"alice": 6, "bob": 3} and came["skips"] == 1 and came["remarks"] == {"drafts": 1}
    assert came["unproven"] == 0, "every record carries its texts, and they are the study's"
    told = {(who, unit): value for unit, _, who, layer, _, value in all_labels(path) if layer == "first"}
    assert told == {("alice", u): words[i % 3] for i, u in enumerate(units)} | {
        ("bob", u): words[i] for i, u in enumerate(units[:3])
    }
    again = take_in(path, tmp_path / "flat.json", "argilla", "--blind")
    assert again["new"] == {} and again["unchanged"] == 9

    rows = json.loads((tmp_path / "flat.json").read_text("utf-8"))
    rows[0]["passage"] += " Not."
    rows[0]["stance.responses"][0] = "neutral"
    (tmp_path / "edited.json").write_text(json.dumps(rows), "utf-8")
    take_in(path, tmp_path / "edited.json", "argilla", "--blind", "--latest", code=1)
    query = "SELECT code FROM quarantine WHERE status = 'open' AND unit = ?"
    assert ("text",) in rows_of(path, query, units[0])
    assert {(who, unit): value for unit, _, who, _, _, value in all_labels(path)} == told
