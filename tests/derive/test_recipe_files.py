"""Recipe files that somebody else wrote: what is not just as a recipe is refused in one line, before anything is asked."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from judge.improve import recipe as recipes
from judge.prompts import load_task
from judge.store import Store
from tests.annotate.agreement_helpers import judge
from tests.derive import worlds

TASK = load_task("stance")
EXAMPLE = {
    "inputs": {"claim": "c", "passage": "{{ 7*7 }}"},
    "answers": {"stance": "support"},
    "item_id": "w:0",
}
FITTED = {"reference": "gold", "units": 3, "sha256": "00", "questions": ["w:1"]}
CALIBRATION = {
    "method": "bias",
    "temperature": 2.0,
    "bias": {"support": 0.0, "refute": 0.5, "neutral": -0.5},
    "fitted": FITTED,
}
GOOD: dict[str, Any] = {
    "recipe": 1,
    "task": "stance.v2",
    "task_sha256": TASK.sha256,
    "field": "stance",
    "answers": "auto",
    "label_order": "declared",
    "orders": 1,
    "guidelines": False,
    "examples": {"rule": "by hand", "shown": [EXAMPLE]},
    "calibration": CALIBRATION,
}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("w") / "w.db"
    worlds.study(path, worlds.draw(20, seed=1)).close()
    return path


def ask(study: Path, path: Path, *more: str, code: int = 0) -> Any:
    model = ("-m", "scripted/hash", "--option", "logprobs=1")
    return judge("run", "stance", *model, "--recipe", path, "-d", study, *more, code=code)


def example(**keys: Any) -> dict[str, Any]:
    return {"examples": {"rule": "r", "shown": [EXAMPLE | keys]}}


def calibration(**keys: Any) -> dict[str, Any]:
    return {"calibration": CALIBRATION | keys}


NO_RECIPE: list[tuple[dict[str, Any], str]] = [
    ({"orders": 0}, "orders"),
    ({"orders": -3}, "orders"),
    ({"orders": 1.7}, "orders"),
    ({"orders": True}, "orders"),
    ({"recipe": True}, "recipe"),
    ({"guidelines": "no"}, "guidelines"),
    ({"answers": ["codes"]}, "answers"),
    ({"label_order": "shuffled:x"}, "label_order"),
    ({"temperature": float("nan")}, "temperature"),
    ({"seed": "7"}, "seed"),
    ({"made": {"look": [1]}}, "made.look"),
    ({"examples": "abc"}, "examples"),
    ({"examples": {"rule": "r", "shown": [copy.deepcopy(EXAMPLE) for _ in range(101)]}}, "examples.shown"),
    (calibration(bias=[1, 2]), "calibration.bias"),
    (calibration(bias={"support": float("inf"), "refute": 0.0, "neutral": 0.0}), "calibration.bias.support"),
    (calibration(temperature=0), "calibration.temperature"),
    (calibration(temperature=-1.0), "calibration.temperature"),
    (calibration(temperature=float("nan")), "calibration.temperature"),
    (calibration(method="\x1b[2Jmagic"), "calibration.method"),
    (calibration(fitted=FITTED | {"questions": "abc"}), "calibration.fitted.questions"),
    (calibration(fitted=None), "calibration.fitted"),
]
NOT_OF_THE_TASK: list[tuple[dict[str, Any], str]] = [
    ({"orders": 10**9}, "at most 6 orders"),
    ({"field": "nothing"}, "the recipe is for the field 'nothing'"),
    (
        calibration(bias={"x": 1.0}),
        "the recipe calibrates the labels x, but the labels of 'stance' are support, refute, neutral",
    ),
    (example(answers={"stance": "banana"}), "'banana' is not a label of 'stance'"),
    (example(answers={}), "no answer for 'stance'"),
    (example(inputs={"claim": "c"}), "input 'passage' is missing"),
    (example(inputs={"claim": "c", "passage": "p", "gold": "x"}), "'gold' is not an input of this task"),
]
REFUSED = [(change, f"field '{told}", 1) for change, told in NO_RECIPE]
REFUSED += [(change, told, 2) for change, told in NOT_OF_THE_TASK]


@pytest.mark.parametrize(("change", "told", "code"), REFUSED)
def test_what_is_no_recipe_is_refused_before_anything_is_asked(
    change: dict[str, Any], told: str, code: int, study: Path, tmp_path: Path
) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(yaml.safe_dump(GOOD | change))
    done = ask(study, path, code=code)
    assert told in done.stderr and done.stderr.count("\n") == 1
    assert "unexpected" not in done.stderr and "\x1b" not in done.stderr and len(done.stderr) < 700
    with Store.open(study) as store:
        assert store.conn.execute("SELECT count(*) FROM judgements").fetchone() == (0,)


@pytest.mark.parametrize(
    "text",
    [
        "recipe: 1\nmade: " + "[" * 5_000,
        "recipe: 1\nmade: &a {x: *a}\ntask: x\n",
        # Nine to the power of nine scalars, had anybody counted them.
        "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9))
        + "made: {x: *a8}\nrecipe: 1\n",
        "recipe: 1\ntask: !!python/object/apply:os.getcwd []\n",
        "recipe: 1\ntask: 2026-13-45\n",
        "\0",
    ],
)
def test_what_yaml_can_do_to_a_reader_is_refused(text: str, study: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(text)
    done = ask(study, path, code=1)
    assert done.stderr.count("\n") == 1 and "r.yaml" in done.stderr and "unexpected" not in done.stderr


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"instructions": "LOOK TWICE.", "examples": None, "seed": 3, "made": {"look": 1, "low": 0.25}},
        {"examples": {"rule": "by BM25", "nearest": 1, "shown": [EXAMPLE]}, "calibration": None},
    ],
)
def test_a_recipe_comes_back_as_it_was(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(yaml.safe_dump(GOOD | change))
    recipe = recipes.read_recipe(path)
    written = yaml.safe_load(recipe.text())
    assert {name: written[name] for name in GOOD | change} == GOOD | change
    path.write_text(recipe.text())
    assert recipes.read_recipe(path) == recipe


def test_a_file_without_end_is_not_read(study: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    with path.open("wb") as file:
        file.truncate(recipes.MOST_BYTES + 1)
    assert "longer than 16,000,000 bytes" in ask(study, path, code=1).stderr


def test_a_recipe_says_how_sampling_was_set_and_templates_in_it_stay_text(tmp_path: Path) -> None:
    path, db = tmp_path / "r.yaml", tmp_path / "w.db"
    store = worlds.study(db, worlds.draw(20, seed=1))
    path.write_text(
        yaml.safe_dump(GOOD | {"temperature": 0.7, "seed": 3, "made": {"model": "planted/other"}})
    )
    for option in (("--temperature", "0.5"), ("--seed", "4"), ("--temperature", "none")):
        assert f"{option[0]}: cannot be combined with --recipe" in ask(db, path, *option, code=2).stderr
    done = ask(db, path)
    assert "calibration was fitted on probabilities from planted/other, not from scripted/hash" in done.stderr
    [asked, made] = store.conn.execute(
        "SELECT options, derived_from FROM runs ORDER BY started, run_id"
    ).fetchall()
    assert '"temperature":0.7' in asked[0].replace(" ", "") and '"seed":3' in asked[0].replace(" ", "")
    assert asked[1] is None and '"calibrated"' in made[1]
    prompts = " ".join(text for (text,) in store.conn.execute("SELECT text FROM prompts").fetchall())
    assert "{{ 7*7 }}" in prompts and "49" not in prompts


def test_an_example_is_not_asked_about_in_a_study_that_has_it_under_another_id(tmp_path: Path) -> None:
    path, db = tmp_path / "r.yaml", tmp_path / "w.db"
    worlds.study(db, worlds.draw(20, seed=1)).close()
    inputs = {"claim": "Claim number 0.", "passage": "passage number 2 of the world"}
    path.write_text(yaml.safe_dump(GOOD | example(inputs=inputs, item_id="elsewhere:0")))
    done = ask(db, path)
    # Asked about, the model would have been told its answer: 19 of 20 units are left.
    assert "19 of 19 units have a label" in done.stdout and "1 units were left out" in done.stderr
