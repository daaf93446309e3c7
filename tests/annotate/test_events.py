"""Whatever is pressed, in whatever order, killed or not: the log, the view and the labels agree."""

import json
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from ulid import ULID

from annotate.sitting.desk import Desk
from annotate.sitting.events import Event, Kind, State, UnitStatus, fold, label_rows
from annotate.sitting.standing import append, replay_log
from annotate.store import open_study
from judge.errors import StudyError
from tests.tui.studies import batch, build, three

FIELDS = ["relevance", "stance", "quality"]
VALUES = {"relevance": ["relevant", "irrelevant"], "stance": ["support", "refute"], "quality": ["good"]}
position = st.integers(1, 4)
step = st.one_of(
    st.tuples(st.just("label"), position, st.sampled_from([(f, v) for f in FIELDS for v in VALUES[f]])),
    st.tuples(st.just("skip"), position, st.none()),
    st.tuples(st.just("flag"), position, st.sampled_from([None, "bad", "worse"])),
    st.tuples(st.just("note"), position, st.sampled_from([None, "n1"])),
    st.tuples(st.just("spans"), position, st.sampled_from([[], [("passage", 0, 3)]])),
    st.tuples(st.just("undo"), position, st.none()),
    st.tuples(st.just("quit"), position, st.none()),
    st.tuples(st.just("die"), position, st.none()),
)


class Model:
    """The same rules, written as a stack of snapshots: undo is going back to the one before."""

    def __init__(self) -> None:
        self.history: list[dict[int, State]] = [{p: State() for p in range(1, 5)}]

    def do(self, what: str, at: int, value: object) -> None:
        if what == "undo":
            if len(self.history) > 1:
                self.history.pop()
            return
        new = {
            p: State(dict(s.answers), {}, list(s.spans), s.skipped, s.flag, s.note)
            for p, s in self.history[-1].items()
        }
        state = new[at]
        if what == "label":
            field, label = value  # type: ignore[misc]
            state.answers[field] = label
            state.skipped = False
        elif what == "skip":
            state.skipped = True
        elif what == "flag":
            state.flag = value  # type: ignore[assignment]
        elif what == "note":
            state.note = value  # type: ignore[assignment]
        else:
            state.spans = list(value)  # type: ignore[call-overload]
        self.history.append(new)


# What few sequences of chance meet: each kind of change, and it alone, taken back.
UNDONE: list[tuple[str, int, object]] = [
    ("label", 1, ("stance", "support")),
    ("label", 1, ("stance", "refute")),
    ("undo", 1, None),
    ("label", 1, ("quality", "good")),
    ("undo", 1, None),
    ("flag", 1, "bad"),
    ("flag", 1, "worse"),
    ("undo", 1, None),
    ("note", 1, "n1"),
    ("undo", 1, None),
    ("spans", 1, [("passage", 0, 3)]),
    ("undo", 1, None),
    ("skip", 2, None),
    ("label", 2, ("relevance", "irrelevant")),
    ("skip", 3, None),
    ("undo", 3, None),
    ("die", 4, None),
    ("quit", 4, None),
]


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(step, max_size=25))
@example(UNDONE)
def test_any_sequence_leaves_log_view_and_labels_consistent(steps: list[tuple[str, int, object]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = build(Path(folder) / "s.db", items=4, each=1)
        task = three()
        batch(path, task, n=4)
        model = Model()
        with open_study(path) as store:
            desk = Desk.open(store, "pilot", "alice")
            for what, at, value in steps:
                if what == "quit":
                    desk.close()
                    desk = Desk.open(store, "pilot", "alice")
                    continue
                if what == "die":
                    # In the middle of a commit: the event is appended, then the process ends.
                    try:
                        with desk._transaction() as conn:
                            event = Event(str(ULID()), Kind.LABEL, "stance", "refute", None, None)
                            append(conn, "pilot", "alice", at, event, desk.seat.session)
                            replay_log(conn, task, "pilot", "alice", [at])
                            raise StudyError("killed")
                    except StudyError:
                        pass
                    continue
                if what == "undo":
                    desk.undo()
                elif what == "label":
                    desk.label(at, *value)  # type: ignore[misc]
                elif what == "skip":
                    desk.skip(at)
                else:
                    getattr(desk, what)(at, value)
                model.do(what, at, value)
            counts = desk.counts()
            desk.close()
            expected = model.history[-1]
            labels = set(
                store.conn.execute("SELECT unit_id, field, value FROM labels WHERE annotator_id = 'alice'")
            )
            wanted = set()
            stands = dict.fromkeys(map(str, UnitStatus), 0)
            query = "SELECT position, unit_id, status, answers, spans, flag, note FROM assignments"
            for p, unit, status, answers, spans, flag, note in store.conn.execute(query):
                state = expected[p]
                stands[status] += 1
                assert (json.loads(answers), flag, note) == (state.answers, state.flag, state.note)
                assert [tuple(s) for s in json.loads(spans)] == state.spans
                assert status == str(state.status(FIELDS))
                wanted |= {(unit, row.field, row.value) for row in label_rows(state, task)}
                columns = "event_id, kind, field, value, reason, undoes, active_ms, idle_ms"
                log = store.conn.execute(f"SELECT {columns} FROM events WHERE position = ? ORDER BY seq", [p])
                again = fold(Event(*row) for row in log)
                assert again.answers == state.answers and again.skipped == state.skipped
            assert labels == wanted
            assert counts == stands
