"""Seeds, studies, shrinking: what runs the steps and finds the shortest list of them that still fails."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import mkdtemp

from judge import migrations
from tests import new_study
from tests.simulation.steps import STEPS
from tests.simulation.world import WAYS, World

LENGTH = 100
"""Steps of one study."""
VERIFIED = 10
"""After so many steps `annotate verify` is run, besides where it is drawn."""
Plan = list[tuple[str, int]]
"""Step -> the seed of its own random numbers: others can be left out without changing it."""


@dataclass
class Counts:
    """What was done, over all studies."""

    steps: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def operations(self) -> int:
        """Steps that found something to act on, and what was done at screens within them."""
        return self.steps.total()

    def save(self, file: Path, seed: int) -> None:
        """Keep the counts, and the seed that comes next."""
        pairs = [[*ways, n] for ways, n in self.pairs.items()]
        file.write_text(json.dumps({"seed": seed, "steps": self.steps, "pairs": pairs}), "utf-8")

    def load(self, file: Path) -> int:
        """Add the counts of a file; returns the seed that comes next."""
        found = json.loads(file.read_text("utf-8"))
        self.steps.update(found["steps"])
        self.pairs.update({(one, other): n for one, other, n in found["pairs"]})
        return int(found["seed"])

    def table(self) -> str:
        """Both counts, a line each."""
        lines = [f"{n:8,}  {name}" for name, n in sorted(self.steps.items(), key=lambda item: -item[1])]
        lines += ["ways in, twice on the same person and unit:"]
        lines += [f"{self.pairs[a, b]:8,}  {a} and {b}" for a in sorted(WAYS) for b in sorted(WAYS) if a <= b]
        return "\n".join([*lines, f"{self.operations:8,}  operations"])


def plan(seed: int, length: int = LENGTH) -> Plan:
    """The steps of a study, items first."""
    rng = Random(seed)
    names, weights = list(STEPS), [weight for weight, _ in STEPS.values()]
    drawn = rng.choices(names, weights, k=length)
    return [(name, rng.randrange(2**32)) for name in ["import_items", "draw_batch", *drawn]]


def simulate(steps: Plan, counts: Counts | None = None) -> tuple[str, list[str]] | None:
    """Run the steps on a new study; returns what was wrong, with the log, or None."""
    counts = counts or Counts()
    # What a new study's tables are is tested elsewhere; making them again for each study was a tenth of the time.
    migrations.migrate = new_study.migrate
    memory = Path("/dev/shm")
    folder = Path(mkdtemp(prefix="adjudge-simulation-", dir=memory if memory.is_dir() else None))
    world = World(folder, counts.steps, counts.pairs)
    try:
        for number, (name, seed) in enumerate(steps, 1):
            world.log.append(f"# {number}: {name}")
            done = STEPS[name][1](world, Random(seed))
            counts.steps[name] += done
            if done and world.db.exists():
                world.check()
            if number % VERIFIED == 0 and world.batches:
                world.verify()
    except Exception as e:
        return f"{type(e).__name__}: {e}", world.log
    finally:
        world.stop_reading()
        shutil.rmtree(folder, ignore_errors=True)
    return None


def shrink(steps: Plan, seconds: float = 60) -> Plan:
    """A shorter list that fails in the same way: parts are left out, half of them first, while there is time."""

    def way(steps: Plan) -> str:
        found = simulate(steps)
        return found[0][:20] if found else ""

    same = way(steps)
    end, size = time.monotonic() + seconds, len(steps) // 2
    while size and time.monotonic() < end:
        at = 0
        while at < len(steps) and time.monotonic() < end:
            shorter = steps[:at] + steps[at + size :]
            if shorter and way(shorter) == same:
                steps = shorter
            else:
                at += size
        size //= 2
    return steps
