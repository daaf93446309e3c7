"""Arrays of labels: their order, and labels that are computed from them once."""

from pathlib import Path

import numpy as np
import pytest

from judge import stats
from judge.labels import reader
from judge.labels.tables import Layout, read_table


def test_labels_are_in_the_order_of_their_units() -> None:
    # A run's labels are stored by the text of the unit's id, where `10` comes before `9`.
    given = reader.code_rows([[(3, "b"), (1, "a")], [(70_000, "c"), (2, "b")]])
    assert given.rowids.tolist() == [1, 2, 3, 70_000]
    assert [given.values[code] for code in given.codes] == ["a", "b", "b", "c"]
    assert reader.code_rows([]).rowids.tolist() == []


def test_a_value_that_no_unit_has_is_not_used() -> None:
    given = reader.code_rows([[(1, "a"), (2, "b")]])
    assert given.select(np.array([False, True])).find_used_values() == {"b"}


def test_the_units_of_several_annotators_are_one_ascending_array() -> None:
    def column(*rowids: int) -> reader.AnnotatorColumn:
        labels = reader.code_rows([[(rowid, "a") for rowid in rowids]])
        return reader.AnnotatorColumn("x", labels, labels.rowids)

    assert reader.union([column(5), column(1, 3, 7), column(1, 3, 7)]).tolist() == [1, 3, 5, 7]
    assert reader.union([]).tolist() == []


def test_a_panel_computes_a_coefficient_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("unit,ann,bob\n" + "".join(f"{i},{'yes' if i % 2 else 'no'},yes\n" for i in range(12)))
    panel = read_table(path, Layout("unit", annotators=("ann", "bob")))
    computed: list[str] = []
    measures = stats.measures

    def counted(table: stats.Ratings, keys: list[str], **options: object) -> object:
        computed.extend(keys)
        return measures(table, keys, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(stats, "measures", counted)
    first = panel.measure(["ann", "bob"], ["percent"])
    both = panel.measure(["ann", "bob"], ["percent", "cohen_kappa"])
    assert computed == ["percent", "cohen_kappa"]
    # ann and bob agree on the 6 odd units of 12.
    assert first[0].value == both[0].value == 0.5
    # Another confidence has another interval.
    panel.measure(["ann", "bob"], ["percent"], confidence=0.9)
    assert computed == ["percent", "cohen_kappa", "percent"]
