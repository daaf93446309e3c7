"""annotate annotators: list the annotators, and describe them for the report."""

from __future__ import annotations

from pathlib import Path

import click

from judge.console import db_option, emit_json, json_option
from judge.document.terminal import emit_rows, print_result
from judge.errors import UsageError
from judge.store import Store


@click.group()
def annotators() -> None:
    """List the annotators, and describe them."""


@annotators.command("set")
@click.argument("name")
@click.option("--qualification", help="Qualification, e.g. 'PhD in biology'.")
@click.option("--training", help="Training they received, e.g. '30 minutes, 20 units'.")
@click.option("--paid", help="Payment, e.g. '15 EUR an hour' or 'no'.")
@click.option("--consent", help="Consent they gave, e.g. 'signed, 2026-01-10'.")
@click.option("--note", help="Any other remark.")
@db_option
@json_option
def set_(name: str, db: Path, as_json: bool, **values: str | None) -> None:
    """Describe the annotator NAME for the report.

    If NAME is new, it is added to the study.

    \b
    annotate annotators set alice --qualification "PhD in biology" --paid "15 EUR an hour"
    annotate annotators set alice --note ""

    Values that you omit stay unchanged. An empty string removes a value.
    """
    from annotate.leading.profiles import KEYS, set_profile

    # An empty text is a value: it removes the stored one.
    given = {key: value for key, value in values.items() if value is not None}
    if not given:
        raise UsageError(f"specify at least one value for '{name}': --{', --'.join(KEYS)}")
    with Store.open(db, create=False) as store:
        profile = set_profile(store, name, given)
    profile_text = "; ".join(f"{key}: {value}" for key, value in profile.items()) or "no values"
    print_result("annotator", {"annotator": name, "profile": profile}, f"{name}: {profile_text}", as_json)


@annotators.command("list")
@db_option
@json_option
def list_(db: Path, as_json: bool) -> None:
    """List the annotators of the study.

    The list includes people, judge runs, adjudicated labels and gold labels.

    \b
    annotate annotators list
    annotate annotators list --json
    """
    from annotate.leading.profiles import KEYS, list_annotators

    with Store.open(db, create=False) as store:
        rows = list_annotators(store)
    if as_json:
        emit_json("annotators", {"rows": rows})
        return
    flat = [
        {
            **row,
            "annotator": row["shown"],
            "fields": ", ".join(row["fields"]),
            **{key: row["profile"].get(key) for key in KEYS},
        }
        for row in rows
    ]
    # An empty column for each unused remark would break the table in a terminal.
    used = [key for key in KEYS if any(row[key] for row in flat)]
    emit_rows("annotators", flat, ["annotator", "kind", "labels", "fields", *used])
