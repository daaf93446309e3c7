"""Annotators' profiles: facts about each person that are stored in the study and printed in reports."""

import json
from collections.abc import Mapping

from annotate.store import ensure_human
from judge.errors import UsageError
from judge.labels import relation
from judge.labels.annotators import make_short_names
from judge.store import Store
from judge.store.listing import dicts
from judge.store.study import dumps
from judge.types import AnnotatorKind, Json

KEYS = ("qualification", "training", "paid", "consent", "note")
"""The keys of a profile. Each value is free text."""
PEOPLE = (AnnotatorKind.HUMAN, AnnotatorKind.ADJUDICATED)


def set_profile(store: Store, name: str, values: Mapping[str, str]) -> dict[str, Json]:
    """Set these keys in a person's profile, and return the whole profile. An empty value removes a key.

    A new name is added to the study as a person. Raises UsageError if the name is a judge, gold, or reserved.
    """
    with store.transaction() as conn:
        query = "SELECT kind, profile FROM annotators WHERE annotator_id = ?"
        row = conn.execute(query, [name]).fetchone()
        if row is None:
            ensure_human(conn, [name])
        elif row[0] not in PEOPLE:
            raise UsageError(f"'{name}' is {row[0]}, not a person: it has no profile to set")
        profile: dict[str, Json] = {**json.loads(row[1] if row else "{}"), **values}
        profile = {key: value for key, value in profile.items() if value != ""}
        conn.execute("UPDATE annotators SET profile = ? WHERE annotator_id = ?", [dumps(profile), name])
    return profile


def list_annotators(store: Store) -> list[dict[str, Json]]:
    """Return one row for each annotator in the study, people first.

    A row has the annotator's name and kind, the number of labels, the labelled fields and the profile.
    `shown` is a readable name for a judge run, and the name itself for everybody else.
    """
    runs = store.conn.execute("SELECT run_id, model, task FROM runs").fetchall()
    shown = make_short_names(runs)
    fields = relation.label_counts(store.conn)
    rows = []
    for row in dicts(store.conn, "SELECT annotator_id, kind, profile FROM annotators ORDER BY 1", []):
        name, mine = row["annotator_id"], fields.get(row["annotator_id"], {})
        rows.append(
            {
                "annotator": name,
                "shown": shown.get(name, name),
                "kind": row["kind"],
                "labels": sum(mine.values()),
                "fields": list(mine),
                "profile": json.loads(row["profile"]),
            }
        )
    kinds = [str(kind) for kind in AnnotatorKind]
    return sorted(rows, key=lambda row: kinds.index(row["kind"]))
