"""Where the labels of a run come from that no model was asked for here, in words."""

import json
import sqlite3
from collections.abc import Collection, Mapping

from judge.store import label_rows
from judge.types import Json


def origin(run: Mapping[str, Json]) -> str | None:
    """Of a run (`provider`, `derived_from`: JSON or text) that was imported or derived; None for one that was asked."""
    provider, derived = _loaded(run["provider"]), _loaded(run["derived_from"])
    if derived:
        return _made(derived)
    if "imported" not in provider:
        return None
    return f"imported from {provider['file']} (sha256 {provider['sha256']}) on {provider['imported'][:10]}"


def origins(conn: sqlite3.Connection, run_ids: Collection[str]) -> dict[str, str]:
    """`origin` of those of these runs that were imported or derived."""
    rows = conn.execute(
        "SELECT run_id, provider, derived_from, started FROM runs WHERE derived_from IS NOT NULL "
        "OR provider LIKE '%\"imported\"%'"
    ).fetchall()
    told = {
        run: (origin({"provider": p, "derived_from": d}) or "") + _stale(conn, _loaded(d), started)
        for run, p, d, started in rows
        if run in run_ids
    }
    return {run: text for run, text in told.items() if text}


def _stale(conn: sqlite3.Connection, derived: Mapping[str, Json], made: str) -> str:
    """That a parent was asked on, or asked again, after a derived run was made of it, or has got units in a merge."""
    later = "SELECT 1 FROM judgements WHERE run_id = ? AND judged_at > ? LIMIT 1"
    found = [
        parent["run"]
        for parent in derived.get("parents", ())
        if conn.execute(later, [parent["run"], made]).fetchone()
        or conn.execute(_ASKED, [parent["run"], derived["fields"][0]]).fetchone()[0] > parent["units"]
    ]
    if not found:
        return ""
    return f"; {' and '.join(found)} went on after it was made: make it again to have what is new"


_ASKED = f"""
    SELECT count(*) FROM (
        SELECT l.unit_id FROM {label_rows.FIRST} WHERE l.annotator_id = ?1 AND l.field = ?2 UNION
        SELECT unit_id FROM judgements WHERE run_id = ?1 AND repeat = 0 AND status <> 'ok')
"""
"""The units of a run with a label of a field, or with a status in its place."""


def _loaded(value: Json) -> Mapping[str, Json]:
    found = json.loads(value) if isinstance(value, str) else value
    return found or {}


def _made(derived: Mapping[str, Json]) -> str:
    names = [parent["run"] for parent in derived["parents"]]
    given = ", ".join(f"{name} {_short(value)}" for name, value in derived["parameters"].items())
    told = f"{derived['kind']} ({derived['method']}) without a call from {' and '.join(names)}"
    told += f"; {given}" if given else ""
    fitted = derived["fitted"]
    if fitted is None:
        parents = derived.get("inherited")
        if parents is None:
            return f"{told}; fitted on no labels"
        return f"{told}; made of runs that were fitted on labels in {parents['questions']:,} questions, {_how(parents)}"
    how = _how(fitted)
    return (
        f"{told}; fitted on {fitted['units']:,} labels of '{fitted['reference']}' in {fitted['questions']:,} "
        f"questions (sha256 {fitted['sha256'][:12]}), {how}"
    )


def _how(fitted: Mapping[str, Json]) -> str:
    return "cross-fitted by question" if fitted["cross_fitted"] else "on questions that no number here uses"


def _short(value: Json) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name}={_short(own)}" for name, own in value.items())
    if isinstance(value, list):
        return "/".join(_short(own) for own in value) if len(value) <= 12 else f"({len(value)} values)"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
