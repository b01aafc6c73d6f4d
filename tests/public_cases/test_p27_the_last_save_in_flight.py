"""P27: a leg is not done before its last save is durable, and a save that fails in the background fails the leg."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from flows.messages import Order, Place
from flows.saving import Saver
from infra.launch.contract import Folders
from regions.clock import SystemClock
from regions.errors import NightrelayError, OutsideError
from storage.checkpoints import records
from storage.objects import Store, open_store
from storage.objects.wrapping import Wrapper
from tests.storage.checkpoints.saves import save

NOW = datetime(2026, 12, 1, tzinfo=UTC)


class Held(Wrapper):
    """Takes bytes only once it is let go, as a site that needs long for each put; or fails for good."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.asked, self.go, self.fails = threading.Event(), threading.Event(), False

    def put_many(self, objects, **more):
        self.asked.set()
        self.go.wait(30)
        if self.fails:
            raise OutsideError(f"{self.url}: the disk is full", kind="disk-full")
        return super().put_many(objects, **more)


@pytest.fixture
def site(tmp_path: Path) -> Held:
    return Held(open_store((tmp_path / "site").as_uri()))


@pytest.fixture
def saver(site: Held, tmp_path: Path) -> Saver:
    order = Order(
        run="r", recipe="r", team="t", stage="s", kind="pretrain", number=1, region="a", offer="o", market="on_demand",
        width=1, command=("true",), seed=1, work=50, checkpoint_every=60, planned_start=NOW,
        planned_end=NOW + timedelta(hours=1), grace=10,
    )  # fmt: skip
    folders = Folders(tmp_path / "leg")
    folders.checkpoints.mkdir(parents=True)
    signals = SimpleNamespace(read_control=lambda: SimpleNamespace(term=1), tell=lambda **facts: None)
    place = Place(region="a", url=site.url)
    return Saver(site, place, order, folders, signals, SystemClock(), None, {}, lambda step: None)  # type: ignore[arg-type]


def test_the_end_waits_for_the_commit(site: Held, saver: Saver, tmp_path: Path) -> None:
    save(tmp_path / "leg" / "checkpoints", 50)
    assert site.asked.wait(10)
    ended = threading.Thread(target=saver.finish, args=(30.0,))
    ended.start()
    ended.join(0.3)
    assert ended.is_alive() and records(site, "r", "s") == ()
    site.go.set()
    ended.join(30)
    assert not ended.is_alive() and [record.step for record in records(site, "r", "s")] == [50]


def test_not_durable_in_time_is_a_named_failure(site: Held, saver: Saver, tmp_path: Path) -> None:
    save(tmp_path / "leg" / "checkpoints", 50)
    assert site.asked.wait(10)
    with pytest.raises(OutsideError, match="not committed within"):
        saver.finish(0.2)
    site.go.set()


def test_a_save_that_fails_for_good_fails_the_leg_and_names_the_step(site: Held, saver: Saver, tmp_path: Path) -> None:
    site.fails = True
    site.go.set()
    save(tmp_path / "leg" / "checkpoints", 50)
    with pytest.raises(NightrelayError, match="step 50"):
        saver.finish(30)
    assert records(site, "r", "s") == ()
