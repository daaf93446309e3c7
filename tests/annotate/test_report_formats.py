"""The five formats: the same content, and nothing in a passage, a rationale or a name is anything but text."""

import csv
import importlib.metadata
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from annotate.report import FORMATS, ReportOptions, build
from judge.console import visible
from judge.document import csv as table
from judge.document import html, latex, markdown
from judge.document.blocks import Column, Document, Paragraph, Section, Table
from judge.document.cells import brief, grid, p_value, share
from judge.notes import Note
from judge.store import Store
from judge.types import Measure
from tests.annotate.agreement_helpers import annotate, checked
from tests.annotate.report_helpers import NASTY, U, add_label, study

S, R = "support", "refute"
PERSON = "eve|<b>$_{\\x}"


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study in which passage, claim, rationale, model and annotator's names are all hostile."""
    made = [
        U(
            S if i % 2 else R,
            {PERSON: S if i % 2 else R, "bob": S if i % 3 else R},
            {"m/<i>judge|$": (S if i % 5 else R, 0.8, f"Why: {NASTY}")},
            claim=f"Claim {i}: {NASTY}",
            text=f"Passage {i}: {NASTY}",
        )
        for i in range(12)
    ]
    path = study(tmp_path_factory.mktemp("study") / "study.db", made)
    add_label(path, "study:0/p", "stance", "bob", S, layer="revised")
    return path


@pytest.fixture(scope="module")
def document(db: Path) -> Document:
    with Store.open(db, create=False) as store:
        return build(store, ReportOptions())


@pytest.fixture(scope="module")
def texts(document: Document) -> dict[str, str]:
    return {name: render(document) for name, render in FORMATS.items()}


class Text(HTMLParser):
    """Tags and text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in_style = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False

    def handle_data(self, data: str) -> None:
        if not self._in_style:
            self.text += data


def test_html_shows_hostile_text_as_text_and_loads_nothing(texts: dict[str, str]) -> None:
    page = Text()
    page.feed(texts["html"])
    assert visible(f"Passage 2: {NASTY}") in page.text and visible(f"Why: {NASTY}") in page.text
    assert PERSON in page.text and "m/<i>judge|$" in page.text
    names = {tag for tag, _ in page.tags}
    # The one script is ours, and the policy allows no other: it has the hash of this script.
    script = (Path(html.__file__).parent / "page.js").read_text()
    assert texts["html"].count("<script>") == texts["html"].count(f"<script>{script}</script>") == 1
    loading = ("img", "link", "iframe", "object", "embed", "base", "audio", "video")
    assert not [name for name in (*loading, "i", "form", "input") if name in names]
    for tag, attributes in page.tags:
        assert "style" not in attributes and not any(name.startswith("on") for name in attributes), (
            tag,
            attributes,
        )
        assert "src" not in attributes
        if "href" in attributes:
            assert (attributes["href"] or "").startswith("#"), attributes


def test_html_is_marked_up_for_everybody(texts: dict[str, str]) -> None:
    page = Text()
    page.feed(texts["html"])
    of = {tag: [a for t, a in page.tags if t == tag] for tag in {t for t, _ in page.tags}}
    assert of["html"][0]["lang"] == "en" and len(of["h1"]) == 1 and len(of["main"]) == 1
    policy = next(a["content"] for a in of["meta"] if a.get("http-equiv") == "Content-Security-Policy")
    assert (
        policy is not None
        and policy.startswith("default-src 'none'; style-src 'sha256-")
        and "script-src 'sha256-" in policy
        and "unsafe" not in policy
    )
    assert len(of["caption"]) == len(of["table"])
    assert all(a.get("scope") in ("col", "row") for a in of["th"])
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids)), "ids are unique, those of the drawings too"
    assert all((a["href"] or "")[1:] in ids for a in of["a"])
    for drawing in of["svg"]:
        assert drawing["role"] == "img"
        assert all(name in ids for name in (drawing["aria-labelledby"] or "").split())


def test_markdown_keeps_hostile_text_in_its_cell(texts: dict[str, str], document: Document) -> None:
    text = texts["md"]
    assert not [hostile for hostile in ("<script", "<img", "<b>", "\x07", "\u202e") if hostile in text]
    assert "&lt;script&gt;alert('x')&lt;/script&gt;" in text and "\\u202egnp.exe" in text
    assert "http://" not in text.replace("https://", ""), "no bare address becomes a link"
    # A row of a table has as many unescaped bars as its head.
    lines = text.split("\n")
    for i, line in enumerate(lines):
        if re.fullmatch(r"\|(\s*-{3}:?\s*\|)+", line):
            width = bars(line)
            j = i - 1
            while lines[j].startswith("|"):
                assert bars(lines[j]) == width, lines[j]
                j += 1
    # Only our own headings: no line of a passage starts one, nor a list, nor a code fence.
    heads = [line for line in lines if line.startswith("#")]
    assert all(re.match(r"#{1,3} (\d+\. unit |[A-Z])", line) for line in heads)
    assert not [line for line in lines if line.startswith(("```", "    "))]
    assert "> \\# heading" in text and "> \\- item" in text and "> \\`\\`\\`" in text
    assert f"**{document.rulings[0].decision}**" in text


def bars(line: str) -> int:
    return len(re.findall(r"(?<!\\)\|", line))


def test_markdown_escapes() -> None:
    assert markdown.text("a|b *c* _d_ <e> [f](g) `h` \\ $i$ #j") == (
        r"a\|b \*c\* \_d\_ &lt;e&gt; \[f\](g) \`h\` \\ \$i\$ \#j"
    )
    assert markdown.text("1. x") == "1\\. x" and markdown.text("0.629 (0.6 to 0.7)") == "0.629 (0.6 to 0.7)"
    assert markdown.text("- x") == "\\- x" and markdown.text("a - b") == "a - b"
    assert markdown.text("a\nb\x1b[0m") == "a b\\\\x1b\\[0m"


def test_json_follows_its_schema_and_refers_to_its_measures(db: Path, texts: dict[str, str]) -> None:
    result = checked(texts["json"])
    assert result["verdicts"][0]["judge"] == "m/<i>judge|$" and result["people"] == ["bob", PERSON]
    kappa = result["measures"][result["verdicts"][0]["measures"][0]]
    assert kappa["measure"] == "pooled_kappa_difference" and kappa["section"] == "verdict"
    cases = next(b for s in result["sections"] for b in s["blocks"] if b["kind"] == "cases")
    assert cases["rows"][0]["shown"]["passage"].endswith(NASTY), "JSON is lossless"
    assert "\u202e" not in texts["json"] and "\\u202e" in texts["json"]
    same = annotate("report", "-d", db, "--json").stdout
    assert checked(same)["measures"] == result["measures"]


def test_csv_is_one_long_table(texts: dict[str, str], document: Document) -> None:
    rows = list(csv.DictReader(io.StringIO(texts["csv"])))
    assert (rows[0]["section"], rows[0]["row"], rows[0]["text"]) == ("about", "study", "study.db")
    first = next(r for r in rows if r["section"] != "about")
    assert (first["section"], first["table"], first["column"], first["text"]) == (
        "verdict",
        "verdict",
        "decision",
        document.rulings[0].decision,
    )
    kappa = next(
        r
        for r in rows
        if r["table"] == "agreement_1" and r["row"] == "gold" and r["column"] == "Cohen's kappa"
    )
    assert kappa["measure"] == "cohen_kappa" and float(kappa["value"]) and int(kappa["n_units"]) == 12
    passages = [r["text"] for r in rows if r["column"] == "passage"]
    assert passages and all(visible(NASTY) in p for p in passages)
    assert json.loads(kappa["annotators"]) == ["m/<i>judge|$", "gold"], "names hold any separator"
    # What stands beside the tables is there too, as text that no cell holds.
    beside = {r["text"] for r in rows if r["column"] in ("note", "text", "drawing")}
    for section in document.sections:
        for block in section.blocks:
            if isinstance(block, Paragraph) and block.style != "quote":
                assert visible(block.text) in beside
        assert {visible(note) for table in section.tables() for note in table.notes} <= beside
    assert set(document.reading) <= beside
    # Every number of the document is there.
    kept = sum(1 for r in rows if r["measure"])
    assert kept >= len(document.measures())


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-x", "@SUM(A1)", "\tx"])
def test_csv_cells_are_no_formulas(tmp_path: Path, cell: str) -> None:
    made = [U(S if i % 2 else R, {}, {"m/judge": S}, claim=cell) for i in range(4)]
    with Store.open(study(tmp_path / "study.db", made), create=False) as store:
        text = FORMATS["csv"](build(store, ReportOptions()))
    claims = [r["text"] for r in csv.DictReader(io.StringIO(text)) if r["column"] == "claim"]
    assert claims and all(
        not c.startswith(("=", "@", "\t", "-x", "+1")) for c in claims if c.lstrip("'") != "+1"
    )


@pytest.mark.parametrize(
    "cell",
    [
        '+1 +HYPERLINK("http://x")',
        "-1 +cmd|'/C calc'!A0",
        "-1+cmd|'/C calc'!A0",
        "-0.5 (=1 to 2)",
        "-0.5 (-1.0 to 2.0)+A1",
        "-inf",
        "+1e5+A1",
        "-1\n=2",
    ],
)
def test_only_a_number_may_start_like_a_formula(cell: str) -> None:
    assert table.csv_cell(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["-0.123", "+1,234", "-0.5 (-0.8 to +0.2)", -0.5, None, "a = b"])
def test_numbers_stay_numbers_in_csv(cell: str | float | None) -> None:
    assert table.csv_cell(cell) == cell


def test_latex_escapes_every_special_character(texts: dict[str, str]) -> None:
    assert latex.text("a_b & 5% $x$ #1 {c} \\input ~ ^ <d> | \"q\" 'r' --- [e]") == (
        r"a\_b \& 5\% \$x\$ \#1 \{c\} \textbackslash{}input \textasciitilde{} \textasciicircum{} \textless{}d\textgreater{} "
        r"\textbar{} \symbol{34}q\symbol{34} {\textquotesingle}r{\textquotesingle} {-}{-}{-} {[}e{]}"
    )
    text = texts["tex"]
    whole = text.replace(r"\allowbreak{}", "")
    assert r"\textbackslash{}input\{/etc/passwd\}" in whole and r"\input{/etc" not in whole
    assert text.count(r"\begin{table}") + text.count(r"\begin{longtable}") == text.count(r"\bottomrule") > 10
    # Our own commands only: what follows a backslash is one of them or an escaped character.
    commands = set(re.findall(r"\\([A-Za-z]+|.)", re.sub(r"(?m)^%.*$", "", text)))
    ours = set(
        re.findall(
            r"\w+",
            "begin end caption label ref toprule midrule bottomrule addlinespace endfirsthead endhead centering small "
            "footnotesize scriptsize textbf par smallskip linewidth paragraph begingroup endgroup sloppy "
            "raggedright arraybackslash setlength tabcolsep allowbreak symbol textsuperscript textbackslash "
            "textasciitilde textasciicircum textless textgreater textbar textquotesingle textasciigrave "
            "textperiodcentered ldots",
        )
    )
    assert commands <= ours | set("_&%$#{}\\"), commands


def test_all_formats_have_the_verdict_and_its_rule(texts: dict[str, str], document: Document) -> None:
    rule = document.rulings[0].rule
    assert rule in json.loads(texts["json"])["verdicts"][0]["rule"]
    for name, text in (("md", markdown.text(rule)), ("tex", latex.text(rule)), ("csv", rule)):
        assert text in texts[name], name


def test_a_table_puts_reasons_and_notes_into_remarks() -> None:
    missing = Measure("cohen_kappa", None, 0, 0.0, reason="no unit is labelled by both")
    good = Measure(
        "cohen_kappa",
        0.5,
        40,
        0.8,
        20,
        0.25,
        0.75,
        notes=(Note("few_questions", n=20, least=30),),
    )
    result = grid(
        Table(
            "t",
            "T",
            [Column("who"), Column("kappa", "brief"), Column("", "n")],
            [["x", good, good], ["y", missing, missing]],
        )
    )
    assert result.heads == ("who", "kappa", "units", "questions", "coverage")
    assert [c.flat for c in result.rows[0]] == ["x", "0.500 (0.250 to 0.750)", "40", "20", "80.0 %"]
    assert result.rows[0][1].marks == "a" and result.rows[1][1].marks == "b"
    # The count of questions stands in a column of its own.
    assert result.remarks == (
        ("a", "fewer than 30 questions: the interval is too narrow"),
        ("b", "undefined: no unit is labelled by both"),
    )
    assert [c.flat for c in result.rows[1]] == ["y", "undefined", "0", "", "0 %"]


def test_numbers_are_never_rounded_to_what_they_are_not() -> None:
    assert brief(Measure("m", -0.0001, 1)) == ("0.000", "")
    assert (share(0.9999), share(1.0), share(0.0001), share(0.0)) == ("99.9 %", "100 %", "0.1 %", "0 %")
    assert (p_value(0.0004), p_value(0.04)) == ("< 0.001", "0.040")


def test_the_command_writes_markdown_to_stdout(db: Path) -> None:
    assert annotate("report", "-d", db).stdout.startswith(
        "# How far can this judge be trusted on 'stance'?\n"
    )


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("-o", "x.docx"), 2, "the file extension must be"),
        (("--epsilon", "two"), 2, "--epsilon two"),
        (("--batch", "pilot"), 2, "no batch 'pilot'; the study has no batches"),
        (("--judge", "nobody"), 2, "called 'nobody'"),
        (("--task", "nothing"), 2, "unknown task 'nothing'"),
        (("--field", "nothing"), 2, "nobody labelled 'nothing'; fields with labels: stance"),
        (("--reference", "adjudicated"), 2, "available references: gold, majority"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(db: Path, args: tuple[str, ...], code: int, message: str) -> None:
    done = annotate("report", "-d", db, *args, code=code)
    assert message in done.stderr and done.stderr.count("\n") == 1


def test_every_format_says_how_its_numbers_were_made(db: Path, tmp_path: Path) -> None:
    # Settings of judge.stats.bootstrap: 95 %, 2,000 resamples, seed 0; crowd is 0.1 in annotate.cli.report.
    version = importlib.metadata.version("adjudge")
    outputs = {suffix: tmp_path / f"report.{suffix}" for suffix in FORMATS}
    parts = (part for path in outputs.values() for part in ("-o", path))
    annotate("report", "-d", db, "--epsilon", "crowd", *parts)
    for suffix, path in outputs.items():
        text = path.read_text("utf-8").replace(r"\%", "%").replace("{-}", "-")
        assert f"adjudge {version}" in text, suffix
        if suffix == "json":
            made = checked(text)["settings"]
            assert (made["epsilon"], made["epsilon_name"], made["seed"]) == (0.1, "crowd", 0)
            assert (made["confidence"], made["replicates"], made["resampled"]) == (0.95, 2000, "units")
        else:
            assert "epsilon 0.1 (crowd)" in text, suffix
            assert "BCa bootstrap elsewhere (2,000 resamples of units, seed 0)" in text, suffix
        assert "Intervals are 95 % intervals" in text and "Coverage is the share" in text, suffix


def test_many_annotators_are_counted_in_csv_and_few_are_named() -> None:
    # Nine names are more than the eight that a cell names.
    many = Measure("percent", 0.5, 10, annotators=tuple(f"w{i}" for i in range(9)))
    few = Measure("percent", 0.5, 10, annotators=("a | b", 'c", "d'), notes=("x; y", "z"))
    made = Table("t", "T", [Column("of"), Column("value", "brief")], [["many", many], ["few", few]])
    document = Document("T", [], [], "", [Section("s", "S", [made])])
    first, second = csv.DictReader(io.StringIO(table.render(document)))
    assert (first["row"], first["annotators"], first["notes"]) == ("many", "9 annotators", "")
    assert json.loads(second["annotators"]) == ["a | b", 'c", "d'] and json.loads(second["notes"]) == [
        "x; y",
        "z",
    ]


MANY_OF_ONE = re.compile(
    r"(?<![\d.,–-])1 (more )?(units|labels|pairs|people|questions|rows|others|annotators|steps)\b"
)


@pytest.mark.parametrize("limit", [1, 50])
@pytest.mark.parametrize("wrong", [1, 2])
def test_one_is_not_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: int, limit: int) -> None:
    # ann and bob differ on unit 0 alone (one tie, one unit without majority); the judge is wrong on the first
    # `wrong` of eight; cy labelled one unit.
    made = [
        U(
            S if i % 2 else R,
            {"ann": S if i % 2 else R, "bob": S if i % 2 or i == 0 else R, **({"cy": S} if i == 3 else {})},
            {"m/judge": (R if i % 2 else S) if i < wrong else (S if i % 2 else R)},
        )
        for i in range(8)
    ]
    with Store.open(study(tmp_path / "study.db", made), create=False) as store:
        monkeypatch.setattr("annotate.report.cases.MOST_LISTED", limit)
        document = build(store, ReportOptions())
    texts = {name: render(document) for name, render in FORMATS.items()}
    for name, text in texts.items():
        result = [text[m.start() - 60 : m.end() + 20] for m in MANY_OF_ONE.finditer(text)]
        assert not result, name
    assert "1 unit has no majority label" in texts["md"]
    whole = texts["csv"] + texts["json"]
    assert "the first 0 of" not in whole
    shown = {
        (1, 1): "the one unit on which they differ",
        (1, 50): "the one unit on which they differ",
        (2, 1): "the first 1 of 2 units on which they differ",
        (2, 50): "all 2 units on which they differ",
    }[wrong, limit]
    assert shown in whole
