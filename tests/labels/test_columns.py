"""Which column of a table is which: by the names that people use, and refused where none fits."""

from pathlib import Path

import pytest

from judge.errors import UsageError
from judge.labels.columns import NO_CLUSTER, as_read, layout_of
from judge.labels.tables import read_table


def table(tmp_path: Path, head: str, *rows: str) -> Path:
    path = tmp_path / "t.csv"
    path.write_text("\n".join((head, *rows)) + "\n")
    return path


def test_our_own_column_names_give_no_message(tmp_path: Path) -> None:
    layout = layout_of(table(tmp_path, "unit,question,annotator,label,note"))
    assert layout.columns == ["unit", "question", "annotator", "label"] and as_read(layout) == ""


def test_other_column_names_are_recognised_and_reported(tmp_path: Path) -> None:
    layout = layout_of(table(tmp_path, "Item ID,Worker-Id,Rating,Query,Time"))
    assert layout.columns == ["Item ID", "Query", "Worker-Id", "Rating"]
    assert as_read(layout) == "read as unit: Item ID, annotator: Worker-Id, label: Rating, question: Query"


def test_the_most_likely_column_name_is_used(tmp_path: Path) -> None:
    layout = layout_of(table(tmp_path, "id,unit,who,score,label,question,question_id"))
    assert layout.columns == ["unit", "question_id", "who", "label"]


def test_a_wide_table_names_its_annotators(tmp_path: Path) -> None:
    layout = layout_of(table(tmp_path, "id,topic,ann,bob"), ["ann", "bob"])
    assert (layout.unit, layout.cluster, layout.annotators) == ("id", "topic", ("ann", "bob"))


def test_the_cluster_is_named_or_declared_to_be_none(tmp_path: Path) -> None:
    path = table(tmp_path, "unit,question,story,who,label")
    assert layout_of(path, cluster="story").cluster == "story"
    assert layout_of(path, cluster=NO_CLUSTER).cluster is None
    # A column has one role: that of the annotator is no question.
    assert layout_of(table(tmp_path, "unit,topic,label"), ["topic"]).cluster is None


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ("name,who,label", "no column with the unit's id; name it unit, unit_id"),
        ("unit,person,label", "no column for the annotator (or list one column per annotator"),
        ("unit,who,opinion", "no column with the label; name it label"),
    ],
)
def test_a_role_without_a_column_is_named_with_what_is_there(tmp_path: Path, head: str, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        layout_of(table(tmp_path, head))
    assert told in str(refused.value) and f"the columns are {head.replace(',', ', ')}" in str(refused.value)


def test_only_the_annotators_that_are_named_are_read(tmp_path: Path) -> None:
    path = table(tmp_path, "unit,who,label", "u,ann,x", "u,bob,y", "u,cyd,x", "v,cyd,x")
    panel = read_table(path, layout_of(path, ["ann", "bob"]))
    assert panel.ratings.annotators == ("ann", "bob") and panel.ratings.units == ("u",)
    with pytest.raises(UsageError, match="--annotators zoe: no such column or annotator"):
        read_table(path, layout_of(path, ["ann", "zoe"]))


def test_probabilities_are_read_only_for_a_known_judge(tmp_path: Path) -> None:
    wide = table(tmp_path, "unit,ann,gpt,probabilities")
    assert layout_of(wide, ["ann", "gpt"], judges=["gpt"]).probabilities == "probabilities"
    assert layout_of(wide, ["ann", "gpt"], judges=["ann", "gpt"]).probabilities is None
    assert layout_of(wide, ["ann", "gpt"]).probabilities is None
