"""A recipe's calibration put to a run: the second half of `judge run --recipe`."""

import numpy as np

from judge import derive
from judge.derive import Made
from judge.errors import UsageError
from judge.improve.recipe import Recipe
from judge.stats.calibrate import Fit
from judge.store.derived import Fitted
from judge.store.study import Store


def calibrated(store: Store, run: str, recipe: Recipe) -> str:
    """The run calibrated with the recipe's own numbers, as a run of its own; its id.

    Questions of this study that the numbers were fitted on take part in no agreement of it. Raises UsageError for a run
    without probabilities, and for other labels than the recipe's.
    """
    assert recipe.calibration is not None
    table = derive.read(store, [run], recipe.field)
    found = table.labels(recipe.field)
    p, given = found.probabilities[0], recipe.calibration
    if p is None:
        raise UsageError("the recipe calibrates label probabilities, and this model gave none")
    if set(given["bias"]) != set(found.domain):
        raise UsageError(
            f"the recipe calibrates the labels {', '.join(given['bias'])}, not {', '.join(found.domain)}"
        )
    after = Fit(given["temperature"], tuple(given["bias"][label] for label in found.domain)).apply(p)
    codes = np.where(np.isnan(after[:, 0]), found.codes[:, 0], np.nan_to_num(after).argmax(axis=1))
    told = given["fitted"]
    here = {q for (q,) in store.conn.execute("SELECT DISTINCT question_id FROM units")}
    seen = {q: None for q in told["questions"] if q in here}
    fitted = Fitted(told["reference"], told["units"], told["sha256"], seen)
    parameters = {name: given[name] for name in ("temperature", "bias")}
    run_id, _ = derive.keep(
        store, table, "calibrated", given["method"], {recipe.field: Made(codes, after)},
        parameters={**parameters, "by": "recipe"}, fitted=fitted,
    )  # fmt: skip
    return run_id
