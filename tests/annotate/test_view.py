"""annotate view: what the page holds, and above all what it does not hold."""

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from judge.console import unit_link
from judge.store import Store
from tests.annotate.agreement_helpers import annotate
from tests.annotate.agreement_helpers import judge as judge_command
from tests.annotate.report_helpers import NASTY, U, study


def data_of(page: Path) -> dict[str, Any]:
    """The data of a page: its index, with the rows (by id) and the texts of all parts."""
    pattern = r'<script type="application/json" id="data-([\w-]+)">(.*?)</script>'
    parts = {name: json.loads(text) for name, text in re.findall(pattern, page.read_text("utf-8"), re.S)}
    data: dict[str, Any] = parts.pop("rows")
    rows = [row for name, part in parts.items() if name.startswith("row-") for row in part]
    data["texts"] = [text for name, part in parts.items() if name.startswith("text-") for text in part]
    data["rows"] = {unit: row for (unit, _), row in zip(data["rows"], rows, strict=True)}
    return data


def labels_of(data: dict[str, Any], unit: str) -> list[tuple[str, str]]:
    """(who, label) of a unit of a page."""
    return [(label[0], label[3]) for label in data["rows"][unit]["labels"]]


def text_of(data: dict[str, Any], unit: str) -> str:
    """All texts of a unit of a page, without their marks."""
    pieces = [piece for _, _, index in data["rows"][unit]["texts"] for piece in data["texts"][index]]
    return "".join(piece if isinstance(piece, str) else piece[0] for piece in pieces)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Six units in three questions. The judge's reasons are canaries: their bytes show whether a label is in a file."""
    made = [
        U(
            "support",
            {"ann": "support"} if i < 2 else {},
            {"m/one": ("refute", 0.75, f"CANARY-{i}")},
            f"Claim {i // 2} on tomatoes",
            f"Passage {i} on tomatoes.",
            f"q{i // 2}",
        )
        for i in range(6)
    ]
    return study(tmp_path / "study.db", made)


def test_a_page_has_texts_labels_sources_and_reasons(tmp_path: Path, db: Path) -> None:
    page = tmp_path / "page.html"
    assert "6 units" in annotate("view", "-d", db, "-o", page).stderr
    data = data_of(page)
    assert labels_of(data, "study:0/p") == [("m/one", "refute"), ("ann", "support"), ("gold", "support")]
    # Words of the claim are highlighted in the passage.
    row = data["rows"]["study:0/p"]
    assert data["texts"][row["texts"][1][2]] == ["Passage 0 on ", ["tomatoes", "h"], "."]
    judge = ["m/one", "judge", "stance", "refute", 0.75, "run", "CANARY-0"]
    assert judge in row["labels"]
    # The claim that two passages share is in the file once.
    assert len(data["texts"]) == 3 + 6
    assert "default-src 'none'" in html.unescape(page.read_text("utf-8"))


def test_units_that_wait_for_a_blind_label_have_none(tmp_path: Path, db: Path) -> None:
    annotate("batches", "new", "pilot", "stance", "-n", "4", "--annotators", "ann,bob", "--fresh", "-d", db)
    with Store.open(db, create=False) as store:
        drawn = {u for (u,) in store.conn.execute("SELECT unit_id FROM assignments")}
        # Bob has finished one unit, and ann has skipped one: a skip can be taken back.
        [done, skipped, *_] = sorted(drawn)
        with store.transaction() as conn:
            conn.execute("UPDATE assignments SET status = 'done' WHERE unit_id = ?", [done])
            conn.execute("UPDATE assignments SET status = 'skipped' WHERE unit_id = ?", [skipped])
    assert len(drawn) == 4, "units 0 and 1 were labelled by ann before"
    page = tmp_path / "page.html"
    message = annotate("view", "-d", db, "-o", page).stderr
    assert "labels of 3 units are left out" in message and "--reveal NAME" in message
    held = {f"CANARY-{unit[6]}" for unit in drawn - {done}}
    text = page.read_bytes().decode()
    assert not [canary for canary in held if canary in text]
    data = data_of(page)
    for unit in drawn - {done}:
        row = data["rows"][unit]
        assert row["texts"] and not row["labels"]
        assert row["notes"] == ["This unit waits for a blind label: its labels are not in this page."]
    assert labels_of(data, done) == [("m/one", "refute"), ("gold", "support")]
    # The batch is over: nobody waits any more.
    annotate("batches", "close", "pilot", "-d", db)
    assert "left out" not in annotate("view", "-d", db, "-o", page).stderr


def test_units_that_an_open_batch_will_still_draw_wait_as_well(tmp_path: Path) -> None:
    """160 passages, drawn until the verdict is decided: 100 are handed out, and 50 more come next without a new draw."""
    rows = [
        {"id": str(n), "claim": f"Claim {n}.", "passages": [{"id": "p", "text": f"Passage {n}."}]}
        for n in range(160)
    ]
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    db, page = tmp_path / "study.db", tmp_path / "page.html"
    judge_command("items", "import", "jsonl", tmp_path / "items.jsonl", "--dataset", "d", "-d", db)
    judge_command("run", "stance", "-m", "scripted/hash", "-d", db)
    annotate("batches", "new", "b", "stance", "-n", "150", "--until-decided", "--annotators", "ann", "-d", db)
    assert "labels of 150 units are left out" in annotate("view", "-d", db, "-o", page).stderr
    data = data_of(page)
    shown = {unit for unit in data["rows"] if labels_of(data, unit)}
    annotate("batches", "extend", "b", "--to", "150", "-d", db)
    with Store.open(db, create=False) as store:
        drawn = {unit for (unit,) in store.conn.execute("SELECT unit_id FROM assignments")}
    assert len(drawn) == 150 and len(shown) == 10 and not shown & drawn
    annotate("batches", "close", "b", "-d", db)
    assert "left out" not in annotate("view", "-d", db, "-o", page).stderr


def test_gold_of_an_item_waits_with_its_passages(tmp_path: Path) -> None:
    """An item with a gold verdict, judged as a whole; a passage of it waits for a blind label of another task."""
    rows = [
        {
            "id": "1",
            "claim": "A claim.",
            "gold": {"verdict": "GOLDCANARY"},
            "passages": [{"id": "p", "text": "P."}],
        }
    ]
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    task = tmp_path / "verdict.v1.md"
    task.write_text(
        "---\ntitle: True?\nunit: item\ninputs: [claim]\nquestions:\n  - field: verdict\n    labels: [{value: GOLDCANARY}, "
        "{value: other}]\n---\nTrue?\n<!-- unit -->\n{{ claim }}\n{{ answer_cue }}\n",
        "utf-8",
    )
    db, page = tmp_path / "study.db", tmp_path / "page.html"
    judge_command("items", "import", "jsonl", tmp_path / "items.jsonl", "--dataset", "d", "-d", db)
    judge_command("run", task, "-m", "scripted/hash", "-d", db)
    annotate("view", "--task", "verdict", "-d", db, "-o", page)
    assert b"GOLDCANARY" in page.read_bytes()
    annotate("batches", "new", "pilot", "stance", "-n", "1", "--annotators", "ann", "-d", db)
    annotate("view", "--task", "verdict", "-d", db, "-o", page)
    assert b"GOLDCANARY" not in page.read_bytes()


def test_what_is_revealed_is_noted_and_the_label_is_not_blind(tmp_path: Path, db: Path) -> None:
    page = tmp_path / "page.html"
    annotate("view", "--reveal", "cy", "--reveal", "lead", "-d", db, "-o", page)
    data = data_of(page)
    assert all(labels_of(data, f"study:{i}/p") for i in range(6))
    with Store.open(db, create=False) as store:
        query = "SELECT person, what, field, count(*) FROM exposures WHERE how = 'view' GROUP BY 1, 2, 3 ORDER BY 1, 2"
        noted = store.conn.execute(query).fetchall()
    # Six units with gold and the judge; two of them with a label of ann.
    each = [("gold", "stance", 6), ("judge", "", 6), ("labels", "", 2)]
    assert noted == [(who, *row) for who in ("cy", "lead") for row in each]
    failed = annotate("batches", "new", "pilot", "stance", "-n", "6", "--annotators", "cy", "-d", db, code=2)
    assert "a page of `annotate view --reveal` showed" in failed.stderr
    annotate(
        "batches", "new", "pilot", "stance", "-n", "6", "--annotators", "cy", "--allow-exposed", "-d", db
    )
    assert "left out" not in annotate("view", "--reveal", "cy", "-d", db, "-o", page).stderr
    assert all(labels_of(data_of(page), f"study:{i}/p") for i in range(6))


def test_text_stays_text_and_links_lead_to_units(tmp_path: Path) -> None:
    rtl = "אבג \u202e hidden \u2067 " + "x" * 30_000
    units = [
        U(
            "support",
            {"ann": "refute"},
            {"</script><b>m": ("refute", 0.9, NASTY)},
            NASTY,
            f"{i} {NASTY} {rtl}",
            f"q{i}",
        )
        for i in range(3)
    ]
    db, page, report = (
        study(tmp_path / "s.db", units, name="d/#?&<i>"),
        tmp_path / "my page.html",
        tmp_path / "r.html",
    )
    annotate("view", "-d", db, "-o", page)
    text = page.read_text("utf-8")
    # The page's own script, and the parts of its data: the index, three rows and their texts.
    assert text.count("<script") == 4 and text.count("</script>") == 4
    assert "\u202e" not in text and "\u2067" not in text and "\x07" not in text
    data = data_of(page)
    assert "x" * 30_000 in text_of(data, "d/#?&<i>:0/p")
    annotate("report", "--view", page.name, "-d", db, "-o", report, "-o", tmp_path / "r.md")
    link = unit_link(page.name, "d/#?&<i>:0/p")
    assert link == "my%20page.html#d%2F%23%3F%26%3Ci%3E%3A0%2Fp"
    assert f'<a href="{link}">' in report.read_text("utf-8")
    assert f"(<{link}>)" in (tmp_path / "r.md").read_text("utf-8")


def test_refusals_say_what_to_do(tmp_path: Path, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.html"
    failed = annotate("view", "-d", db, "-o", tmp_path / "p.txt", code=2).stderr
    assert failed.endswith("unknown file extension; use one of .html, .htm\n")
    assert "--sample requires -n" in annotate("view", "-d", db, "--sample", "1", "-o", page, code=2).stderr
    assert "no batch 'x'" in annotate("view", "-d", db, "--batch", "x", "-o", page, code=2).stderr
    assert "available: stance.v2" in annotate("view", "-d", db, "--task", "x", "-o", page, code=2).stderr
    assert "no unit of stance.v2" in annotate("view", "-d", db, "--where", "0", "-o", page, code=2).stderr
    monkeypatch.setattr("annotate.view.units.MOST", 5)
    assert "at most 5" in annotate("view", "-d", db, "-o", page, code=2).stderr
    annotate("view", "-d", db, "-n", "5", "--sample", "1", "-o", page)
    assert len(data_of(page)["rows"]) == 5


def test_a_judge_on_a_sealed_test_is_left_out(tmp_path: Path) -> None:
    # Claims and passages of one text would be one question: a split keeps equal words together.
    words = [a + b for a in "abcd" for b in "abcdefghij"]
    units = [
        U(
            "support" if i % 2 else "refute",
            {},
            {"m": ("refute", 0.9, f"CANARY-{i:02d}.")},
            f"Claim {word}",
            f"Passage {word}",
            f"q{i}",
        )
        for i, word in enumerate(words)
    ]
    db, page = study(tmp_path / "s.db", units), tmp_path / "page.html"
    judge_command("split", "stance", "-d", db)
    annotate("view", "-d", db, "-o", page)
    # Shares .2 learn, .2 tune, .6 test: of 40 questions 16 are open.
    assert len(re.findall(r"CANARY-\d\d\.", page.read_text("utf-8"))) == 16
