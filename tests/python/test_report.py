"""The report in a notebook: verdict and drawings inline, what came from elsewhere escaped, no script."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from adjudge import Outcome, Report, Study
from judge.errors import UsageError

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>{{ 7*7 }}</style>"


@pytest.fixture
def report(tmp_path: Path) -> Report:
    """Twenty units, a judge that always says the first label, people and texts with markup in them."""
    study = Study(tmp_path / "x.db")
    study.items([
        {"id": f"{n}", "claim": f"{EVIL} {n}", "passages": [
            {"text": f"{EVIL} p{n}", "votes": {"stance": {f"ann{EVIL}": label, "bob": label}}}
        ]}
        for n, label in enumerate(["support", "refute", "neutral", "support"] * 5)
    ])  # fmt: skip
    study.run("stance", model="scripted/first", asked_as=f"judge {EVIL}", progress=False)
    return study.report(field="stance")


def test_nothing_of_others_is_markup_and_nothing_runs(report: Report) -> None:
    html = report._repr_html_()
    assert "judge &lt;script&gt;" in html, "it is shown"
    assert "{{ 7*7 }}" in html, "and stays text"
    # Well-formed: what is open is closed, so that the notebook after it stays as it was.
    body = re.sub(r"<style>.*?</style>", "", html, flags=re.S)
    assert "<" not in html.split("<style>")[1].split("</style>")[0]
    for element in ElementTree.fromstring(body).iter():
        tag = element.tag.rpartition("}")[2]
        assert tag not in (
            "script",
            "img",
            "iframe",
            "object",
            "embed",
            "link",
            "meta",
            "base",
            "form",
            "style",
        )
        for name, value in element.attrib.items():
            name = name.rpartition("}")[2]
            assert not name.startswith("on"), name
            assert name not in ("src", "href") or value.startswith("#"), "nothing is fetched"


def test_the_verdict_and_the_drawings_stand_in_it(report: Report) -> None:
    html = report._repr_html_()
    (ruling,) = report.document.rulings
    assert f'class="ruling {ruling.decision.replace(" ", "-")}"' in html
    assert html.count("<svg") >= 2
    assert report.verdicts["decision"].tolist() == [ruling.decision]
    # Ids of two reports in one notebook must not meet.
    ids = re.findall(r'\sid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert all(name.startswith("adjudge-") for name in ids)


def test_the_style_is_for_its_own_element_only(report: Report) -> None:
    (style,) = re.findall(r"<style>(.*?)</style>", report._repr_html_(), re.S)
    assert style.startswith(".adjudge-report {") and style.endswith("}")
    depth = 0
    for number, sign in enumerate(style):
        depth += (sign == "{") - (sign == "}")
        assert depth > 0 or number in range(len(".adjudge-report ")) or number == len(style) - 1
    assert not re.search(r"(?:^|[\s;}])(?::root|html|body)\s*\{", style) and "@page" not in style


def test_a_report_is_saved_as_the_command_writes_it(report: Report, tmp_path: Path) -> None:
    report.save(tmp_path / "r.html", tmp_path / "r.md")
    assert (tmp_path / "r.html").read_text("utf-8").startswith("<!doctype html>")
    assert (tmp_path / "r.md").read_text("utf-8") == report.text("md")
    with pytest.raises(UsageError, match=r"the extension must be one of \.html"):
        report.save(tmp_path / "other.html", tmp_path / "r.docx")
    assert not (tmp_path / "other.html").exists()
    with pytest.raises(UsageError, match="no format 'pdf'"):
        report.text("pdf")
    assert {"section", "value", "coverage", "n_units"} <= set(report.measures.columns)


def test_the_options_of_a_report_are_checked(tmp_path: Path) -> None:
    study = Study(tmp_path / "x.db")
    with pytest.raises(UsageError, match="no option 'fields'"):
        study.report(fields="stance")
    with pytest.raises(UsageError, match="epsilon= sharp: must be one of expert"):
        study.report(epsilon="sharp")


def test_an_outcome_escapes_its_cells() -> None:
    shown = Outcome(EVIL, {}, [{EVIL: EVIL, "n": 0.5, "none": None}], [EVIL])._repr_html_()
    assert "<script" not in shown and "<img" not in shown
    assert "0.500" in shown
    assert Outcome("t", {}, [{"a": None}]).frame["a"].isna().all()
    with pytest.raises(UsageError, match="no page"):
        Outcome("t", {}).save("x.html")
