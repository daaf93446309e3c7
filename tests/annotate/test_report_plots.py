"""The drawings: text stays text, the same data gives the same bytes, and one drawing serves light and dark."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from textual.color import Color

from annotate.tui.colours import contrast
from judge.document import plots

HOSTILE = "<b>$\\frac{1}{2}$</b>\x07\u202e&"
DATA: dict[str, dict[str, Any]] = {
    "heat_map": {"matrix": [[8, 2, 0], [1, 5, 0], [0, 0, 0]], "labels": ["yes", HOSTILE, "never"], "rows": "gold", "columns": "judge"},
    "forest": {
        "rows": [
            {"label": "ann and bob", "value": 0.6, "low": 0.4, "high": 0.8, "group": "people"},
            {"label": HOSTILE, "value": -0.2, "low": None, "high": None, "group": "judge"},
            {"label": "judge and gold", "value": None, "low": None, "high": None, "group": "judge"},
        ],
        "label": "kappa",
        "threshold": 0.667,
    },
    "histogram": {"values": [-0.6, 0.1, 0.12, 1.0], "label": HOSTILE},
    "bars": {"rows": [{"name": HOSTILE, "shares": [0.5, 0.5, 0.0], "n": 10}], "labels": ["a", "b", HOSTILE]},
    "reliability": {"bins": [[0.0, 0.5, 0, None, None], [0.5, 1.0, 7, 0.8, 0.6]]},
    "power": {"units": [30, 60, 90], "decided": [0.1, 0.5, 0.9], "trusted": [0.1, 0.4, 0.8], "distrusted": [0.0, 0.1, 0.1]},
    "curve": {
        "points": [
            {"x": 0.3, "y": 1.0, "low": 0.94, "high": 1.0, "holds": True, "chosen": True},
            {"x": 0.7, "y": 0.78, "low": None, "high": None, "holds": False, "chosen": False},
        ],
        "agree": 0.9,
        "people": 0.95,
    },
    "front": {
        "points": [
            {"label": HOSTILE[:3], "x": 0.002, "y": 0.5, "low": 0.4, "high": 0.6, "front": True},
            {"label": "B", "x": 3.0, "y": -0.1, "low": None, "high": None, "front": False},
        ],
        "label": "US dollars",
    },
    "scatter": {
        "points": [{"label": HOSTILE, "x": 1.0, "y": 0.5}, {"label": "", "x": 2.0, "y": 0.25}],
        "x": "set size",
        "y": "accuracy",
    },
    "dots": {
        "rows": [
            {"label": HOSTILE, "value": 0.5, "low": 0.2, "high": 0.9, "own": 0.4, "mark": "best"},
            {"label": "none", "value": None, "low": None, "high": None, "own": None, "mark": ""},
            {"label": "worse", "value": 1.5, "low": None, "high": None, "own": None, "mark": "worse"},
        ]
    },
}  # fmt: skip


LONG = [f"{'W' * 20} label {i} that is long" for i in range(9)]
LONG_DATA: dict[str, dict[str, Any]] = {
    "heat_map": {"matrix": [[1] * 9] * 9, "labels": LONG, "rows": LONG[0] * 3, "columns": LONG[0] * 3},
    "forest": {
        "rows": [{"label": x * 4, "value": -0.9, "low": -0.99, "high": 1.0, "group": "judge"} for x in LONG],
        "label": LONG[0] * 4,
        "threshold": 0.667,
    },
    "histogram": {"values": [-1.0, 1.0], "label": LONG[0] * 4},
    "bars": {
        "rows": [{"name": x * 4, "shares": [0.1] * 8 + [0.2], "n": 1_000_000} for x in LONG],
        "labels": LONG,
    },
    "reliability": DATA["reliability"],
    "power": {
        "units": [30, 1_000, 1_000_000],
        "decided": [0.0, 0.5, 1.0],
        "trusted": [0.0] * 3,
        "distrusted": [1.0] * 3,
    },
    # Every step holds, to the last unit.
    "curve": {
        "points": [
            {"x": k / 200, "y": 1.0, "low": 0.9, "high": 1.0, "holds": True, "chosen": k == 200}
            for k in range(61, 201)
        ],
        "agree": 0.999,
        "people": 0.999,
    },
    "front": {
        "points": [
            {"label": "Z", "x": 10.0**k, "y": 1.0, "low": -1.0, "high": 1.0, "front": True}
            for k in range(-6, 5)
        ],
        "label": "seconds of calls per unit",
    },
    "scatter": {
        "points": [{"label": x * 4, "x": 0.01, "y": 0.5} for x in LONG],
        "x": "set size",
        "y": "accuracy",
    },
    "dots": {
        "rows": [
            {"label": x * 4, "value": 99.0, "low": -9.0, "high": 99.0, "own": 1.0, "mark": "tied"}
            for x in LONG
        ]
    },
}


@pytest.mark.parametrize("name", plots.DRAWINGS)
@pytest.mark.parametrize("data", [DATA, LONG_DATA], ids=["short", "long"])
def test_nothing_sticks_out_of_a_drawing(name: str, data: dict[str, dict[str, Any]]) -> None:
    figure = Figure(layout="constrained")
    FigureCanvasSVG(figure)
    plots.DRAWINGS[name](figure, data[name])
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    wide, high = figure.get_size_inches()
    assert box.x0 >= -0.05 and box.y0 >= -0.05 and box.x1 <= wide + 0.05 and box.y1 <= high + 0.05


@pytest.mark.parametrize("name", plots.DRAWINGS)
def test_a_drawing_is_plain_svg(name: str) -> None:
    text = plots.draw(name, DATA[name], "fig-1", f"Title {HOSTILE}", "What is to be seen.")
    root = ET.fromstring(text)
    assert root.tag.endswith("svg") and root.get("role") == "img"
    title, description = root[0], root[1]
    assert (
        title.text == "Title <b>$\\frac{1}{2}$</b>\\x07\\u202e&" and description.text == "What is to be seen."
    )
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    for element in root.iter():
        assert "style" not in element.attrib and element.tag.rpartition("}")[2] not in (
            "style",
            "script",
            "metadata",
            "image",
            "a",
        )
        for value in element.attrib.values():
            assert "http" not in value and not re.search(r"url\((?!#fig-1-)", value)
    assert not re.search(r"(?i)#0[1-9][01]\d{3}", text), "no marker colour is left"
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids)) and all(i.startswith("fig-1-") for i in ids)


@pytest.mark.parametrize(
    "name", [n for n in plots.DRAWINGS if n not in ("reliability", "power", "curve", "front")]
)
def test_labels_are_text_and_not_mathematics(name: str) -> None:
    root = ET.fromstring(plots.draw(name, DATA[name], "f", "t", "d"))
    shown = "".join(root.itertext())
    assert "<b>$\\frac{1}{2}$</b>" in shown and "\x07" not in shown and "\u202e" not in shown


def test_the_same_data_gives_the_same_bytes_in_another_process() -> None:
    code = (
        "from tests.annotate.test_report_plots import DATA; from judge.document import plots; import sys\n"
        "sys.stdout.write(plots.draw('forest', DATA['forest'], 'f', 't', 'd'))"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == plots.draw("forest", DATA["forest"], "f", "t", "d")


def test_every_class_has_its_colour_in_the_style_sheet() -> None:
    style = (Path(plots.__file__).parent / "page.css").read_text()
    used = set()
    for name, data in DATA.items():
        used |= set(
            re.findall(
                r"\b[fs]-\w+", " ".join(re.findall(r'class="([^"]*)"', plots.draw(name, data, "f", "t", "d")))
            )
        )
    assert used and all(f".{name} {{" in style for name in used), used


def colours(style: str, scheme: str) -> dict[str, Color]:
    """The custom properties of one scheme."""
    light, _, rest = style.partition("@media screen and (prefers-color-scheme: dark)")
    result = dict(re.findall(r"--(\w+): (#\w{6})", light))
    if scheme == "dark":
        result |= dict(re.findall(r"--(\w+): (#\w{6})", rest.partition("}\n}")[0]))
    return {name: Color.parse(value) for name, value in result.items()}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_on_cells_and_bars_has_contrast(scheme: str) -> None:
    style = (Path(plots.__file__).parent / "page.css").read_text()
    result = colours(style, scheme)
    # The darkest cell is .05 + .6 = 65 % of the heat colour over the paper.
    for share in (0.05, 0.35, 0.65):
        assert contrast(result["ink"], result["paper"].blend(result["heat"], share)) >= 4.5
    for k in range(plots.LABELS):
        assert contrast(result["on"], result[f"label{k}"]) >= 4.5, k
    for name in ("judge", "people", "soft"):
        assert contrast(result[name], result["paper"]) >= 3, name


def test_matplotlib_is_loaded_for_drawings_only() -> None:
    code = (
        "import sys, annotate.report; assert 'matplotlib' not in sys.modules\n"
        "from judge.document import plots; assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).resolve().parents[2])


def test_a_drawing_that_is_kept_is_that_of_its_data() -> None:
    one, two = (
        plots.draw("histogram", {"values": [0.1, 0.5], "label": label}, "k", "t", "x")
        for label in ("first", "second")
    )
    assert "first" in one and "second" in two and "first" not in two
