"""What the package imports, and when. Import contracts (pyproject.toml) check which modules it may name."""

import subprocess
import sys


def test_slow_libraries_are_not_imported_with_it() -> None:
    probe = "import sys, judge.stats; print([m for m in ('scipy', 'sklearn', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
