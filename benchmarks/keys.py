"""Keys against an oracle: random sequences with random gaps and kills, and sittings with human gaps beside a judge.

    uv run python benchmarks/keys.py [--sequences 1000] [--kills 0.05] [--seed 1] [--seconds 0]
    uv run python benchmarks/keys.py --sittings 3 [--keys 60]

Everything goes through a pseudo-terminal to the real program, while judgements are written to the same file
(1,000 units a second). The log is held against what was meant; the first difference ends the run with both.
"""

import argparse
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.tui.line import Line, log, settled
from tests.tui.oracle import Oracle, plain, tokens
from tests.tui.studies import batch, build, scribbling


def begin(path: Path, person: str) -> Line:
    """The program, once its screen is there."""
    line = Line("open", "pilot", "--as", person, "-d", str(path))
    line.until("menu", 60)
    return line


def compare(path: Path, oracle: Oracle, person: str, what: str) -> None:
    """Raises SystemExit with the place when the log is not what was meant."""
    found, meant = plain(log(path, person)), plain(oracle.log)
    if found != meant:
        at = next((i for i, (a, b) in enumerate(zip(found, meant, strict=False)) if a != b), len(found))
        raise SystemExit(f"{what}: event {at} is {found[at : at + 3]}, meant {meant[at : at + 3]}")


def sequences(path: Path, units: int, count: int, kills: float, seed: int, seconds: float) -> None:
    """One person's sitting of many short sequences, some of them cut by SIGKILL."""
    dice, oracle, killed, done, keys_sent = random.Random(seed), Oracle(units), 0, 0, 0
    line, begun = begin(path, "alice"), time.monotonic()
    while done < count and (not seconds or time.monotonic() - begun < seconds):
        meant = tokens(dice, units, dice.randint(3, 9))
        if oracle.first_open() is None:
            break
        keys = [key for token in meant for key in oracle.act(token)]
        keys_sent += len(keys)
        gap = dice.choice([0.0, 0.0, 0.002, 0.01, 0.03])
        line.type(keys, gap) if gap else line.burst(keys)
        done += 1
        if dice.random() < kills:
            time.sleep(dice.random() * 0.1)
            line.kill()
            line.close()
            oracle.resume(plain(log(path)))  # asserts that what is there is the beginning of what was meant
            killed += 1
            line = begin(path, "alice")
        else:
            settled(path, len(oracle.log), seconds=60)
            compare(path, oracle, "alice", f"sequence {done}")
    assert line.quit(60) == 0
    line.close()
    compare(path, oracle, "alice", "the end")
    print(
        f"{done} sequences, {keys_sent} keys, {killed} kills, {len(oracle.log)} events: none out of order, none lost"
    )


def sitting(path: Path, person: str, units: int, count: int, seed: int) -> None:
    """One person at human speed: 80 to 400 ms a key."""
    dice, oracle = random.Random(seed), Oracle(units)
    line, n = begin(path, person), 0
    for token in tokens(dice, units, count):
        for key in oracle.act(token):
            line.type([key], dice.uniform(0.08, 0.4))
            n += 1
    assert line.quit(60) == 0
    line.close()
    compare(path, oracle, person, person)
    labels = sum(kind == "label" for kind, _, _ in oracle.log)
    undone = sum(kind == "undo" for kind, _, _ in oracle.log)
    print(
        f"{person}: {n} keys, {labels} labels, {undone} corrections, {len(oracle.log)} events, all as meant"
    )


def main() -> None:
    """Sequences, or sittings."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sequences", type=int, default=1000)
    parser.add_argument("--kills", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--sittings", type=int, default=0)
    parser.add_argument("--keys", type=int, default=60)
    args = parser.parse_args()
    people = [f"person{n}" for n in range(1, args.sittings + 1)] or ["alice"]
    units = 200 if args.sittings else 4000
    with tempfile.TemporaryDirectory() as folder:
        path = build(Path(folder) / "s.db", items=units // 2)
        batch(path, n=units, annotators=people, overlap=len(people))
        with scribbling(path):
            if not args.sittings:
                sequences(path, units, args.sequences, args.kills, args.seed, args.seconds)
                return
            running = [
                threading.Thread(target=sitting, args=(path, who, units, args.keys, args.seed + n))
                for n, who in enumerate(people)
            ]
            for one in running:
                one.start()
            for one in running:
                one.join()


if __name__ == "__main__":
    main()
