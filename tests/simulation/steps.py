"""The steps of a simulated study: each chooses by its own random numbers, runs the command, and tells the oracle what was meant.

A step that has nothing to act on returns False and is not counted.
"""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from tests.simulation.oracle import Entry
from tests.simulation.world import FIELDS, LEAD, PEOPLE, Batch, Pack, World, Wrong

Step = Callable[[World, Random], bool]
Row = tuple[str, str, str]
"""Person, unit, label."""
STEPS: dict[str, tuple[int, Step]] = {}
"""Name -> its weight and function."""
MOST_ITEMS = 7


def step(weight: int) -> Callable[[Step], Step]:
    """Register a step under the name of its function."""

    def register(function: Step) -> Step:
        STEPS[function.__name__] = weight, function
        return function

    return register


# --- what is there to act on


def units(world: World) -> list[str]:
    """Every unit of the study."""
    return [unit for (unit,) in world.rows("SELECT unit_id FROM units ORDER BY rowid")]


def seats(world: World, batch: str, person: str) -> list[tuple[int, str, int]]:
    """(position, unit, repeat) of a person's queue."""
    query = "SELECT position, unit_id, repeat FROM assignments WHERE batch = ? AND annotator_id = ? ORDER BY position"
    return world.rows(query, batch, person)


def people_of(world: World, batch: str) -> list[str]:
    """The people of a batch."""
    query = (
        "SELECT DISTINCT annotator_id FROM assignments WHERE batch = ? AND role <> 'adjudication' ORDER BY 1"
    )
    return [who for (who,) in world.rows(query, batch)]


def open_seat(world: World, rng: Random) -> tuple[Batch, str] | None:
    """A person who may work in an open batch."""
    found = [
        (batch, person)
        for batch in world.batches.values()
        if not batch.closed
        for person in people_of(world, batch.name)
        if (batch.name, person) not in world.oracle.stopped
    ]
    return rng.choice(found) if found else None


def open_batch(world: World, rng: Random) -> Batch | None:
    """A batch that is not closed."""
    found = [batch for batch in world.batches.values() if not batch.closed]
    return rng.choice(found) if found else None


def out(world: World, batch: str, person: str) -> set[tuple[str, int]]:
    """Units that were worked on in packs that are not back yet."""
    mine = (p for p in world.packs if (p.batch, p.person) == (batch, person))
    return {(e.unit[0], e.unit[1]) for p in mine for e in p.entries}


# --- items, judges, splits


@step(5)
def import_items(world: World, rng: Random) -> bool:
    """New items, some with votes of people."""
    if world.items >= MOST_ITEMS:
        return False
    rows, votes = [], []
    for _ in range(rng.randrange(1, 3)):
        number = world.items
        world.items += 1
        passages: list[dict[str, Any]] = []
        for name in "ab":
            passage: dict[str, Any] = {"id": name, "text": f"Text {number}{name} of {rng.random()}."}
            if rng.random() < 0.6:
                given = {
                    who: rng.choice(FIELDS["side"][1]) for who in rng.sample(PEOPLE, rng.randrange(1, 3))
                }
                passage["votes"] = {"side": given}
                votes += [(who, f"d:q{number}/{name}", label) for who, label in given.items()]
            passages.append(passage)
        rows.append({"id": f"q{number}", "claim": f"Claim {number}.", "passages": passages})
    file = world.folder / f"items{world.number()}.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    world.judge("items", "import", "jsonl", file, "--dataset", "d")
    world.annotate("batches", "show")  # which makes the tables of batches
    tick = world.oracle.now()
    for who, unit, label in votes:
        world.oracle.outside[who, "side", unit, 0][f"items:{file.name}"] = label, tick
        world.came("votes", who, unit)
    return True


@step(4)
def import_items_again(world: World, rng: Random) -> bool:
    """The same items again, with another text, or with more votes: nothing changes, it is refused, or the votes are new."""
    files = sorted(world.folder.glob("items*.jsonl"))
    if not files:
        return False
    file = rng.choice(files)
    way = rng.choice(["same", "changed", "votes"])
    if way == "same":
        world.judge("items", "import", "jsonl", file, "--dataset", "d")
    elif way == "changed":
        changed = world.folder / "changed.jsonl"
        changed.write_text(file.read_text().replace("Text ", "Another text ", 1))
        world.judge("items", "import", "jsonl", changed, "--dataset", "d", code=1)
    else:
        _more_votes(world, rng, file)
    return True


def _more_votes(world: World, rng: Random, file: Path) -> None:
    """The items of a file once more, with votes of the same people on the question of the other task."""
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    votes = []
    for row in rows:
        for passage in row["passages"]:
            unit = f"d:{row['id']}/{passage['id']}"
            given = passage.get("votes", {}).get("side", {})
            for who in given:
                known = world.oracle.outside[who, "depth", unit, 0]
                if not any(source.startswith("items:") for source in known):
                    label = rng.choice(FIELDS["depth"][1])
                    passage["votes"].setdefault("depth", {})[who] = label
                    votes.append((who, unit, label))
    again = world.folder / f"items{world.number()}.jsonl"
    again.write_text("".join(json.dumps(row) + "\n" for row in rows))
    counted = world.oracle.counted()
    votes = [v for v in votes if not world.oracle.is_rejected((v[0], "depth", v[1], 0), v[2])]
    refused = any(
        _shut(world, "depth", who, unit)
        and label not in {value for value, _ in counted.get((who, "depth", unit, 0), {}).values()}
        for who, unit, label in votes
    )
    world.judge("items", "import", "jsonl", again, "--dataset", "d", code=int(refused))
    if refused:
        again.unlink()
        return
    tick = world.oracle.now()
    for who, unit, label in votes:
        world.oracle.outside[who, "depth", unit, 0][f"items:{again.name}"] = label, tick
        world.came("votes", who, unit)


@step(12)
def correct_items(world: World, rng: Random) -> bool:
    """A text is corrected in its file: refused without --correct, shown without --yes, and then what was said is old."""
    files = {
        file: [json.loads(line) for line in file.read_text().splitlines()]
        for file in world.folder.glob("items*.jsonl")
    }
    places = sorted(
        (file, row["id"], passage["id"])
        for file, rows in files.items()
        for row in rows
        for passage in row["passages"]
    )
    if not places:
        return False
    file, item, name = rng.choice(places)
    text = f"Text {world.number()} of {rng.random()}, corrected."
    for other, rows in files.items():
        for row in rows:
            for passage in row["passages"]:
                if (row["id"], passage["id"]) == (item, name):
                    passage["text"] = text
        other.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("items", "import", "jsonl", file, "--dataset", "d")
    world.judge(*words, code=1)
    world.judge(*words, "--correct", code=2)
    world.check()
    world.judge(*words, "--correct", "--yes")
    unit = f"d:{item}/{name}"
    world.oracle.corrected[unit] = world.oracle.now()
    if world.rows("SELECT text FROM passages WHERE passage_id = ?", unit) != [(text,)]:
        raise Wrong(f"the text of {unit} was not corrected")
    return True


def _run(world: World, *more: str, code: int | tuple[int, ...] = (0, 4)) -> None:
    world.judge("run", world.folder / "prompts" / "side.v1.md", "-m", *more, code=code)


@step(6)
def run_judge(world: World, rng: Random) -> bool:
    """A judge of the first task; some of the replies cannot be read."""
    if not units(world):
        return False
    script = world.folder / "script.jsonl"
    lines = [
        {"match": "Claim 1", "reply": "It is hard to say."},
        {"reply": rng.choice(["support", "refute"])},
    ]
    if not script.exists():
        script.write_text("".join(json.dumps(line) + "\n" for line in lines))
    _run(world, "scripted/file", "--option", f"script={script}", code=(0, 4))
    return True


@step(7)
def run_second_judge(world: World, rng: Random) -> bool:
    """Another judge, killed at one of its commits, and resumed."""
    if not units(world):
        return False
    words = ("scripted/hash", "--answers", "codes", "--option", "logprobs=1")
    if rng.random() < 0.5:
        world.killed(rng, lambda: _run(world, *words))
    _run(world, *words)
    return True


@step(24)
def run_derived_judge(world: World, rng: Random) -> bool:
    """A panel of two judges."""
    runs = [
        r for (r,) in world.rows("SELECT run_id FROM runs WHERE derived_from IS NULL AND task LIKE 'side%'")
    ]
    if len(runs) < 2:
        return False
    world.judge("panel", "side", "--run", runs[0], "--run", runs[1], "--interval", "none", code=(0, 1, 2))
    return True


@step(4)
def split_and_look(world: World, rng: Random) -> bool:
    """The questions are split, and the test is looked at."""
    if not world.oracle.labels():
        return False
    world.judge("split", "side", "--reference", rng.choice([*PEOPLE, "majority"]), code=(0, 1, 2))
    world.judge("compare", "side", "--part", "test", code=(0, 1, 2))
    return True


# --- drawing


def _seated(world: World, batch: str) -> set[tuple[str, int]]:
    """Everybody's seats in a batch."""
    return {(p, at) for p in people_of(world, batch) for at, _, _ in seats(world, batch, p)}


def _drawn(world: World, batch: Batch, before: set[tuple[str, int]]) -> None:
    """Tell the oracle what was adopted at seats that are new: what a person had said of the unit."""
    oracle = world.oracle
    counted = oracle.counted()
    for person in people_of(world, batch.name):
        for position, unit, repeat in seats(world, batch.name, person):
            key = (person, batch.field, unit, 0)
            if repeat or (person, position) in before or key not in counted:
                continue
            values = {value for value, _ in counted[key].values()}
            stopped = any(
                (b, person) in oracle.stopped for b in world.batches if f"batch:{b}" in counted[key]
            )
            if len(values) == 1 and not stopped:
                tick = min(tick for _, tick in counted[key].values())
                oracle.logs[batch.name, person].append(Entry((unit, 0), "label", values.pop(), tick))
                world.came("adopted", person, unit)


@step(15)
def draw_batch(world: World, rng: Random) -> bool:
    """A batch for one person or more; some by the judge's label, some that show the judge."""
    if not units(world) or len(world.batches) >= 9:
        return False
    name, task = f"b{world.number()}", rng.choice(list(FIELDS))
    people = rng.sample(PEOPLE, rng.randrange(1, 4))
    judged = task == "side" and bool(
        world.rows("SELECT 1 FROM labels AS l JOIN runs AS r ON r.run_id = l.annotator_id")
    )
    reveal = judged and rng.random() < 0.6
    drawn = ["-n", rng.randrange(2, 6), "--seed", rng.randrange(99)]
    words: list[object] = [*drawn, "--annotators", ",".join(people)]
    sure = judged and bool(world.rows("SELECT 1 FROM labels WHERE distribution IS NOT NULL LIMIT 1"))
    if sure and rng.random() < 0.5:
        words += ["--draw", "least-sure", "--run", "scripted/hash"]
    elif judged and rng.random() < 0.5:
        words += ["--by", "label"]
    if reveal:
        words += ["--reveal"]
    elif rng.random() < 0.3:
        words += ["--repeats", "50%"]
    if rng.random() < 0.2:
        words += ["--fresh"]
    words += ["--allow-exposed"]
    version = rng.randrange(1, len(world.versions[task]) + 1)
    path = world.path(task, version)

    def work() -> Any:
        return world.annotate("batches", "new", name, path, *words, code=(0, 1, 2))

    if rng.random() < 0.2:
        world.killed(rng, work)
    there = bool(world.rows("SELECT 1 FROM batches WHERE batch = ?", name))
    done = work()
    if there != ("already exists; choose another name" in done.stderr):
        raise Wrong(f"batch {name} was{'' if there else ' not'} there after the kill: {done.stderr}")
    if done.exit_code and not there:
        return False
    _add_batch(world, Batch(name, task, reveal, version))
    return True


def _add_batch(world: World, batch: Batch) -> None:
    batch.guidelines = world.versions[batch.task][batch.version - 1]
    world.batches[batch.name] = batch
    world.oracle.asks[batch.name] = batch.field
    _drawn(world, batch, set())


@step(6)
def draw_apart(world: World, rng: Random) -> bool:
    """Two batches are drawn on two machines, and the studies are merged: units in both are named."""
    if not units(world) or len(world.batches) >= 8:
        return False
    task, copy = rng.choice(list(FIELDS)), world.copy(f"apart{world.number()}.db")
    made: list[Batch] = []
    for db in (world.db, copy):
        version, people = rng.randrange(1, len(world.versions[task]) + 1), rng.sample(PEOPLE, 2)
        batch = Batch(f"b{world.number()}", task, False, version)
        words = ["-n", rng.randrange(2, 6), "--seed", rng.randrange(99), "--annotators", ",".join(people)]
        path = world.path(task, version)
        done = world.command(
            "annotate", "batches", "new", batch.name, path, *words, "--allow-exposed", db=db, code=(0, 1, 2)
        )
        made += [batch] if done.exit_code == 0 else []
    into, old = world.folder / f"merged{world.number()}.db", world.db
    _merge(world, world.db, copy, into)
    world.db = into
    for db in (old, copy):
        for ending in ("", "-wal", "-shm"):
            db.with_name(db.name + ending).unlink(missing_ok=True)
    for batch in made:
        _add_batch(world, batch)
    if len(made) == 2:
        _check_shared_units(world, *made)
    return True


def _check_shared_units(world: World, one: Batch, other: Batch) -> None:
    """Raise Wrong unless the report names how many units are in both batches."""
    from annotate.report.batches import batch_facts
    from annotate.store import open_study
    from judge.document.blocks import Facts

    query = "SELECT unit_id FROM batch_units WHERE batch = ? AND role = 'sample'"
    drawn = [{unit for (unit,) in world.rows(query, batch.name)} for batch in (one, other)]
    with open_study(world.db) as store:
        blocks = batch_facts(store, None, one.field)
    facts = {block.key: dict(block.rows) for block in blocks if isinstance(block, Facts)}
    said = facts.get(f"batch_{other.name}", {}).get("units that are also in other batches", "")
    n = len(drawn[0] & drawn[1])
    if any(
        part.endswith(f" in {one.name}") and part.startswith(f"{n} unit") for part in said.split("; ")
    ) != bool(n):
        raise Wrong(f"{n} units are in {one.name} and {other.name}, and the report says: {said!r}")
    world.counts["(report of shared units)"] += 1


@step(5)
def new_version(world: World, rng: Random) -> bool:
    """A task gets another version, under which later batches can be drawn."""
    task = rng.choice(list(FIELDS))
    if len(world.versions[task]) >= 3:
        return False
    world.add_version(task)
    return True


@step(10)
def clarify_guidelines(world: World, rng: Random) -> bool:
    """The guidelines of a batch are clarified while people label."""
    batch = open_batch(world, rng)
    if batch is None:
        return False
    file = world.folder / f"guidelines{world.number()}.md"
    file.write_text(f"Read {file.stem}.")
    world.annotate("batches", "guidelines", batch.name, file, "--why", "a question came up")
    # A later batch of the version begins with the newest text.
    batch.guidelines = world.versions[batch.task][batch.version - 1] = file.read_text()
    return True


@step(8)
def agreement_of_a_version(world: World, rng: Random) -> bool:
    """The labels of one version of a task are counted, and labels without a batch, which have no version."""
    if not world.batches:
        return False
    batch = rng.choice(list(world.batches.values()))
    version = f"{batch.task}.v{batch.version}"
    words = (
        "--field",
        batch.field,
        "--task",
        version,
        "--measure",
        "percent",
        "--interval",
        "none",
        "--json",
    )
    done = world.annotate("agreement", *words, code=(0, 1, 2))
    if done.exit_code:
        return False  # fewer than two annotators have labels
    meant: dict[str, int] = {}
    first = {
        tuple(r)
        for r in world.rows(
            "SELECT annotator_id, unit_id FROM labels WHERE field = ? AND layer = 'first' AND repeat = 0",
            batch.field,
        )
    }
    for (person, name, unit, repeat), sources in world.oracle.counted().items():
        of_batches = [world.batches[s.partition(":")[2]] for s in sources if s.startswith("batch:")]
        counts = not of_batches or any((b.task, b.version) == (batch.task, batch.version) for b in of_batches)
        same = len({value for value, _ in sources.values()}) == 1
        if (
            person in PEOPLE
            and name == batch.field
            and not repeat
            and same
            and counts
            and (person, unit) in first
        ):
            meant[person] = meant.get(person, 0) + 1
    found = {
        a["annotator"]: a["n_labels"]
        for a in json.loads(done.stdout)["fields"][0]["annotators"]
        if a["kind"] == "human" and a["n_labels"]
    }
    if found != meant:
        raise Wrong(f"labels under {version}: {found}, meant {meant}")
    return True


@step(6)
def extend_batch(world: World, rng: Random) -> bool:
    """A larger sample; a kill and the same command again add nothing twice."""
    batch = open_batch(world, rng)
    if batch is None:
        return False
    has = world.rows("SELECT count(*) FROM batch_units WHERE batch = ? AND role = 'sample'", batch.name)[0][0]
    to, before = has + rng.randrange(1, 4), _seated(world, batch.name)

    def work() -> Any:
        return world.annotate("batches", "extend", batch.name, "--to", to, "--allow-exposed", code=(0, 1, 2))

    if rng.random() < 0.3:
        world.killed(rng, work)
    if work().exit_code == 0:
        has = world.rows("SELECT count(*) FROM batch_units WHERE batch = ? AND role = 'sample'", batch.name)[
            0
        ][0]
        if has != to:
            raise Wrong(f"batch {batch.name} has {has} units, not {to}")
    _drawn(world, batch, before)
    return True


@step(18)
def add_person(world: World, rng: Random) -> bool:
    """Somebody joins a batch."""
    seat = open_seat(world, rng)
    if seat is None:
        return False
    batch = seat[0]
    newcomers, before = sorted(set(PEOPLE) - set(people_of(world, batch.name))), _seated(world, batch.name)
    if not newcomers:
        return False
    world.annotate(
        "batches", "assign", batch.name, "--to", rng.choice(newcomers), "--allow-exposed", code=(0, 1, 2)
    )
    _drawn(world, batch, before)
    return True


@step(5)
def hand_over(world: World, rng: Random) -> bool:
    """What somebody has not begun goes to another."""
    seat = open_seat(world, rng)
    if seat is None:
        return False
    batch, person = seat
    to, before = rng.choice([p for p in PEOPLE if p != person]), _seated(world, batch.name)
    world.annotate(
        "batches", "assign", batch.name, "--from", person, "--to", to, "--allow-exposed", code=(0, 1, 2)
    )
    _drawn(world, batch, before)
    return True


# --- the screen


def _type(
    world: World, batch: Batch, desk: Any, position: int, unit: tuple[str, int], rng: Random
) -> Entry | None:
    """One thing that a person does to a unit at the desk."""
    oracle, person = world.oracle, desk.seat.annotator
    desk.load(position)
    what = rng.choice(["label"] * 6 + ["skip", "note", "flag", "span"])
    locked = oracle.locked(batch.name, person, unit)
    if locked and what in ("label", "skip"):
        return None
    entry = Entry(unit, what, rng.choice(batch.labels) if what == "label" else None, oracle.now())
    if what == "label":
        desk.label(position, batch.field, entry.value)
    elif what == "skip":
        desk.skip(position)
    elif what == "note":
        desk.note(position, rng.choice(["odd", "long", None]))
    elif what == "flag":
        desk.flag(position, rng.choice(["spam", None]))
    else:
        desk.spans(position, [("passage", 0, rng.randrange(1, 4))])
    return entry


@step(26)
def screen(world: World, rng: Random) -> bool:
    """A person sits down and labels, skips, notes, flags, marks and undoes."""
    seat = open_seat(world, rng)
    if seat is None:
        return False
    batch, person = seat
    oracle = world.oracle
    away = out(world, batch.name, person)
    queue = [(p, (u, r)) for p, u, r in seats(world, batch.name, person) if (u, r) not in away]
    if not queue:
        return False
    world.log.append(f"{person} sits down in {batch.name}")
    with world.desk(batch.name, person) as desk:
        for _ in range(rng.randrange(6, 24)):
            if rng.random() < 0.15 and not away:
                desk.undo()
                oracle.undo(batch.name, person)
                world.counts["(undo)"] += 1
                continue
            position, unit = rng.choice(queue)
            if (
                batch.reveal
                and rng.random() < 0.7
                and oracle.current(batch.name, person, unit)
                and not unit[1]
            ):
                _reveal(world, batch, desk, position, unit, rng)
                continue
            entry = _type(world, batch, desk, position, unit, rng)
            if entry is not None:
                entry.guidelines = batch.guidelines if entry.what == "label" else ""
                oracle.logs[batch.name, person].append(entry)
                world.counts[f"({entry.what})"] += 1
                if entry.what == "label":
                    world.came("screen", person, unit[0])
    world.check_guidelines(batch, person)
    return True


def _reveal(world: World, batch: Batch, desk: Any, position: int, unit: tuple[str, int], rng: Random) -> None:
    log = world.oracle.logs[batch.name, desk.seat.annotator]
    if not world.oracle.locked(batch.name, desk.seat.annotator, unit):
        desk.lock(position, "judge")
        log.append(Entry(unit, "shown", None, world.oracle.now()))
    value = rng.choice(batch.labels)
    desk.revise(position, batch.field, value, "because")
    log.append(Entry(unit, "revise", value, world.oracle.now()))
    world.counts["(revise)"] += 1


@step(18)
def adjudicate(world: World, rng: Random) -> bool:
    """The lead decides units on which people differ, and undoes."""
    batch = open_batch(world, rng)
    if batch is None:
        return False
    from annotate.leading.adjudication import fill_queue
    from annotate.store import open_study

    with open_study(world.db) as store:
        fill_queue(store, batch.name, LEAD)
    queue = seats(world, batch.name, "adjudicated")
    if not queue:
        return False
    world.log.append(f"{LEAD} adjudicates {batch.name}")
    log = world.oracle.logs[batch.name, "adjudicated"]
    with world.desk(batch.name, LEAD, adjudicate=True) as desk:
        for _ in range(rng.randrange(1, 4)):
            if log and rng.random() < 0.2:
                desk.undo()
                world.oracle.undo(batch.name, "adjudicated")
                continue
            position, unit, repeat = rng.choice(queue)
            value = rng.choice(batch.labels)
            desk.load(position)
            desk.label(position, batch.field, value)
            log.append(Entry((unit, repeat), "label", value, world.oracle.now()))
    return True


# --- sheets, Label Studio, packs


def _entries(
    world: World, batch: Batch, rows: list[Row], latest: bool, tick: int | None = None
) -> list[tuple[str, Entry]] | None:
    """What an import into a batch adds, in order; None where it is refused as a whole. `tick` is the rows' own time."""
    oracle = world.oracle
    new: list[tuple[str, Entry]] = []
    answers: dict[tuple[str, str], str | None] = {}
    if batch.closed:
        return None
    for person, unit, label in rows:
        if (batch.name, person) in oracle.stopped:
            return None
        standing = oracle.current(batch.name, person, (unit, 0))
        there = answers.get((person, unit), standing[0] if standing else None)
        if there == label or oracle.is_rejected((person, batch.field, unit, 0), label, tick):
            continue
        if (there is not None and not latest) or oracle.locked(batch.name, person, (unit, 0)):
            return None
        new.append((person, Entry((unit, 0), "label", label, 0)))
        answers[person, unit] = label
    return new


def _rows(world: World, rng: Random, batch: Batch) -> list[Row]:
    """Answers of people of a batch to some of its units; now and then the same row twice."""
    rows = []
    for person in people_of(world, batch.name):
        away = {unit for unit, _ in out(world, batch.name, person)}
        mine = sorted({u for _, u, r in seats(world, batch.name, person) if not r} - away)
        rows += [
            (person, u, rng.choice(batch.labels))
            for u in rng.sample(mine, min(len(mine), rng.randrange(0, 6)))
        ]
    rng.shuffle(rows)
    return rows + (rows[:1] if rng.random() < 0.3 else [])


def _take_in(
    world: World,
    batch: Batch,
    rows: list[Row],
    latest: bool,
    way: str,
    command: Callable[..., Any],
    rng: Random,
    timed: bool = False,
    others: Sequence[Row] = (),
) -> bool:
    """Import rows, and `others` in the same file, which wait for a lead. Returns whether it was not refused."""
    tick = world.oracle.now()
    doubtful = len(others)
    if way == "sheet":
        # A row without a time cannot be told from an equal row that a lead has to decide on, or has decided on.
        equal = {(p, u, v): status for p, u, v, status in world.records_of(batch.name)}
        waiting = {row for row in rows if equal.get(row) == "open"}
        doubtful = len(waiting | {row for row in others if equal.get(row, "open") == "open"})
        rows = [row for row in rows if row not in equal]
    expected = _entries(world, batch, rows, latest, tick if timed else None)
    if rng.random() < 0.15:
        world.killed(rng, lambda: command(code=(0, 1)))
    known = {record[0] for record in world.held()}
    done = world.imported(command(code=1 if expected is None or doubtful else 0))
    if bool(done) == (expected is None):
        raise Wrong(f"{world.log[-1]}: {done}, expected {expected}")
    if done and done["held"] != doubtful:
        raise Wrong(f"{done['held']} rows wait for a lead, not {doubtful}")
    # A killed import may have been complete, so records may be older than this command.
    world.records |= {record[0]: tick for record in world.held() if record[0] not in world.records}
    if not done and known != {record[0] for record in world.held()} and not doubtful:
        raise Wrong("an import that was refused left records in quarantine")
    for person, entry in expected or []:
        entry.tick = tick
        world.oracle.logs[batch.name, person].append(entry)
        world.came(way, person, entry.unit[0])
    return expected is not None


@step(18)
def sheet(world: World, rng: Random) -> bool:
    """A sheet for a batch: edited, shuffled, with rows twice, with notes alone."""
    if not world.batches:
        return False
    batch = rng.choice(list(world.batches.values()))
    rows, latest = _rows(world, rng, batch), rng.random() < 0.6
    notes = rng.random() < 0.3
    if notes:
        rows = [row for row in rows if row[1] not in world.oracle.corrected]
    if not rows or (notes and any((batch.name, p) in world.oracle.stopped for p, _, _ in rows)):
        return False
    file = world.folder / f"sheet{world.number()}.csv"
    with file.open("w", newline="") as out_file:
        writer = csv.writer(out_file)
        writer.writerow(["unit", "annotator", "field", "label", "note"])
        for person, unit, label in rows:
            writer.writerow(
                [unit, person, "" if notes else batch.field, "" if notes else label, "odd" if notes else ""]
            )
    newer = ["--latest"] if latest else []
    words = ["import", file, "--from", "csv", "--batch", batch.name, "--blind", "--json", *newer]
    if notes:
        world.annotate(*words, code=(0, 1))
        for person, unit in dict.fromkeys((p, u) for p, u, _ in rows):
            _note(world, batch, person, unit)
        world.counts["(note by sheet)"] += 1
        return True
    # A row with neither a text nor a time may be about the text before its correction.
    sure = [row for row in rows if row[1] not in world.oracle.corrected]
    unsure = [row for row in rows if row[1] in world.oracle.corrected]
    stored = _take_in(
        world,
        batch,
        sure,
        latest,
        "sheet",
        lambda code: world.annotate(*words, code=code),
        rng,
        False,
        unsure,
    )
    world.counts["(row without proof)"] += len(unsure) * stored
    return True


def _note(world: World, batch: Batch, person: str, unit: str) -> None:
    """Tell the oracle of notes as the log has them: what a note says is not a label, but undo takes it back."""
    query = (
        "SELECT count(*) FROM events AS e JOIN assignments AS a USING (batch, annotator_id, position) "
        "WHERE e.batch = ? AND e.annotator_id = ? AND a.unit_id = ? AND a.repeat = 0 AND e.kind = 'note'"
    )
    (stored,) = world.rows(query, batch.name, person, unit)[0]
    log = world.oracle.logs[batch.name, person]
    known = sum(e.what == "note" and e.unit == (unit, 0) for e in log)
    log += [Entry((unit, 0), "note", None, world.oracle.now()) for _ in range(stored - known)]


@step(14)
def studio(world: World, rng: Random) -> bool:
    """A JSON export of Label Studio for a batch, each annotation with its time."""
    if not world.batches:
        return False
    batch = rng.choice(list(world.batches.values()))
    rows, latest = _rows(world, rng, batch), rng.random() < 0.6
    if not rows:
        return False
    folder = world.folder / f"ls{world.number()}"
    done = world.annotate("export", batch.name, "--to", "label-studio", "-o", folder, code=(0, 1))
    if done.exit_code:
        return False  # everybody said everything before the batch was drawn
    tasks = {t["data"]["adjudge_unit_id"]: t for t in json.loads((folder / "tasks.json").read_text())}
    rows = [row for row in rows if row[1] in tasks]
    rows = list({(person, unit): (person, unit, label) for person, unit, label in rows}.values())
    # Evidence that the record does not have would be a conflict of its own.
    marked = {
        (p, u) for p, u, _ in rows if any(e.what == "span" for e in world.oracle.at(batch.name, p, (u, 0)))
    }
    rows = sorted((row for row in rows if row[:2] not in marked), key=lambda row: row[1])
    if not rows:
        return False
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    found: dict[str, dict[str, Any]] = {}
    # Some of the annotations were edited by somebody else.
    edited = {n for n in range(len(rows)) if rng.random() < 0.2}
    for n, (person, unit, label) in enumerate(rows):
        result = {
            "from_name": batch.field,
            "to_name": "passage",
            "type": "choices",
            "value": {"choices": [label]},
        }
        made = {"id": n, "completed_by": {"id": 1, "email": f"{person}@example.org"}, "was_cancelled": False,
                "created_at": at, "updated_at": at, "lead_time": 2.0, "result": [result],
                "updated_by": 7 if n in edited else 1}  # fmt: skip
        record = found.setdefault(
            unit, {"id": n, "data": tasks[unit]["data"], "annotations": [], "predictions": []}
        )
        record["annotations"].append(made)
    file = world.folder / f"studio{world.number()}.json"
    file.write_text(json.dumps(list(found.values())))
    newer = ["--latest"] if latest else []
    words = ["import", file, "--from", "label-studio", "--batch", batch.name, "--json", *newer]
    own = [row for n, row in enumerate(rows) if n not in edited]
    stored = _take_in(
        world,
        batch,
        own,
        latest,
        "studio",
        lambda code: world.annotate(*words, code=code),
        rng,
        True,
        [row for n, row in enumerate(rows) if n in edited],
    )
    world.counts["(foreign edit)"] += len(edited) * stored
    return True


@step(14)
def missorted_sheet(world: World, rng: Random) -> bool:
    """A sheet in which the texts of some rows were moved apart from their ids: these rows wait for a lead."""
    seat = open_seat(world, rng)
    if seat is None:
        return False
    batch, person = seat
    file, latest = world.folder / f"sorted{world.number()}.csv", rng.random() < 0.6
    words: list[object] = ["export", batch.name, "--to", "csv", "--for", person, "-o", file]
    if world.annotate(*words, code=(0, 1)).exit_code:
        return False  # everything was said before the batch was drawn
    with file.open(newline="") as source:
        lines = list(csv.DictReader(source))
    away = {unit for unit, _ in out(world, batch.name, person)}
    filled = [line for line in lines if line["unit"] not in away and rng.random() < 0.7]
    if not filled:
        return False
    moved = rng.sample(filled, rng.randrange(0, len(filled) + 1))
    moved = moved if len(moved) > 1 else []
    texts = [line["passage"] for line in moved]
    for line, text in zip(moved, [*texts[1:], *texts[:1]], strict=True):
        line["passage"] = text
    for line in filled:
        line[batch.field] = rng.choice(batch.labels)
        # What a spreadsheet changes by itself is no other text.
        line["claim"] = f"{line['claim']}  "
    with file.open("w", newline="") as target:
        writer = csv.DictWriter(target, list(lines[0]), lineterminator=rng.choice(["\n", "\r\n"]))
        writer.writeheader()
        writer.writerows(lines)
    rows = [(person, line["unit"], line[batch.field]) for line in filled if line not in moved]
    newer = ["--latest"] if latest else []
    words = [
        "import",
        file,
        "--from",
        "csv",
        "--batch",
        batch.name,
        "--as",
        person,
        "--blind",
        "--json",
        *newer,
    ]
    stored = _take_in(
        world,
        batch,
        rows,
        latest,
        "sheet",
        lambda code: world.annotate(*words, code=code),
        rng,
        False,
        [(person, line["unit"], line[batch.field]) for line in moved],
    )
    world.counts["(text of another unit)"] += len(moved) * stored
    return True


@step(16)
def decide_records(world: World, rng: Random) -> bool:
    """The lead accepts or drops records that wait: what is accepted after a foreign edit is not blind."""
    oracle = world.oracle
    records = world.held()
    if not records:
        return False
    number, name, person, unit, code, label = rng.choice(records)
    batch, tick = world.batches[name], world.records[number]
    at = tick if code == "editor" else None
    standing = oracle.current(name, person, (unit, 0))
    # The record is about the text before a correction.
    before_correction = oracle.is_old(unit, tick)
    if before_correction:
        world.annotate("quarantine", "accept", number, "--blind", code=1)
        world.counts["(accept for an old text)"] += 1
    refused = (
        before_correction
        or batch.closed
        or (name, person) in oracle.stopped
        or oracle.locked(name, person, (unit, 0))
    )
    # Whoever labels a unit in a pack contradicts what a lead accepts meanwhile.
    refused = refused or (unit, 0) in out(world, name, person)
    # The same label once more would only say that it is not blind, and evidence is not in the record.
    same = standing is not None and standing[0] == label
    marked = any(e.what == "span" for e in oracle.at(name, person, (unit, 0)))
    if rng.random() < 0.3 or refused or same or marked:
        world.annotate("quarantine", "drop", number)
        world.counts["(drop)"] += 1
        return True
    later = [e.tick for e in oracle.logs[name, person] if e.unit == (unit, 0) and e.what == "label"]
    older = at is not None and standing is not None and max(later, default=0) > at
    world.annotate("quarantine", "accept", number, "--blind")
    world.counts["(accept)"] += 1
    if older or oracle.is_rejected((person, batch.field, unit, 0), label, at):
        return True
    oracle.logs[name, person].append(Entry((unit, 0), "label", label, oracle.now() if at is None else at))
    world.came("studio" if code == "editor" else "sheet", person, unit)
    query = "SELECT layer FROM label_sources WHERE annotator_id = ? AND unit_id = ? AND field = ? AND repeat = 0 AND source = ?"
    layers = world.rows(query, person, unit, batch.field, f"batch:{name}")
    if code == "editor" and layers != [("assisted",)]:
        raise Wrong(f"record {number} of {person} on {unit} was accepted as {layers}")
    return True


@step(20)
def pack(world: World, rng: Random) -> bool:
    """A pack goes out, and some of its units are labelled there."""
    seat = open_seat(world, rng)
    if seat is None or len(world.packs) > 5:
        return False
    batch, person = seat
    away = out(world, batch.name, person)
    queue = [
        (p, (u, r)) for p, u, r in seats(world, batch.name, person)
        if (u, r) not in away and not r and not world.oracle.locked(batch.name, person, (u, r))
    ]  # fmt: skip
    if not queue or world.rows("SELECT 1 FROM assignments WHERE batch = ? AND role = 'repeat'", batch.name):
        return False
    file = world.folder / f"pack{world.number()}.db"
    world.annotate("export", batch.name, "--for", person, "-o", file)
    made = Pack(file, batch.name, person, world.oracle.now())
    world.packs.append(made)
    with world.desk(batch.name, person, db=file) as desk:
        for position, unit in rng.sample(queue, min(len(queue), rng.randrange(0, 12))):
            entry = Entry(unit, "label", rng.choice(batch.labels), world.oracle.now())
            entry.guidelines = batch.guidelines
            desk.load(position)
            desk.label(position, batch.field, entry.value)
            made.entries.append(entry)
    return True


@step(26)
def merge_pack(world: World, rng: Random) -> bool:
    """One of the packs comes back, in any order, and some come back twice."""
    found = [
        p for p in world.packs
        if not world.batches[p.batch].closed and (p.batch, p.person) not in world.oracle.stopped
    ]  # fmt: skip
    if not found:
        return False
    one = rng.choice(found)
    oracle, asked = world.oracle, world.batches[one.batch].field
    # A unit waits for a lead as a whole: the text was another one, or one of its labels had been decided against.
    waiting = {
        e.unit for e in one.entries
        if oracle.is_old(e.unit[0], one.tick)
        or oracle.is_rejected((one.person, asked, *e.unit), str(e.value), e.tick)
    }  # fmt: skip
    code = int(bool(waiting))
    if rng.random() < 0.2:
        world.killed(rng, lambda: world.annotate("import", one.path, code=code))
    for _ in range(rng.choice([1, 1, 2])):
        world.annotate("import", one.path, code=code)
    for entry in one.entries:
        if entry.unit not in waiting:
            oracle.logs[one.batch, one.person].append(entry)
            world.came("pack", one.person, entry.unit[0])
    world.counts["(unit of a pack waits)"] += len(waiting)
    world.packs.remove(one)
    world.check_guidelines(world.batches[one.batch], one.person)
    return True


# --- other ways in


@step(11)
def direct_import(world: World, rng: Random) -> bool:
    """Labels imported without a batch, for the same people and units."""
    there = units(world)
    if not there:
        return False
    task = rng.choice(list(FIELDS))
    asked, labels = FIELDS[task]
    person = rng.choice(PEOPLE)
    rows = [(person, u, rng.choice(labels)) for u in rng.sample(there, min(len(there), rng.randrange(1, 9)))]
    latest = rng.random() < 0.5
    file = _plain_sheet(world, asked, rows)
    how = "--assisted" if rng.random() < 0.2 else "--blind"
    words = [how, "--new-people", *(["--latest"] if latest else [])]
    world.files.append((asked, rows, file, words))
    return _direct_import(world, rng, *world.files[-1])


@step(12)
def import_again(world: World, rng: Random) -> bool:
    """A file that was imported without a batch comes once more, unchanged: what a lead rejected stays rejected."""
    return bool(world.files) and _direct_import(world, rng, *rng.choice(world.files))


def _direct_import(
    world: World, rng: Random, asked: str, rows: list[Row], file: Path, how: list[str]
) -> bool:
    latest = "--latest" in how
    new = _direct(world, asked, rows, latest)
    unsure = sum(unit in world.oracle.corrected for _, unit, _ in rows)
    if rng.random() < 0.15:
        world.killed(rng, lambda: world.annotate("import", file, *how, code=(0, 1)))
    done = world.imported(
        world.annotate("import", file, *how, "--json", code=1 if new is None or unsure else 0)
    )
    if new is not None and (done["rows"]["read"], done["held"]) != (len(rows), unsure):
        raise Wrong(f"{file.name} has {len(rows)} rows, {unsure} of which wait for a lead: {done['rows']}")
    world.counts["(row without proof)"] += unsure * (new is not None)
    _tell(world, asked, new or [], f"import:{file.name}:{world.number()}", "import", latest)
    return True


def _plain_sheet(world: World, asked: str, rows: list[Row]) -> Path:
    file = world.folder / f"labels{world.number()}.csv"
    with file.open("w", newline="") as out_file:
        writer = csv.writer(out_file)
        writer.writerow(["unit", "annotator", "field", "label"])
        writer.writerows([unit, person, asked, label] for person, unit, label in rows)
    return file


def _direct(world: World, asked: str, rows: list[Row], latest: bool) -> list[Row] | None:
    """The rows that are new; None where the file is refused as a whole. Rows of corrected units wait for a lead."""
    new = []
    counted = world.oracle.counted()
    for person, unit, label in rows:
        if unit in world.oracle.corrected:
            continue
        known = counted.get((person, asked, unit, 0), {})
        imported = {value for source, (value, _) in known.items() if source.startswith("import:")}
        replaces = latest and bool(imported - {label})
        if label in imported and not replaces:
            continue
        if world.oracle.is_rejected((person, asked, unit, 0), label):
            world.counts["(rejected label again)"] += 1
            continue
        if label not in {value for value, _ in known.values()} and _shut(world, asked, person, unit):
            return None
        new.append((person, unit, label))
    return new


def _shut(world: World, asked: str, person: str, unit: str) -> bool:
    """Whether a batch that has the unit takes nothing of the person by any way."""
    for batch in world.batches.values():
        if batch.field != asked:
            continue
        if (batch.name, person) in world.oracle.stopped:
            if world.rows("SELECT 1 FROM batch_units WHERE batch = ? AND unit_id = ?", batch.name, unit):
                return True
        elif batch.closed and unit in {u for _, u, _ in seats(world, batch.name, person)}:
            return True
    return False


def _tell(world: World, asked: str, new: list[Row], source: str, way: str, latest: bool) -> None:
    """Tell the oracle of labels of an import: with `latest` they replace what imports said before."""
    tick = world.oracle.now()
    counted = world.oracle.counted()
    for person, unit, label in new:
        key = (person, asked, unit, 0)
        for other, (value, at) in counted.get(key, {}).items():
            if latest and other.startswith("import:") and value != label:
                world.oracle.resolved.add((key, other, value, at))
        world.oracle.outside[key][source] = label, tick
        world.came(way, person, unit)


@step(5)
def merge_studies(world: World, rng: Random) -> bool:
    """A copy of the study gets labels of its own; both ways of merging give the same, and work goes on in the merged one."""
    there = units(world)
    if not there:
        return False
    asked, labels = FIELDS[rng.choice(list(FIELDS))]
    person = rng.choice(PEOPLE)
    rows = [(person, u, rng.choice(labels)) for u in rng.sample(there, min(len(there), rng.randrange(1, 9)))]
    new = _direct(world, asked, rows, False)
    if new is None:
        return False
    copy = world.copy(f"copy{world.number()}.db")
    file = _plain_sheet(world, asked, rows)
    how = "--assisted" if rng.random() < 0.5 else "--blind"
    unsure = any(unit in world.oracle.corrected for _, unit, _ in rows)
    world.command("annotate", "import", file, how, "--new-people", db=copy, code=int(unsure))
    both = []
    for one, other in ((world.db, copy), (copy, world.db)):
        into = world.folder / f"merged{world.number()}.db"
        _merge(world, one, other, into)
        both.append(into)
    query = "SELECT annotator_id, field, unit_id, layer, repeat, value FROM labels ORDER BY 1, 2, 3, 4, 5"
    main, found = world.db, []
    for world.db in both:
        found.append(world.rows(query))
    if found[0] != found[1]:
        raise Wrong(f"merged both ways, the labels differ: {sorted(set(found[0]) ^ set(found[1]))[:6]}")
    for old in (main, copy, both[0]):
        for ending in ("", "-wal", "-shm"):
            old.with_name(old.name + ending).unlink(missing_ok=True)
    _tell(world, asked, new, f"import:{file.name}", "merged", False)
    return True


def _merge(world: World, one: Path, other: Path, into: Path) -> None:
    from click.testing import CliRunner

    from judge.cli import main

    done = CliRunner().invoke(main, ["studies", "merge", str(one), str(other), "--into", str(into)])
    world.log.append(f"judge studies merge {one} {other} --into {into}  # exit {done.exit_code}")
    if done.exit_code:
        raise Wrong(f"{world.log[-1]}\n{done.stdout}\n{done.stderr}")


@step(9)
def export_and_import(world: World, rng: Random) -> bool:
    """What a batch's people said goes out and comes back: nothing is new."""
    found = [b for b in world.batches.values() if not b.closed]
    found = [b for b in found if not any(seat[0] == b.name for seat in world.oracle.stopped)]
    if not found:
        return False
    batch = rng.choice(found)
    file = world.folder / f"out{world.number()}.{rng.choice(['csv', 'jsonl'])}"
    form = file.suffix[1:]
    if world.annotate("export", batch.name, "--to", form, "--labels", "-o", file, code=(0, 1)).exit_code:
        return False  # nobody has answered anything yet
    _evidence(world, batch, file)
    done = json.loads(
        world.annotate("import", file, "--from", form, "--batch", batch.name, "--json", code=(0, 1)).stdout
        or "{}"
    )
    if done.get("new"):
        raise Wrong(f"an export of {batch.name} came back with new labels: {done}")
    return True


@step(8)
def export_elsewhere(world: World, rng: Random) -> bool:
    """What a batch's people said goes into another study with the same items: each label is what it was."""
    found = [b for b in world.batches.values() if not any(seat[0] == b.name for seat in world.oracle.stopped)]
    if not found:
        return False
    batch, number = rng.choice(found), world.number()
    file, twin = world.folder / f"elsewhere{number}.jsonl", world.folder / f"twin{number}.db"
    if world.annotate("export", batch.name, "--to", "jsonl", "--labels", "-o", file, code=(0, 1)).exit_code:
        return False  # nobody has answered anything yet
    for items in sorted(world.folder.glob("items*.jsonl"), key=lambda path: int(path.stem[5:])):
        rows = [json.loads(line) for line in items.read_text().splitlines()]
        for row in rows:
            for passage in row["passages"]:
                passage.pop("votes", None)
        bare = world.folder / f"bare{number}.jsonl"
        bare.write_text("".join(json.dumps(row) + "\n" for row in rows))
        world.command("judge", "items", "import", "jsonl", bare, "--dataset", "d", db=twin)
    task = world.path(batch.task, batch.version)
    meant: dict[tuple[Any, ...], str] = {}
    for (name, person), log in world.oracle.logs.items():
        for unit, repeat in dict.fromkeys(e.unit for e in log if name == batch.name):
            answer = world.oracle.current(name, person, (unit, repeat))
            revised = world.oracle.revised(name, person, (unit, repeat))
            if answer is not None:
                meant[person, unit, repeat, "first"] = answer[0]
                meant |= {(person, unit, repeat, "revised"): revised} if revised is not None else {}
    lines = len(file.read_text().splitlines())
    for times in (1, 2):
        words = ("import", file, "--from", "jsonl", "--task", task, "--new-people", "--json")
        rows_of = world.imported(world.command("annotate", *words, db=twin))["rows"]
        outcomes = {
            name: n for name, n in rows_of.items() if n and name not in ("read", "reasons", "left_out")
        }
        if rows_of["read"] != lines or outcomes != (
            {"stored" if times == 1 else "already_there": len(meant)} if meant else {}
        ):
            raise Wrong(f"import {times} of {file.name} with {lines} rows and {len(meant)} labels: {rows_of}")
    with closing(sqlite3.connect(twin)) as conn:
        query = (
            "SELECT annotator_id, unit_id, repeat, iif(layer = 'revised', layer, 'first'), value FROM labels "
            "JOIN annotators USING (annotator_id) WHERE kind IN ('human', 'adjudicated')"
        )
        stored = {tuple(row[:4]): row[4] for row in conn.execute(query)}
    if stored != meant:
        raise Wrong(
            f"in another study, labels differ: {sorted(set(stored.items()) ^ set(meant.items()))[:6]}"
        )
    world.command("annotate", "verify", db=twin)
    for ending in ("", "-wal", "-shm"):
        twin.with_name(twin.name + ending).unlink(missing_ok=True)
    return True


def _evidence(world: World, batch: Batch, file: Path) -> None:
    """Raise Wrong unless the file has the evidence of every unit, with a label or without."""
    meant = set()
    for (name, person), log in world.oracle.logs.items():
        if name == batch.name and person != "adjudicated":
            meant |= {
                (person, e.unit)
                for e in log
                if e.what == "span" and not e.undone and not world.oracle.is_old(e.unit[0], e.tick)
            }
    if file.suffix == ".csv":
        with file.open(newline="") as rows_of:
            rows: list[dict[str, Any]] = list(csv.DictReader(rows_of))
    else:
        rows = [json.loads(line) for line in file.read_text().splitlines()]
    found = {
        (r["annotator"], (r["unit"], int(r["repeat"] or 0)))
        for r in rows
        if r["spans"] not in ("", "[]", [], None)
    }
    if meant - found:
        raise Wrong(f"evidence is missing in the export: {sorted(meant - found)[:3]}")


# --- what a lead does


@step(9)
def resolve_conflicts(world: World, rng: Random) -> bool:
    """The lead decides what is in conflict, everywhere or on one unit."""
    conflicts = world.oracle.conflicts()
    if not conflicts:
        return False
    keep = rng.choice(["earliest", "latest"])
    only = rng.choice(sorted({key[2] for key in conflicts})) if rng.random() < 0.5 else None
    world.annotate("conflicts", "resolve", *([only] if only else ["--all"]), "--keep", keep)
    world.oracle.resolve(keep, only)
    return True


@step(6)
def close_or_reopen(world: World, rng: Random) -> bool:
    """A batch is closed, or opened again."""
    if not world.batches:
        return False
    batch = rng.choice(list(world.batches.values()))
    world.annotate("batches", "close", batch.name, *(["--undo"] if batch.closed else []))
    batch.closed = not batch.closed
    return True


@step(5)
def stop_or_resume(world: World, rng: Random) -> bool:
    """Somebody is stopped in a batch, or goes on."""
    batch = open_batch(world, rng)
    if batch is None:
        return False
    person = rng.choice(people_of(world, batch.name))
    seat = (batch.name, person)
    if seat in world.oracle.stopped:
        world.annotate("batches", "stop", batch.name, "--annotator", person, "--undo")
        world.oracle.stopped.remove(seat)
    else:
        world.annotate("batches", "stop", batch.name, "--annotator", person, "--why", "training")
        world.oracle.stopped.add(seat)
    return True


@step(4)
def verify(world: World, rng: Random) -> bool:
    """`annotate verify` finds nothing, and `annotate conflicts` what is in conflict."""
    world.verify()
    return True


@step(3)
def numbers(world: World, rng: Random) -> bool:
    """Command line, JSON, Python and a recomputation give the same number."""
    if not world.rows(
        "SELECT 1 FROM labels AS l JOIN annotators AS a USING (annotator_id) WHERE l.field = 'side' AND a.kind = 'human'"
    ):
        return False
    world.numbers()
    return True
