"""Plugins by entry points: an example package installed beside us, and broken ones that stop nothing else."""

import csv
import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from judge import plugins
from judge.errors import UsageError
from tests.cli.helpers import Done, checked
from tests.real import ROOT, require

Judge = Callable[..., Done]
EXAMPLE = Path(__file__).parent / "example"
DATA = ROOT / "data" / "examples"


def install(folder: Path, name: str, version: str, points: str, **modules: str) -> None:
    """What an installer leaves of a package: its modules, and a dist-info with its entry points."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "utf-8")
    (info / "entry_points.txt").write_text(points, "utf-8")
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text, "utf-8")
    importlib.invalidate_caches()


def points_of(project: Path) -> str:
    """The entry points of a pyproject.toml as its wheel has them."""
    import tomllib

    groups = tomllib.loads(project.read_text("utf-8"))["project"]["entry-points"]
    return "".join(
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in points.items())
        for group, points in groups.items()
    )


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path of modules, empty; what came from it is forgotten afterwards."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    # Two tests can write modules of one path, size and second, which compiled files do not tell apart.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    yield folder
    from judge.stats import METRICS

    METRICS._from_plugins.clear()  # type: ignore[attr-defined]
    for name in set(sys.modules) - before:
        if name.startswith(("adjudge_example", "broken_", "lacks_", "other_")):
            del sys.modules[name]


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example as an installer leaves it: built by its own backend, from a copy without what lies about."""
    folder = tmp_path_factory.mktemp("installed")
    shutil.copytree(EXAMPLE, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    words = ("pip", "install", "--quiet", "--no-deps", "--target", folder / "site", folder / "source")
    subprocess.run([require("uv"), *words], check=True, timeout=300)
    return folder / "site"


@pytest.fixture(params=["sources", pytest.param("installed", marks=pytest.mark.real)])
def example(site: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """The example package: its sources with the entry points of its pyproject.toml, or installed for real."""
    if request.param == "installed":
        monkeypatch.syspath_prepend(str(request.getfixturevalue("installed")))
        importlib.invalidate_caches()
    else:
        monkeypatch.syspath_prepend(str(EXAMPLE))
        install(site, "adjudge-example", "1.2.3", points_of(EXAMPLE / "pyproject.toml"))


def problems_of(judge: Judge) -> dict[str, Any]:
    """What each plugin lacks, by its name, as the JSON document has it."""
    return {row["name"]: row["problem"] for row in checked(judge("plugins", "--json").out, "plugins")["rows"]}


def test_plugins_are_listed_with_their_origin(example: None, judge: Judge) -> None:
    rows = checked(judge("plugins", "--json").out, "plugins")["rows"]
    assert [(r["kind"], r["name"], r["package"], r["problem"]) for r in rows] == [
        (kind, name, "adjudge-example 1.2.3", None)
        for kind, name in (
            ("providers", "echo"), ("importers", "lines"), ("exchange", "tally"), ("measures", "bennett_s"), ("papers", "refusals"),
        )
    ]  # fmt: skip


def test_without_plugins_there_are_none(judge: Judge) -> None:
    assert checked(judge("plugins", "--json").out, "plugins")["rows"] == []


def test_a_provider_of_a_plugin(example: None, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {r["vendor"]: r for r in checked(judge("models", "show", "--json").out, "models")["rows"]}
    assert rows["echo"] == {
        "vendor": "echo", "ready": False, "needs": "ECHO_KEY in the environment", "models": "echo/support",
    }  # fmt: skip
    monkeypatch.setenv("ECHO_KEY", "x")
    rows = {r["vendor"]: r for r in checked(judge("models", "show", "--json").out, "models")["rows"]}
    assert rows["echo"]["ready"] is True
    judge("items", "import", "jsonl", DATA / "pairs.jsonl")
    ran = json.loads(judge("run", "stance", "-m", "echo/refute", "--json").out)
    assert ran["labelled"] == ran["units"] == 4
    shown = judge("runs", "export", ran["run"]).out
    assert shown.count("refute") >= 4


def test_an_importer_of_a_plugin(example: None, judge: Judge, tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("Who? | She. | He.\nWhere? | Here.\n", "utf-8")
    judge("items", "import", "lines", "q.txt")
    rows = json.loads(judge("items", "show", "--json").out)["rows"]
    assert [(r["item_id"], r["passages"]) for r in rows] == [("q:1", 2), ("q:2", 1)]
    (tmp_path / "bad.txt").write_text("Who?\n", "utf-8")
    assert (
        "bad.txt:1: a question without a passage" in judge("items", "import", "lines", "bad.txt", code=1).err
    )


def test_a_measure_of_a_plugin(example: None, tmp_path: Path) -> None:
    # 10 units, 2 labels, 8 alike: S = (2 * 0.8 - 1) / (2 - 1) = 0.6.
    rows = [
        "unit,ann,bob",
        *(f"{n},yes,yes" for n in range(5)),
        *(f"{n},no,no" for n in range(5, 8)),
        "8,yes,no",
        "9,no,yes",
    ]
    (tmp_path / "v.csv").write_text("\n".join(rows) + "\n", "utf-8")
    words = (tmp_path / "v.csv", "--annotators", "ann,bob", "--measure", "bennett_s", "--json")
    done = _annotate("agreement", *words)
    (measure,) = [m for m in json.loads(done.out)["measures"] if m["measure"] == "bennett_s"]
    assert measure["value"] == pytest.approx(0.6, abs=1e-12)
    assert measure["low"] < 0.6 < measure["high"]
    assert (measure["n_units"], measure["coverage"]) == (10, 1.0)
    from judge.stats.metrics import get_title

    assert get_title("bennett_s") == "Bennett's S", "as reports call it"
    wrong = _annotate("agreement", *words[:-2], "nobodys_kappa", code=2)
    assert "bennett_s" in wrong.err and "cohen_kappa" in wrong.err


def test_a_paper_of_a_plugin(example: None, judge: Judge) -> None:
    judge("items", "import", "jsonl", DATA / "rag.jsonl")
    judge("systems", "import", DATA / "answers.jsonl")
    judge("suite", "refusals", "-m", "scripted/first", "--dataset", "rag", "--system", "model-a")
    document = json.loads(judge("score", "refusals", "--dataset", "rag", "--system", "model-a", "--json").out)
    (measure,) = document["measures"]
    # deflection's first label is `missing`: scripted/first says so of every answer.
    assert (measure["measure"], measure["value"]) == ("rag_refusal_rate", 1.0)
    assert "refusals" not in judge("score", "--help").out, "help looks for no plugin"
    from adjudge import Study

    assert Study("study.db").scores("refusals", dataset="rag", system="model-a")["value"].tolist() == [1.0]


def test_a_format_of_a_plugin(example: None, judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", "jsonl", DATA / "pairs.jsonl")
    _annotate("batches", "new", "b", "stance", "-n", "2", "--annotators", "ann")
    assert "tally" in _annotate("formats").out
    _annotate("export", "b", "--to", "csv", "-o", tmp_path / "sheet.csv")
    with (tmp_path / "sheet.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with (tmp_path / "sheet.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "stance": "refute"} for row in rows)
    _annotate("import", tmp_path / "sheet.csv", "--from", "csv", "--batch", "b", "--as", "ann")
    message = _annotate("export", "b", "--to", "tally", "--labels", "-o", tmp_path / "t.txt").err
    assert "2 units of batch 'b' as tally (t.txt 1)" in message
    assert (tmp_path / "t.txt").read_text("utf-8") == "refute\t2\n"
    assert "can only be exported" in _annotate("import", tmp_path / "t.txt", "--from", "tally", code=2).err


BROKEN = """
[adjudge.providers]
gone = broken_missing
raises = broken_raises
scripted = broken_empty
[adjudge.measures]
empty = broken_empty
[adjudge.importers]
exits = broken_exits
"""


def test_a_broken_plugin_is_named_and_stops_nothing_else(site: Path, judge: Judge) -> None:
    install(
        site, "broken", "0.1", BROKEN, broken_raises="raise RuntimeError('no luck')", broken_empty="", broken_exits="raise SystemExit(3)",
    )  # fmt: skip
    problems = problems_of(judge)
    assert set(problems) == {"gone", "raises", "scripted", "empty", "exits"}
    assert "ModuleNotFoundError: No module named 'broken_missing'" in problems["gone"]
    assert "of broken 0.1 cannot be loaded: RuntimeError: no luck" in problems["raises"]
    assert "is not a valid measure: it has no 'measure'" in problems["empty"]
    assert "SystemExit: 3" in problems["exits"]
    # Only who asks for it is told; what is built in stays what it was.
    assert "RuntimeError: no luck" in judge("models", "show", "raises/x", code=1).err
    assert judge("models", "show", "scripted/first").out
    listed = {r["vendor"]: r for r in checked(judge("models", "show", "--json").out, "models")["rows"]}
    assert listed["raises"]["ready"] is False and "no luck" in listed["raises"]["needs"]
    judge("items", "import", DATA / "pairs.jsonl")
    judge("run", "stance", "-m", "scripted/first")
    assert "SystemExit: 3" in judge("items", "import", "exits", DATA / "pairs.jsonl", code=1).err


LACKING = """
[adjudge.providers]
half = lacks_half
loud = lacks_loud
slips = lacks_slips
[adjudge.importers]
greedy = lacks_greedy
[adjudge.exchange]
mute = lacks_mute
other = lacks_loud
bare = lacks_bare
idle = lacks_idle
slips = lacks_slips
[adjudge.measures]
kind = lacks_half:Kappa
[adjudge.papers]
paper = lacks_half:PAPER
"""


SLIPS = """
from judge.providers import scripted
class Provider(scripted.Provider):
    def __init__(self, name, settings): super().__init__("hash", settings)
    async def complete(self, request): {}["v"]
"""


def test_a_provider_without_complete_is_named_even_where_it_takes_no_name(site: Path, judge: Judge) -> None:
    """The base class has a default for all but `complete`. This one refuses the name with which it is tried."""
    install(
        site, "forgets", "0.1", "[adjudge.providers]\nforgets = forgets_part\n",
        forgets_part="from judge.errors import UsageError\nfrom judge.providers.base import BaseProvider\n"
        "class Provider(BaseProvider):\n    def __init__(self, name, settings): raise UsageError(f'no model {name}')\n",
    )  # fmt: skip
    problem = "provider: the method 'complete' is missing (see docs/plugins.md)"
    assert str(problems_of(judge)["forgets"]).endswith(f"of forgets 0.1 is not a valid {problem}")
    assert problem in judge("models", "show", "forgets/any", code=1).err


def test_a_plugin_that_lacks_something_is_told_so_before_it_is_used(site: Path, judge: Judge) -> None:
    write = "def write(export, out, options):"
    install(
        site, "lacks", "0.1", LACKING,
        lacks_half="class Provider:\n    def __init__(self, *a): ...\n    async def open(self): ...\nclass Kappa: measure = 'k'\nclass Paper: parts = ()\nPAPER = Paper()",
        lacks_loud="print('hello')\nfrom judge.providers.scripted import Provider\nNAME, WRITES = 'loud', 'file'\ndef write(*a): ...",
        lacks_greedy="NAME, SIGNS = 'greedy', [()]\ndef read_rows(*a): ...",
        lacks_mute="NAME, WRITES = 'mute', 'file'",
        lacks_bare=f"NAME, WRITES = 'bare', 'file'\n{write}\n    with out.open() as file: file.write('x')",
        lacks_idle=f"NAME, WRITES = 'idle', 'file'\n{write} ...",
        lacks_slips=f"NAME, WRITES = 'slips', 'file'\n{write} {{}}['k']\n" + SLIPS,
    )  # fmt: skip
    done = judge("plugins", "--json")
    assert "hello" in done.err, "what it prints is no part of the document"
    rows = {r["name"]: r["problem"] for r in checked(done.out, "plugins")["rows"]}
    assert {
        name: str(reason).partition(" of lacks 0.1 is not a valid ")[2] or reason
        for name, reason in rows.items()
    } == {
        "half": "provider: the method 'complete' is missing (see docs/plugins.md)",
        "loud": None,
        "greedy": "importer: its SIGNS is not a list of lists of keys (see docs/plugins.md)",
        "mute": "exchange format: it needs 'read_responses', 'write' with WRITES = \"file\" or \"folder\", or both (see docs/plugins.md)",
        "other": "exchange format: its NAME is 'loud' (see docs/plugins.md)",
        "bare": None,
        "idle": None,
        "slips": None,
        "kind": "measure: it is a class, but an object or a module is needed (see docs/plugins.md)",
        "paper": "paper: it has no 'name' (see docs/plugins.md)",
    }
    assert (
        "of lacks 0.1 is not a valid provider: the method 'complete' is missing"
        in judge("models", "show", "half/x", code=1).err
    )
    # A file without a format's name is not the greedy one's.
    judge("items", "import", DATA / "pairs.jsonl")
    _annotate("batches", "new", "b", "stance", "-n", "2", "--annotators", "ann")
    out = site / "out"
    export = ("export", "b", "-o", out, "--to")
    assert checked(_annotate(*export, "bare", "--json").out, "units-export")["files"] == []
    assert _annotate(*export, "bare").err.endswith(" as bare\n")
    assert "out: the format wrote no file" in _annotate(*export, "idle", code=1).err
    ran = judge("run", "stance", "-m", "slips/x", code=1)
    assert ran.err.endswith(
        "unexpected KeyError in a plugin of lacks 0.1: 'v' (set JUDGE_DEBUG=1 to see the traceback)\n"
    )
    assert "unexpected KeyError in a plugin of lacks 0.1: 'k'" in _annotate(*export, "slips", code=1).err


def test_the_shortest_provider_of_the_docs(site: Path, judge: Judge) -> None:
    """The Python block of docs/plugins.md is a plugin as it stands: with the base class nothing else is needed."""
    page = (ROOT / "docs" / "plugins.md").read_text("utf-8")
    [block] = [b for b in page.split("```python\n")[1:] if "class Provider" in b]
    code = block.partition("```")[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    install(site, "short", "1", "[adjudge.providers]\nshort = other_short\n", other_short=code)
    assert problems_of(judge) == {"short": None}
    judge("items", "import", "jsonl", DATA / "pairs.jsonl")
    ran = json.loads(judge("run", "stance", "-m", "short/refute", "--json").out)
    assert ran["labelled"] == ran["units"] == 4


WHOLE = {
    "label_codes": "label_codes = False",
    "max_concurrency": "max_concurrency = None",
    "init": "def __init__(self, name, settings): ...",
    "open": "async def open(self): ...",
    "complete": "async def complete(self, request): return Reply('{}')",
    "close": "async def close(self): ...",
    "describe": "def describe(self): return {}",
}
"""A provider without the base class, line by line."""


@pytest.mark.parametrize(
    ("name", "instead", "message"),
    [
        ("label_codes", "", "'label_codes'"),
        ("label_codes", "label_codes = 'yes'", "'label_codes' must be True or False"),
        ("max_concurrency", "", "'max_concurrency'"),
        ("max_concurrency", "max_concurrency = 0", "'max_concurrency' must be None"),
        ("open", "", "'open' is missing"),
        ("open", "def open(self): ...", "'open' is not an 'async def'"),
        ("complete", "def complete(self, request): return Reply('{}')", "'complete' is not an 'async def'"),
        ("complete", "async def complete(self, request) -> str: return '{}'", "'complete' returns str"),
        ("close", "", "'close' is missing"),
        ("describe", "", "'describe' is missing"),
        ("describe", "def describe(self): return 'echo'", "'describe' returns str"),
        ("describe", "def describe(self): return {'x': {1}}", "'describe' returns a value"),
        ("init", "def __init__(self): ...", "it cannot be created: TypeError"),
    ],
)  # fmt: skip
def test_what_the_runner_uses_is_checked_before_it_is_used(
    site: Path, judge: Judge, name: str, instead: str, message: str
) -> None:
    """Each attribute and method, taken away or of another type: named with the plugin and its package, before a run."""
    lines = {**WHOLE, name: instead}
    body = "".join(f"    {line}\n" for line in lines.values() if line)
    code = f"from judge.types import Reply\nclass Provider:\n{body}"
    install(site, "lacks", "0.1", "[adjudge.providers]\npart = lacks_part\n", lacks_part=code)
    problem = problems_of(judge)["part"]
    assert problem.startswith(
        "plugin 'part' (adjudge.providers, lacks_part) of lacks 0.1 is not a valid provider: "
    )
    assert message in problem
    judge("items", "import", "jsonl", DATA / "pairs.jsonl")
    error = judge("run", "stance", "-m", "part/x", code=1).err
    assert "lacks 0.1" in error and message in error


@pytest.mark.parametrize(
    ("reply", "returned"),
    [("'{}'", "str"), ("None", "NoneType"), ("Reply(7)", "a Reply whose text has the type int")],
)
def test_a_reply_of_another_type_ends_the_run_and_names_the_plugin(
    site: Path, judge: Judge, reply: str, returned: str
) -> None:
    code = (
        "from judge.providers import base\nfrom judge.types import Reply\nclass Provider(base.BaseProvider):\n"
        f"    async def complete(self, request): return {reply}\n"
    )
    install(site, "lacks", "0.1", "[adjudge.providers]\npart = lacks_part\n", lacks_part=code)
    judge("items", "import", "jsonl", DATA / "pairs.jsonl")
    error = judge("run", "stance", "-m", "part/x", code=1).err
    assert (
        f"lacks_part.Provider of lacks 0.1: 'complete' returned {returned} instead of a judge.types.Reply"
        in error
    )


def test_two_packages_with_one_name(site: Path) -> None:
    for name in ("a", "b"):
        code = f"def read_rows(*a): ...\nNAME = '{name}'"
        points = f"[adjudge.importers]\nsame = other_{name}\n"
        install(site, 3 * name, "1", points, **{f"other_{name}": code})
    assert plugins.find("importers", "same").NAME == "a"
    first, second = plugins.load_all({})
    assert (first.package, first.problem) == ("aaa 1", None)
    assert second.package == "bbb 1" and "another package" in str(second.problem)
    assert plugins.find("importers", "nobody") is None
    with pytest.raises(UsageError, match="same"):
        from judge.importers import base

        base.get("nobody")


def test_help_looks_for_no_plugin() -> None:
    code = (
        "import importlib.metadata as m, sys\n"
        "def never(*a, group='', **k):\n"
        "    assert not group.startswith('adjudge'), 'looked for plugins'\n"
        "    return ()\n"
        "m.entry_points = never\n"
        "from judge.cli import main\n"
        "main(sys.argv[1:], prog_name='judge')"
    )
    for words in (["--help"], ["score", "--help"], ["run", "--help"], ["score", "garage", "--help"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, cwd=ROOT, check=False
        )
        assert done.returncode == 0, done.stderr


def test_what_is_built_in_looks_for_no_plugin(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def never(kind: str) -> list[object]:
        raise AssertionError(f"looked for {kind}")

    monkeypatch.setattr(plugins, "_points", never)
    judge("items", "import", "jsonl", DATA / "pairs.jsonl")
    judge("run", "stance", "-m", "scripted/hash")
    judge("tasks", "show")
    words = "--field stance --measure gwet_ac2 --level ordinal:refute,neutral,support"
    _annotate("agreement", *words.split())
    from judge.stats.metrics import get_title

    assert [get_title(name) for name in ("gwet_ac2", "krippendorff_alpha", "cohen_kappa:quadratic", "percent")] == [
        "Gwet's AC2", "Krippendorff's alpha", "quadratic weighted kappa", "percent agreement",
    ]  # fmt: skip


def _annotate(*words: str | Path, code: int = 0) -> Done:
    """`annotate` in this process, whose path has the plugins."""
    import contextlib
    import io

    from annotate.cli import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main([str(word) for word in words], prog_name="annotate")
    assert int(ended.value.code or 0) == code, err.getvalue()
    return Done(code, out.getvalue(), err.getvalue())
