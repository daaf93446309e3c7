"""Describe in words where imported and derived runs come from. Such runs have no model calls."""

import json
import sqlite3
from collections.abc import Collection, Mapping

from judge.store import label_rows
from judge.types import Json


def origin(run: Mapping[str, Json]) -> str | None:
    """Return the origin of an imported or derived run in words, or None for a run with model calls.

    `run` needs the keys `provider` and `derived_from`. Their values are JSON text or decoded JSON.
    """
    provider, derived = _load(run["provider"]), _load(run["derived_from"])
    if derived:
        return _describe_making(derived)
    if "imported" not in provider:
        return None
    day = provider["imported"][:10]
    files = {provider["file"]: provider["sha256"]} if "file" in provider else provider.get("files")
    if not files:
        return f"imported on {day}"
    named = ", ".join(f"{name} (sha256 {digest})" for name, digest in files.items())
    return f"imported from {named} on {day}"


def origins(conn: sqlite3.Connection, run_ids: Collection[str]) -> dict[str, str]:
    """Return {run: description of its origin}, only for runs that were imported or derived."""
    # `LIKE` on the stored text selects the few candidates, so that the JSON of other runs need not be
    # decoded.
    rows = conn.execute(
        "SELECT run_id, provider, derived_from, started FROM runs WHERE derived_from IS NOT NULL "
        "OR provider LIKE '%\"imported\"%'"
    ).fetchall()
    texts = {
        run: (origin({"provider": p, "derived_from": d}) or "") + _stale(conn, _load(d), started)
        for run, p, d, started in rows
        if run in run_ids
    }
    return {run: text for run, text in texts.items() if text}


def _stale(conn: sqlite3.Connection, derived: Mapping[str, Json], made: str) -> str:
    """Return a remark if a derived run is out of date, otherwise "".

    A derived run is out of date if any of its parents got judgements or labels after the derivation.
    """
    later = "SELECT 1 FROM judgements WHERE run_id = ? AND judged_at > ? LIMIT 1"
    newer = [
        parent["run"]
        for parent in derived.get("parents", ())
        if conn.execute(later, [parent["run"], made]).fetchone()
        or conn.execute(_N_ATTEMPTED, [parent["run"], derived["fields"][0]]).fetchone()[0] > parent["units"]
    ]
    if not newer:
        return ""
    return f"; {' and '.join(newer)} got new judgements after this run was derived; derive it again to include them"


_N_ATTEMPTED = f"""
    SELECT count(*) FROM (
        SELECT l.unit_id FROM {label_rows.FIRST} WHERE l.annotator_id = ?1 AND l.field = ?2 UNION
        SELECT unit_id FROM judgements WHERE run_id = ?1 AND repeat = 0 AND status <> 'ok')
"""
"""Counts the units for which a run has a label in a field, or a status instead of a label."""


def _load(value: Json) -> Mapping[str, Json]:
    loaded = json.loads(value) if isinstance(value, str) else value
    return loaded or {}


def _describe_making(derived: Mapping[str, Json]) -> str:
    names = [parent["run"] for parent in derived["parents"]]
    parameters = ", ".join(f"{name} {_shorten(value)}" for name, value in derived["parameters"].items())
    text = f"{derived['kind']} ({derived['method']}) from {' and '.join(names)}, without model calls"
    text += f"; {parameters}" if parameters else ""
    fitted = derived["fitted"]
    if fitted is None:
        parents = derived.get("inherited")
        if parents is None:
            return f"{text}; not fitted on any labels"
        return f"{text}; derived from runs that were fitted on labels in {parents['questions']:,} questions, {_describe_method(parents)}"
    how = _describe_method(fitted)
    return (
        f"{text}; fitted on {fitted['units']:,} labels from '{fitted['reference']}' in {fitted['questions']:,} "
        f"questions (sha256 {fitted['sha256'][:12]}), {how}"
    )


def _describe_method(fitted: Mapping[str, Json]) -> str:
    return "cross-fitted by question" if fitted["cross_fitted"] else "which are excluded from all scores"


def _shorten(value: Json) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name}={_shorten(entry)}" for name, entry in value.items())
    if isinstance(value, list):
        return "/".join(_shorten(entry) for entry in value) if len(value) <= 12 else f"({len(value)} values)"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
