"""Apply a recipe's calibration to a run: the second half of `judge run --recipe`."""

from judge import derive
from judge.derive import Made
from judge.errors import UsageError
from judge.improve.recipe import Recipe
from judge.stats.calibrate import Fit, find_most_probable
from judge.store.derived import Fitted
from judge.store.study import Store
from judge.types import attributes


def store_calibrated(store: Store, run: str, recipe: Recipe) -> str:
    """Calibrate the run with the parameters in the recipe, store the result as a new run, and return its id.

    Raises UsageError if the run has no probabilities, or if the recipe was made for different labels.
    """
    assert recipe.calibration is not None
    table = derive.read_runs(store, [run], recipe.field)
    labels = table.labels(recipe.field)
    p, calibration = labels.probabilities[0], recipe.calibration
    if p is None:
        raise UsageError("the recipe calibrates label probabilities, but this model returned none")
    if set(calibration.bias) != set(labels.domain):
        raise UsageError(
            f"the recipe calibrates the labels {', '.join(calibration.bias)}, but the labels of '{recipe.field}' are {', '.join(labels.domain)}"
        )
    bias = tuple(calibration.bias[label] for label in labels.domain)
    after = Fit(calibration.temperature, bias).apply(p)
    codes = find_most_probable(after, labels.codes[:, 0])
    fit = calibration.fitted
    here = {q for (q,) in store.conn.execute("SELECT DISTINCT question_id FROM units")}
    # The study may contain questions that the parameters were fitted on. They are excluded from agreement.
    seen = {q: None for q in fit.questions if q in here}
    fitted = Fitted(fit.reference, fit.units, fit.sha256, seen)
    parameters = attributes(calibration, "temperature", "bias")
    run_id, _ = derive.keep(
        store, table, "calibrated", calibration.method, {recipe.field: Made(codes, after)},
        parameters={**parameters, "by": "recipe"}, fitted=fitted,
    )  # fmt: skip
    return run_id
