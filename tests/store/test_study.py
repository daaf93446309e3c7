"""The study file itself: how it is opened, what it promises, and what it says when it cannot be used."""

import hashlib
import json
import os
import re
import resource
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import sqlite_utils

from judge import migrations
from judge.errors import Exit, StudyError, WriteFailed
from judge.store import Store, study
from judge.types import Item, Passage
from tests.cli.helpers import Done, process, write_rows
from tests.opened import opened
from tests.store.helpers import add, dump, import_jsonl, stored


def pragma(store: Store, name: str) -> object:
    return store.conn.execute(f"PRAGMA {name}").fetchone()[0]


def test_commits_are_durable_and_references_are_checked(tmp_path: Path) -> None:
    with Store.open(tmp_path / "study.db") as store, store.clone() as writer:
        for opened in (store, writer):
            assert pragma(opened, "journal_mode") == "wal"
            assert (
                pragma(opened, "synchronous") == 2
            )  # FULL, https://sqlite.org/pragma.html#pragma_synchronous
            assert pragma(opened, "foreign_keys") == 1
        with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
            writer.conn.execute(
                "INSERT INTO units (unit_id, kind, item_id, question_id) VALUES ('u','item','?','q')"
            )


def photos() -> bytes:
    """A database of another program."""
    with closing(sqlite3.connect(":memory:")) as conn:
        conn.execute("CREATE TABLE photos (id INTEGER)")
        return conn.serialize()


@pytest.mark.parametrize(
    ("content", "create", "words"),
    [
        (b"id,claim\n1,two\n" * 100, True, "not a database"),
        (b"\x1f\x8b" + bytes(2000), True, "not a database"),
        (b"SQLite format 3\x00" + b"\xff" * 4080, True, "not a database|malformed"),
        (photos(), True, "not a study .it has a table 'photos'"),
        # To read from, the command to type is that of an import.
        (b"id,claim\n1,two\n" * 100, False, "with -d, or .*: judge items import"),
        (b"", False, "with -d, or .*: judge items import"),
    ],
    ids=["text", "gzip", "broken", "other", "text to read", "empty to read"],
)
def test_a_file_that_is_no_study_stays_as_it_is(
    tmp_path: Path, content: bytes, create: bool, words: str
) -> None:
    path = tmp_path / "study.db"
    path.write_bytes(content)
    with pytest.raises(StudyError, match=words) as caught:
        Store.open(path, create=create)
    assert str(path) in str(caught.value) and caught.value.exit_code == Exit.ERROR
    assert path.read_bytes() == content and list(tmp_path.iterdir()) == [path]


def test_a_study_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"no such study.*judge items import"):
        Store.open(tmp_path / "study.db", create=False)
    with pytest.raises(StudyError, match=r"folder .*nowhere does not exist"):
        Store.open(tmp_path / "nowhere" / "study.db")
    assert list(tmp_path.iterdir()) == []


def test_a_study_of_a_newer_version(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with Store.open(path) as store:
        add(store, [Item("1", "d", claim="c")])
        store.conn.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('judge', 'm999_future', '')"
        )
        kept = dump(store)
    with pytest.raises(StudyError, match=r"newer version of adjudge \(m999_future\); upgrade"):
        Store.open(path)
    with closing(sqlite3.connect(path)) as conn, conn:
        assert list(conn.iterdump()) == kept


def test_a_migration_of_another_program_is_none_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with Store.open(path) as store:
        store.conn.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('notes', 'm001', '')"
        )
    Store.open(path).close()


@pytest.mark.migrates
def test_an_opening_that_is_stopped_half_way_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "study.db"

    def broken(file: Path, db: object) -> None:
        real(file, db)
        if file.stem == migrations.NAMES["annotate"][-1]:
            raise KeyboardInterrupt

    real = migrations.execute
    with monkeypatch.context() as patched:
        patched.setattr(migrations, "execute", broken)
        with pytest.raises(KeyboardInterrupt):
            Store.open(path)
    with closing(sqlite3.connect(path)) as conn, conn:
        assert conn.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    with Store.open(path) as store:
        assert migrations.is_current(store.conn)


@pytest.mark.migrates
def test_processes_that_open_a_new_study_at_once_all_can(tmp_path: Path) -> None:
    path = tmp_path / "study.db"

    def open_it(_: int) -> list[str]:
        with Store.open(path) as store:
            return migrations.list_applied(store.conn)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(open_it, range(8))) == [list(migrations.NAMES["judge"])] * 8


def test_two_that_turn_the_journal_of_a_restored_study_at_once_both_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite tells one of them "locked" at once, in 1 of 30 meetings: here the first one that asks always meets another."""
    path = tmp_path / "study.db"
    Store.open(path).close()
    with closing(sqlite3.connect(path)) as conn, conn:
        conn.execute("PRAGMA journal_mode = DELETE")  # as in what a dump was read into
    conn.close()
    met: list[str] = []

    class Meeting(sqlite3.Connection):
        def execute(self, sql: str, *given: object) -> sqlite3.Cursor:
            if "journal_mode" in sql and not met:
                met.append(sql)
                raise sqlite3.OperationalError("database is locked")
            return super().execute(sql, *given)  # type: ignore[arg-type]

    real = sqlite3.connect
    with monkeypatch.context() as patched:
        patched.setattr(sqlite3, "connect", lambda *a, **k: real(*a, factory=Meeting, **k))
        with Store.open(path) as store:
            assert store.conn.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert met


# --- what SQLite says, in our words


def test_a_study_that_another_program_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "BUSY_SECONDS", 0.05)
    path = tmp_path / "study.db"
    with Store.open(path) as store:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StudyError, match="locked by another program"):
            add(store, [Item("1", "d", claim="c")])
        assert stored(store.conn) == [], "reading goes on"
        other.execute("ROLLBACK")
        other.close()
        add(store, [Item("1", "d", claim="c")])
        assert len(stored(store.conn)) == 1


def test_a_disk_that_fills_up_during_an_import(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    big = [Item(str(n), "d", claim="c", passages=[Passage("x" * 100_000)]) for n in range(20)]
    with Store.open(path) as store:
        add(store, [Item("first", "d", claim="c")])
        kept = dump(store)
        pages = pragma(store, "page_count")
        store.conn.execute(f"PRAGMA max_page_count = {int(str(pages)) + 50}")
        with pytest.raises(
            WriteFailed, match=r"study\.db: database or disk is full: .*free some space"
        ) as caught:
            add(store, big)
        assert caught.value.exit_code == Exit.ERROR
        assert dump(store) == kept
        store.conn.execute("PRAGMA max_page_count = 1000000")
        add(store, big)
        assert len(stored(store.conn)) == 21


def test_a_file_that_may_not_grow_during_an_import(tmp_path: Path) -> None:
    small = write_rows(tmp_path / "small.jsonl", [{"id": "1", "claim": "c"}])
    big = write_rows(tmp_path / "big.jsonl", [{"id": str(n), "claim": "x" * 10_000} for n in range(1000)])
    import_jsonl(tmp_path / "study.db", small)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))

    done = process("items", "import", "jsonl", big, cwd=tmp_path, code=1, preexec_fn=limited)
    assert re.fullmatch(r"judge: study\.db: .*free some space and run the same command again\n", done.stderr)
    with Store.open(tmp_path / "study.db") as store:
        assert [i.item_id for i in stored(store.conn)] == ["small:1"]
        assert pragma(store, "integrity_check") == "ok"
    import_jsonl(tmp_path / "study.db", big)
    with Store.open(tmp_path / "study.db") as store:
        assert len(stored(store.conn)) == 1001


@contextmanager
def as_nobody() -> Iterator[Path]:
    """A folder of one's own and, for root, whom no permission stops, the rights of another user."""
    folder = Path(tempfile.mkdtemp(prefix="adjudge-test-"))
    root = os.geteuid() == 0
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)
        shutil.rmtree(folder)


def drop_rights() -> None:
    if os.geteuid() == 0:
        os.seteuid(65534)


def test_a_study_that_may_only_be_read() -> None:
    with as_nobody() as folder:
        path = folder / "study.db"
        with Store.open(path) as store:
            add(store, [Item("1", "d", claim="c")])
        path.chmod(0o444)
        folder.chmod(0o555)
        drop_rights()
        with (
            pytest.raises(StudyError, match=r"study\.db: .*the file and its folder must be writable"),
            Store.open(path) as store,
        ):
            add(store, [Item("2", "d", claim="c")])
        with pytest.raises(StudyError, match=r"new\.db: .*must be writable"):
            Store.open(folder / "new.db")


# --- what others can rely on


@pytest.fixture
def full(judge: Callable[..., Done], tmp_path: Path) -> Path:
    """A study with everything in it that the commands write."""
    rows = [
        {
            "id": "1", "claim": "c", "question": "q", "reference_answers": ["é"], "options": {"A": "x", "B": "y"},
            "correct": "A", "extra": {"deep": [1, 2.5, None]}, "gold": {"claim_verdict": "true"},
            "passages": [{"id": "a", "text": "t", "more": 1, "gold": {"stance": "support"}}, "u"],
        }
    ]  # fmt: skip
    judge("items", "import", "jsonl", write_rows(tmp_path / "rows.jsonl", rows), "--map-label", "stance:x=y")
    judge("run", "stance", "-m", "scripted/hash", "--option", "logprobs=1")
    judge("run", "raguard_exam", "-m", "scripted/hash")
    judge("run", "stance", "-m", "scripted/refuse", code=4)
    return tmp_path / "study.db"


def test_json_columns_hold_json_and_times_are_utc(full: Path) -> None:
    conn = opened(sqlite3.connect(full))
    tables = [t for (t,) in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    checked = dict.fromkeys(("json", "time"), 0)
    for table in tables:
        for column in conn.execute(f"PRAGMA table_info({table})").fetchall():
            name = column[1]
            values = [v for (v,) in conn.execute(f"SELECT {name} FROM {table} WHERE {name} IS NOT NULL")]
            declared = conn.execute("SELECT sql FROM sqlite_master WHERE name = ?", [table]).fetchone()[0]
            looks = [v for v in values if isinstance(v, str) and v[:1] in "[{"]
            if f"json_valid({name})" in declared:
                for value in values:
                    assert conn.execute("SELECT json_valid(?)", [value]).fetchone() == (1,), (table, name)
                checked["json"] += len(values)
            elif table not in ("prompts", "judgements"):
                assert not looks, f"{table}.{name} holds JSON and is not checked"
            if name in ("imported_at", "started", "finished", "judged_at"):
                for value in values:
                    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", value), (
                        table,
                        name,
                        value,
                    )
                checked["time"] += len(values)
    assert checked["json"] > 20
    assert checked["time"] > 5
    assert conn.execute("PRAGMA foreign_key_check").fetchall() == []


def test_sqlite_utils_reads_it(full: Path) -> None:
    db = opened(sqlite_utils.Database(full))
    assert {"items", "passages", "labels", "judgements", "runs"} <= set(db.table_names())
    assert db["items"].pks == ["item_id"]
    assert ("item_id", "items") in {(key.column, key.other_table) for key in db["passages"].foreign_keys}
    [item] = db["items"].rows
    assert json.loads(item["meta"]) == {"extra": {"deep": [1, 2.5, None]}}
    query = "select count(*) as n from labels where field = 'stance' and annotator_id <> 'gold'"
    assert list(db.query(query)) == [{"n": 2}]


def test_prompts_are_stored_once_and_named_by_their_hash(full: Path) -> None:
    conn = opened(sqlite3.connect(full))
    prompts = dict(conn.execute("SELECT sha256, text FROM prompts"))
    assert prompts
    assert all(hashlib.sha256(text.encode()).hexdigest() == sha for sha, text in prompts.items())
    for sha, text in conn.execute("SELECT sha256, template FROM tasks"):
        assert hashlib.sha256(text.encode()).hexdigest() == sha


def test_what_a_run_said_of_a_unit_is_found_by_the_unit(tmp_path: Path) -> None:
    """By the primary key, which begins with the annotator, every unit read all labels of the run: 20,000 took a minute."""
    from judge.store import label_rows

    with Store.open(tmp_path / "s.db") as store:
        queries = [f"SELECT {label_rows.objects('r.run_id', 'r.task', 'l.value')} FROM runs AS r"]
        store.conn.set_trace_callback(queries.append)
        label_rows.make_label_rows(store.conn, "run", "unit", 0)
        store.conn.set_trace_callback(None)
        assert len(queries) == 2
        for query in queries:
            plan = [row[3] for row in store.conn.execute(f"EXPLAIN QUERY PLAN {query}")]
            assert any("USING INDEX idx_labels_unit (unit_id=?)" in step for step in plan), plan


def test_a_look_through_the_study_keeps_few_pages_and_leaves_the_connection_as_it_was(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.db") as store:

        def pages() -> int:
            pages_now: int = store.conn.execute("PRAGMA cache_size").fetchone()[0]
            return pages_now

        before = pages()
        with pytest.raises(StudyError), store.reading_once():
            assert abs(pages()) < abs(before)
            raise StudyError("whatever ends it")
        assert pages() == before


# --- damaged studies, and studies where nothing can be written


@pytest.fixture
def db(judge: Callable[..., Done], tmp_path: Path) -> Path:
    judge("items", "import", "jsonl", write_rows(tmp_path / "pairs.jsonl"))
    judge("run", "stance", "-m", "scripted/hash")
    return tmp_path / "study.db"


@pytest.mark.parametrize(
    "words",
    [("runs", "show"), ("items", "show"), ("runs", "export"), ("run", "stance", "-m", "scripted/first")],
)
def test_a_damaged_study_is_said_in_one_line(
    db: Path, judge: Callable[..., Done], words: tuple[str, ...]
) -> None:
    data = bytearray(db.read_bytes())
    for page in range(4096 * 2, len(data), 4096):
        data[page : page + 200] = b"\xff" * 200
    db.write_bytes(data)
    done = judge(*words, code=1)
    assert len(done.err.strip().splitlines()) == 1
    assert "malformed" in done.err and "restore a backup" in done.err


def test_a_study_that_nobody_can_write_is_shown(
    db: Path, judge: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs the tests may write everywhere: what the system says of rights is what is replaced."""
    before = judge("runs", "show").out
    left = {p.name for p in db.parent.iterdir()}
    monkeypatch.setattr(study.os, "access", lambda path, mode: mode != os.W_OK)
    assert judge("runs", "show").out == before
    assert {p.name for p in db.parent.iterdir()} == left, "nothing is made beside it"
    assert "readonly" in judge("run", "stance", "-m", "scripted/first", code=1).err
    db.with_name("study.db-wal").write_bytes(b"x" * 100)
    with pytest.raises(StudyError, match="the last changes are in"):
        Store.open(db, create=False)
