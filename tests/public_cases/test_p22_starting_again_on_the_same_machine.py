"""P22: what a killed reader leaves behind stops nobody, and what a living one uses is left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from storage.datasets import open_dataset
from tests.storage.datasets.datasets import build

READ = """
import sys
from storage.datasets import open_dataset
reader = open_dataset("file://" + sys.argv[1], batch=8, seed=4, epochs=3, cache=__import__("pathlib").Path(sys.argv[2]),
                      opener=__import__("tests.public_cases.test_p22_starting_again_on_the_same_machine",
                                        fromlist=["far_store"]).far_store)
for batch in reader:
    print(*batch.ids.tolist(), flush=True)
    if batch.samples == 160:
        sys.stdin.readline()
"""


def far_store(url: str):
    """A folder that is read as if it were another machine's."""
    from storage.objects import open_store
    from storage.objects.wrapping import Wrapper

    class Far(Wrapper):
        def path(self, key: str) -> None:
            return None

    return Far(open_store(url))


def start(dataset: Path, cache: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", READ, str(dataset), str(cache)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )


def lines(process: subprocess.Popen[str], count: int) -> list[str]:
    assert process.stdout is not None
    return [process.stdout.readline() for _ in range(count)]


def test_killed_while_reading_it_starts_at_once_with_the_same_order(tmp_path: Path) -> None:
    dataset, cache = tmp_path / "dataset", tmp_path / "cache"
    build(dataset, 400)
    want = [
        " ".join(map(str, b.ids.tolist())) + "\n" for b in open_dataset(dataset, batch=8, seed=4, epochs=3, environ={})
    ]

    alive, killed = start(dataset, cache), start(dataset, cache)
    assert lines(alive, 20) == lines(killed, 20) == want[:20]
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    folder = next(cache.iterdir())
    (folder / f".part-{killed.pid}-1-00000000").write_bytes(b"half")  # as if it died in the middle of a write
    (folder / f".part-{alive.pid}-1-00000000").write_bytes(b"half")

    again, _ = start(dataset, cache).communicate("\n", timeout=60)
    assert again.splitlines(keepends=True) == want
    assert not (folder / f".part-{killed.pid}-1-00000000").exists()
    assert (folder / f".part-{alive.pid}-1-00000000").exists()

    rest, _ = alive.communicate("\n", timeout=60)
    assert rest.splitlines(keepends=True) == want[20:]
