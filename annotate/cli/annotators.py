"""annotate annotators: who labelled, and what the report says about them."""

from __future__ import annotations

from pathlib import Path

import click

from judge.console import db_option, emit_json, emit_rows, json_option, output_options, tell
from judge.errors import UsageError
from judge.store import Store


@click.group()
def annotators() -> None:
    """Who labelled: what a reviewer asks about them, and how much they did."""


@annotators.command("set")
@click.argument("name")
@click.option("--qualification", help="Why this person can judge, as in 'PhD in biology'.")
@click.option("--training", help="How they were trained, as in '30 minutes, 20 units'.")
@click.option("--paid", help="What they were paid, as in '15 EUR an hour' or 'no'.")
@click.option("--consent", help="What they agreed to, as in 'signed, 2026-01-10'.")
@click.option("--note", help="Anything else.")
@db_option
@json_option
def set_(name: str, db: Path, as_json: bool, **values: str | None) -> None:
    """Say who NAME is; the report prints it. A new NAME becomes a person of the study.

    \b
    annotate annotators set alice --qualification "PhD in biology" --paid "15 EUR an hour"
    annotate annotators set alice --note ""

    Only what is given changes; an empty text removes it.
    """
    from annotate.leading.profiles import KEYS, set_profile

    given = {key: value for key, value in values.items() if value is not None}
    if not given:
        raise UsageError(f"say something about '{name}': --{', --'.join(KEYS)}")
    with Store.open(db, create=False) as store:
        profile = set_profile(store, name, given)
    profile_text = "; ".join(f"{key}: {value}" for key, value in profile.items()) or "nothing is said"
    tell("annotator", {"annotator": name, "profile": profile}, f"{name}: {profile_text}", as_json)


@annotators.command("list")
@db_option
@output_options
def list_(db: Path, as_json: bool, as_csv: bool) -> None:
    """List everybody who labels in the study: people, judge runs, adjudicated labels, gold.

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
            "annotator": row["annotator"] if as_csv else row["shown"],
            "fields": ", ".join(row["fields"]),
            **{key: row["profile"].get(key) for key in KEYS},
        }
        for row in rows
    ]
    used = [key for key in KEYS if as_csv or any(row[key] for row in flat)]
    emit_rows("annotators", flat, ["annotator", "kind", "labels", "fields", *used], False, as_csv)
