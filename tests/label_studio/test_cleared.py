"""An answer that was taken out of an annotation, and one that comes and goes between two people."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.label_studio.conftest import Pilot, choice, remark
from tests.tui.studies import drawn, labels, rows_of, three

pytestmark = pytest.mark.real


def test_an_answer_cleared_there_falls_here(pilot_of: Callable[[Path], Pilot], tmp_path: Path) -> None:
    """One of three answers is taken out of the annotation on the server, then all of them."""
    path = drawn(tmp_path, three(), items=2, n=4, annotators=["alice"])
    pilot = pilot_of(path)
    project = pilot.push()["project"]
    task = pilot.tasks(project)[0]
    unit = task.data["adjudge_unit_id"]
    client = pilot.client()
    whole = [choice("relevance", "relevant"), choice("stance", "refute"), choice("quality", "bad")]
    made = client.annotations.create(id=task.id, result=[*whole, remark("sure")])
    assert pilot.pull()["new"] == {"alice": 3}
    client.annotations.update(id=made.id, result=[whole[0], whole[2]])
    came = pilot.pull()
    assert {f for _, f, _, _ in labels(path)} == {"relevance", "quality"}, "the stance was taken back there"
    assert came["retracted"] == 1 and came["new"] == {}
    assert rows_of(path, "SELECT status FROM assignments WHERE unit_id = ?", unit) == [("open",)]
    client.annotations.update(id=made.id, result=whole)
    assert pilot.pull()["new"] == {"alice": 1}
    assert labels(path)[unit, "stance", "first", 0] == "refute"
    client.annotations.update(id=made.id, result=[])
    assert pilot.pull()["retracted"] == 3
    assert labels(path) == {} and pilot.pull()["retracted"] == 0


def test_an_annotation_given_away_and_back(pilot: Pilot) -> None:
    """Before: alice kept a label that the server says is bob's, so that they agreed with each other."""
    project = pilot.push()["project"]
    task = pilot.tasks(project)[0]
    unit = task.data["adjudge_unit_id"]
    client = pilot.client()
    whole = [choice("stance", "support")]
    made = client.annotations.create(id=task.id, result=whole)
    people = {u.email.split("@")[0]: u.id for u in client.users.list()}
    pilot.pull()
    for _ in range(2):
        # alice says that the label is bob's, so it is not his until a lead accepts it.
        client.annotations.update(id=made.id, completed_by=people["bob"], result=whole)
        came = pilot.pull(code=1)
        assert (came["new"], came["retracted"], came["rows"]["reasons"]) == (
            {},
            1,
            {"quarantined": {"editor": 1}},
        )
        assert pilot.stored() == pilot.stored("bob") == {} and len(pilot.held()) == 1
        client.annotations.update(id=made.id, completed_by=people["alice"], result=whole)
        came = pilot.pull()
        assert (came["new"], came["retracted"]) == ({"alice": 1}, 0)
        assert pilot.stored() == {unit: "support"} and pilot.stored("bob") == {}
    assert pilot.pull()["new"] == {}


def test_two_swap_their_annotations(pilot: Pilot) -> None:
    """Each is given the other's annotation of one task, answers and all."""
    project = pilot.push()["project"]
    task = pilot.tasks(project)[0]
    unit = task.data["adjudge_unit_id"]
    client = pilot.client()
    people = {u.email.split("@")[0]: u.id for u in client.users.list()}
    said = {"alice": [choice("stance", "support")], "bob": [choice("stance", "refute")]}
    made = {p: pilot.client(p).annotations.create(id=task.id, result=said[p]) for p in said}
    pilot.pull()
    assert (pilot.stored(), pilot.stored("bob")) == ({unit: "support"}, {unit: "refute"})
    client.annotations.update(id=made["alice"].id, completed_by=people["bob"], result=said["alice"])
    client.annotations.update(id=made["bob"].id, completed_by=people["alice"], result=said["bob"])
    # alice made both changes: her own label is hers, and bob's waits for a lead.
    pilot.pull(code=1)
    assert (pilot.stored(), pilot.stored("bob")) == ({unit: "refute"}, {})
    [record] = pilot.held()
    assert record["code"] == "editor" and "bob gave this label, but alice edited it last" in record["reason"]
    pilot.accept(record)
    pilot.pull()
    assert (pilot.stored(), pilot.stored("bob")) == ({unit: "refute"}, {unit: "support"})
    layers = rows_of(
        pilot.path, "SELECT annotator_id, layer FROM labels WHERE annotator_id IN ('alice', 'bob') ORDER BY 1"
    )
    assert layers == [("alice", "first"), ("bob", "assisted")]
