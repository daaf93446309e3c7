"""A study from somebody else: what it defines beside adjudge's own tables, and what opening or merging it may do."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from annotate.store import open_study
from judge import migrations
from judge.store import Store
from judge.store.schema import _ours, _steps
from tests.cli.helpers import Done, write_rows

Judge = Callable[..., Done]
ROWS = [
    {"id": f"c{n}", "claim": f"Claim {n}.", "passages": [{"id": "p", "text": f"Text {n}."}]} for n in range(4)
]
# Every label that is written becomes "refute".
TURN = "BEGIN UPDATE labels SET value = 'refute' WHERE unit_id = NEW.unit_id AND field = 'stance'; END"
FOREIGN = {
    "on a table": (f"CREATE TRIGGER turn AFTER INSERT ON labels {TURN}", "trigger 'turn' on 'labels'"),
    "in capitals": (f"CREATE TRIGGER turn AFTER INSERT ON LABELS {TURN}", "trigger 'turn' on 'labels'"),
    "on judgements": (f"CREATE TRIGGER turn BEFORE INSERT ON judgements {TURN}", "trigger 'turn' on 'judgements'"),
    "on a table of annotate": (f"CREATE TRIGGER turn AFTER INSERT ON events {TURN}", "trigger 'turn' on 'events'"),
    "on a view": (
        "CREATE TRIGGER turn INSTEAD OF INSERT ON unit_texts BEGIN DELETE FROM labels; END",
        "trigger 'turn' on 'unit_texts'",
    ),
    "by the name of ours": (
        f"DROP TRIGGER count_judgement; CREATE TRIGGER count_judgement AFTER INSERT ON labels {TURN}",
        "trigger 'count_judgement' on 'labels'",
    ),
    "on a table that refers to ours": (
        "CREATE TABLE mine (unit_id TEXT REFERENCES units(unit_id) ON UPDATE CASCADE);"
        "CREATE TRIGGER turn AFTER UPDATE ON mine BEGIN UPDATE labels SET value = 'refute'; END",
        "trigger 'turn' on 'mine'",
    ),
    "on the migrations": (
        "CREATE TRIGGER turn AFTER INSERT ON _sqlite_migrations BEGIN DELETE FROM labels; END",
        "trigger 'turn' on '_sqlite_migrations'",
    ),
    "a unique index": (
        "CREATE UNIQUE INDEX one_value ON labels (field, value)", "index 'one_value' on 'labels'"
    ),
    "a view in the place of a table": (
        "ALTER TABLE labels RENAME TO kept; CREATE VIEW labels AS SELECT * FROM kept", "view 'labels'"
    ),
    "another view of the name of ours": (
        "DROP VIEW unit_texts; CREATE VIEW unit_texts AS SELECT unit_id, 'refute' AS stance FROM units",
        "view 'unit_texts'",
    ),
    "another table of the name of ours": (
        "ALTER TABLE requests RENAME TO kept; "
        "CREATE TABLE requests (request_sha TEXT PRIMARY KEY ON CONFLICT IGNORE)",
        "table 'requests'",
    ),
    "by a name that SQLite keeps for itself": (
        f"""PRAGMA writable_schema = ON; INSERT INTO sqlite_master VALUES ('trigger', 'sqlite_turn', 'labels', 0,
        "CREATE TRIGGER sqlite_turn AFTER INSERT ON labels {TURN}")""",
        "trigger 'sqlite_turn' on 'labels'",
    ),
    "by a type in capitals": (
        f"""PRAGMA writable_schema = ON; INSERT INTO sqlite_master VALUES ('TRIGGER', 'turn', 'labels', 0,
        "CREATE TRIGGER turn AFTER INSERT ON labels {TURN}")""",
        "trigger 'turn' on 'labels'",
    ),
    "a unique index behind a comment": (
        "CREATE UNIQUE INDEX one_value ON labels (field, value); PRAGMA writable_schema = ON; "
        "UPDATE sqlite_master SET sql = replace(sql, ' UNIQUE', '/**/UNIQUE') WHERE name = 'one_value'",
        "index 'one_value' on 'labels'",
    ),
    "the words of ours in another order": (
        "DROP TABLE prompts; CREATE TABLE prompts (text TEXT PRIMARY KEY, sha256 TEXT NOT NULL) WITHOUT ROWID",
        "table 'prompts'",
    ),
    # SQLite reads a quoted word that is no name as a text, so this trigger does nothing.
    "a trigger whose action is a quoted text": (
        """DROP TRIGGER events_keep; CREATE TRIGGER events_keep BEFORE UPDATE ON events
        BEGIN SELECT "RAISE(ABORT, 'events are append-only')"; END""",
        "trigger 'events_keep' on 'events'",
    ),
    "a constraint that is quoted into the name of a type": (
        """PRAGMA writable_schema = ON;
        UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', ' "NOT" "NULL"') WHERE name = 'units'""",
        "table 'units'",
    ),
    # For SQLite, a no-break space is a letter: "NOT NULL" becomes a word in the name of the column's type.
    "a constraint whose space is a no-break space": (
        """PRAGMA writable_schema = ON;
        UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', ' NOT' || char(160) || 'NULL') WHERE name = 'units'""",
        "table 'units'",
    ),
    # SQLite reads a definition that is stored as a blob, too.
    "a definition that is no text": (
        """PRAGMA writable_schema = ON; UPDATE sqlite_master SET
        sql = CAST(replace(sql, ' NOT NULL', '') AS BLOB) WHERE name = 'units'""",
        "table 'units'",
    ),
    # These indexes compute something for every row that is written, which took 2 GB of memory for each.
    "an index of what an expression computes": (
        "CREATE INDEX huge ON judgements (length(hex(zeroblob(4 + length(unit_id)))))",
        "index 'huge' on 'judgements'",
    ),
    "an index with a condition": (
        "CREATE INDEX huge ON judgements (unit_id) WHERE length(hex(zeroblob(4))) > length(unit_id)",
        "index 'huge' on 'judgements'",
    ),
    # Without the collation, no row can be written: 'no such collation sequence'.
    "an index with a collation of another program": (
        """CREATE INDEX odd ON labels (value); PRAGMA writable_schema = ON;
        UPDATE sqlite_master SET sql = 'CREATE INDEX odd ON labels (value COLLATE odd)' WHERE name = 'odd'""",
        "index 'odd' on 'labels'",
    ),
    # Rows are inserted by the columns' order: the cost would be stored as the mass outside the labels, and no limit would see it.
    "two columns of ours in each other's place": (
        """PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql =
        replace(replace(replace(sql, ' cost REAL', '?'), ' outside_mass REAL', ' cost REAL'), '?', ' outside_mass REAL')
        WHERE name = 'judgements'""",
        "table 'judgements'",
    ),
}  # fmt: skip


@pytest.fixture
def study(judge: Judge, tmp_path: Path) -> Path:
    judge("items", "import", "jsonl", write_rows(tmp_path / "mine.jsonl", ROWS))
    return tmp_path / "study.db"


def define(study: Path, script: str) -> None:
    """Change the file as its sender would, without our code."""
    with closing(sqlite3.connect(study)) as conn:
        conn.execute("PRAGMA legacy_alter_table = ON")
        conn.executescript(script)


@pytest.mark.parametrize(("script", "named"), FOREIGN.values(), ids=FOREIGN)
def test_what_could_change_labels_is_refused_by_name(
    judge: Judge, study: Path, script: str, named: str
) -> None:
    define(study, script)
    before = study.read_bytes()
    done = judge("run", "stance", "-m", "scripted/hash", code=1)
    assert f"study.db: the {named}" in done.err and len(done.err.splitlines()) == 1
    assert study.read_bytes() == before, "nothing was written, no migration either"
    judge("items", "import", "jsonl", study.with_name("mine.jsonl"), "-d", "other.db")
    done = judge("studies", "merge", "study.db", "other.db", "--into", "both.db", code=1)
    assert f"the {named}" in done.err and not study.with_name("both.db").exists()


REMOVED = {
    # The name alone is not enough: the table takes the place of the trigger in the list of names.
    "DROP TRIGGER events_keep; CREATE TABLE events_keep (x)": "trigger 'events_keep'",
    "DROP TRIGGER events_keep": "trigger 'events_keep'",
    "DROP TRIGGER source_added": "trigger 'source_added'",
    "DROP VIEW resolved_labels": "view 'resolved_labels'",
    "DROP INDEX idx_drafts": "index 'idx_drafts'",
    "DROP TABLE drafts": "table 'drafts'",
}


def test_an_older_definition_is_named(judge: Judge, study: Path) -> None:
    """A trigger as an earlier migration made it is ours, but does less than the one that replaced it."""
    open_study(study).close()
    latest = {name: (kind, words) for kind, name, words in _ours(_steps())[1]}
    older = [
        name
        for name, states in _ours(_steps())[0].items()
        if name in latest and latest[name][0] == "trigger" and len(states["trigger"]) > 1
    ]
    assert older, "no trigger has an earlier definition"
    first = {}
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        made.execute("BEGIN")
        for step in _steps():
            migrations.execute(step, made)
            for name, sql in made.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"):
                first.setdefault(name, sql)
    name = older[0]
    define(study, f"DROP TRIGGER {name}; {first[name]}")
    done = judge("runs", "list", code=1)
    assert f"study.db: the trigger '{name}' was removed or changed" in done.err


@pytest.mark.parametrize(("script", "named"), REMOVED.items())
def test_what_was_removed_is_named(judge: Judge, study: Path, script: str, named: str) -> None:
    """Without its own triggers a study takes changes that no log has, and its labels do not follow their sources."""
    define(study, script)
    before = study.read_bytes()
    done = judge("runs", "list", code=1)
    assert f"study.db: the {named} was removed" in done.err and len(done.err.splitlines()) == 1
    assert study.read_bytes() == before
    judge("items", "import", "jsonl", study.with_name("mine.jsonl"), "-d", "other.db")
    done = judge("studies", "merge", "other.db", "study.db", "--into", "both.db", code=1)
    assert f"the {named} was removed" in done.err and not study.with_name("both.db").exists()


def test_a_definition_of_an_earlier_version_is_not_enough(judge: Judge, study: Path) -> None:
    """It was ours once, but it does not know the corrected texts: labels for the old ones would count."""
    older = (migrations.FOLDER / "m002_sources.sql").read_text("utf-8")
    [view] = [text for text in older.split("\n\n") if "CREATE VIEW label_conflicts" in text]
    define(study, f"DROP VIEW label_conflicts; {view}")
    done = judge("runs", "list", code=1)
    assert "study.db: the view 'label_conflicts' was removed or changed" in done.err


def test_extra_views_indexes_and_full_text_tables_are_fine_and_are_not_merged(
    judge: Judge, study: Path
) -> None:
    define(
        study,
        "CREATE VIEW mine AS SELECT * FROM labels; CREATE INDEX fast ON labels (value); "
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT UNIQUE); INSERT INTO notes VALUES (1, 'x'); "
        "CREATE VIRTUAL TABLE found USING fts5(text); INSERT INTO found VALUES ('y'); "
        "CREATE VIRTUAL TABLE notes_found USING fts5(text, content='notes', content_rowid='id'); "
        "CREATE TRIGGER keep_found AFTER INSERT ON notes BEGIN "
        "INSERT INTO notes_found(rowid, text) VALUES (NEW.id, NEW.text); END",
    )
    judge("run", "stance", "-m", "scripted/hash")
    judge("items", "import", "jsonl", study.with_name("mine.jsonl"), "-d", "other.db")
    judge("studies", "merge", "other.db", "study.db", "--into", "both.db")
    with closing(sqlite3.connect(study.with_name("both.db"))) as conn:
        names = {name for (name,) in conn.execute("SELECT name FROM sqlite_master")}
        assert conn.execute("SELECT count(*) FROM labels").fetchone() == (4,)
    assert not names & {"mine", "fast", "notes", "found", "keep_found"}


def test_a_merge_makes_its_tables_itself(judge: Judge, study: Path) -> None:
    """Only one of the studies has the tables of people, and its sender calls his own tables another set of migrations."""
    open_study(study).close()
    define(
        study,
        "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('evil', 'm001', '2026');"
        "CREATE TABLE evil (x); CREATE VIEW evil_view AS SELECT * FROM labels",
    )
    judge("items", "import", "jsonl", study.with_name("mine.jsonl"), "-d", "other.db")
    judge("studies", "merge", "other.db", "study.db", "--into", "both.db")
    with closing(sqlite3.connect(study.with_name("both.db"))) as conn:
        sets = {name for (name,) in conn.execute("SELECT DISTINCT migration_set FROM _sqlite_migrations")}
        names = {name for (name,) in conn.execute("SELECT name FROM sqlite_master")}
    assert sets == {"judge", "annotate"} and {"events", "events_keep", "batch_labels"} <= names
    assert not names & {"evil", "evil_view"}
    open_study(study.with_name("both.db")).close()


def test_the_id_of_a_run_is_no_sql(judge: Judge, study: Path) -> None:
    """Joined runs are renamed in every text of the other study, and their ids come from its file."""
    judge("run", "stance", "-m", "scripted/hash")
    judge("items", "import", "jsonl", study.with_name("mine.jsonl"), "-d", "other.db")
    judge("run", "stance", "-m", "scripted/hash", "-d", "other.db")
    other = study.with_name("other.db")
    with closing(sqlite3.connect(other)) as conn:
        (run,) = conn.execute("SELECT run_id FROM runs").fetchone()
        evil = "', '') || 'refute' || replace('"
        for table, column in (
            ("runs", "run_id"), ("judgements", "run_id"), ("requests", "run_id"), ("run_counts", "run_id"),
            ("labels", "annotator_id"), ("annotators", "annotator_id"),
        ):  # fmt: skip
            conn.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", [evil, run])
        conn.commit()
    judge("studies", "merge", "study.db", "other.db", "--into", "both.db", code=None)
    before = json.loads(judge("runs", "list", "--json").out)["rows"]
    if study.with_name("both.db").exists():
        after = json.loads(judge("runs", "list", "--json", "-d", "both.db").out)["rows"]
        assert [row["run_id"] for row in after] == [row["run_id"] for row in before]


def test_unsafe_functions_are_off_where_sqlite_can_do_without(study: Path) -> None:
    """SQLite 3.38 to 3.40 count their JSON functions, which our own tables use, among the unsafe ones."""
    with closing(Store.open(study)) as store:
        is_off = store.conn.execute("PRAGMA trusted_schema").fetchone() == (0,)
    assert is_off or (3, 38) <= sqlite3.sqlite_version_info[:2] <= (3, 40)
