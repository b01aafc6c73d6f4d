"""The relay for real, undisturbed and with one kill of each kind: same final digest, no leg twice, a true ledger."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from flows.report import prove
from flows.rows import RunRow
from regions.offers import price_of
from tests.scenarios.world import STEPS, World, committed_samples, twin_digest

pytestmark = [pytest.mark.scenario, pytest.mark.timeout(400)]

SEED = int(os.environ.get("NIGHTRELAY_SCENARIO_SEED", "1"))


def check(world: World, request: dict[str, object], run: RunRow) -> None:
    """Everything that must hold of a run however it was disturbed."""
    legs = world.journal.legs(run.id)
    charges = world.journal.charges(run.id)
    digest, samples = twin_digest(world.scratch, request)
    assert (run.state, run.reason) == ("finished", "every stage is done"), world.story()
    assert run.final_digest == digest, world.story()
    proof = prove(legs, world.journal.checkpoints(run.id))
    assert proof.whole and proof.steps == STEPS, world.story()
    path = request["stages"][0]["env"]["TRAINER_SAMPLES"]  # type: ignore[index]
    assert committed_samples(Path(path), legs) == samples
    check_ledger(world, run)
    assert all(leg.state == "ended" for leg in legs)
    assert len({leg.number for leg in legs}) == len(legs)
    assert {(charge["leg"], charge["line"]) for charge in charges} == {
        (leg.number, line) for leg in legs for line in range(sum(charge["leg"] == leg.number for charge in charges))
    }


def check_ledger(world: World, run: RunRow) -> None:
    """Each leg's rent is the price of exactly the time it lived, from its first sign to its last."""
    catalog = world.rates(run)
    for leg in world.journal.legs(run.id):
        rent = [c for c in world.journal.charges(run.id) if c["leg"] == leg.number and c["unit"] == "instance-hour"]
        if leg.started_at is None or leg.ended_at is None:
            assert rent == []
            continue
        region = catalog.regions[leg.region]
        offer = region.offer(leg.offer)
        assert offer is not None
        due = price_of(region, offer, "on_demand", leg.started_at, leg.ended_at).amount
        assert abs(sum((c["amount"] for c in rent), Decimal(0)) - due) < Decimal("1E-9")
        hours = sum((Fraction(c["quantity"]) for c in rent), Fraction(0))
        lived = Fraction((leg.ended_at - leg.started_at) // timedelta(microseconds=1), 3_600_000_000)
        assert abs(hours - max(lived, Fraction(1, 60))) < Fraction(1, 3000)


def test_a_relay_ends_with_the_weights_of_a_run_that_never_moved(nightrelay: World) -> None:
    # 15 hours of work, at night only and as soon as possible: no region's night is long enough.
    request = nightrelay.request(stage={"windows": ["night"]})
    run = nightrelay.submit(request)
    first = nightrelay.training(run)

    def handed_over() -> bool:
        legs = nightrelay.journal.legs(run.id)
        return any(leg.region != first.region and leg.opened_real is not None for leg in legs)

    nightrelay.until(handed_over, 150, "the second region to take over")
    # From here on nothing of the first region but its store may be needed.
    for folder in ("work", "home"):
        shutil.rmtree(nightrelay.stack.plan.layout.side(first.region) / folder, ignore_errors=True)
    done = nightrelay.finished(run)
    legs = [leg for leg in nightrelay.journal.legs(run.id) if leg.outcome != "dismissed"]
    assert len({leg.region for leg in legs}) >= 2, nightrelay.story()
    check(nightrelay, request, done)


def disturb(world: World, kind: str, chance: random.Random) -> tuple[dict[str, object], RunRow]:
    """Submit a run and SIGKILL one thing of it at a random moment."""
    request = world.request()
    run = world.submit(request)
    if kind == "parent":
        parent = world.parent(run)
        time.sleep(chance.uniform(0.5, 4))
        if parent.is_running():
            parent.send_signal(signal.SIGKILL)
        return request, run
    leg = world.training(run, step=chance.randrange(5, 200))
    assert leg.beat is not None
    if kind == "trainer":
        os.kill(leg.beat.trainer_pid or 0, signal.SIGKILL)
    elif kind == "leg":
        os.kill(leg.beat.pid, signal.SIGKILL)
    elif kind == "worker":
        world.program(f"worker-{leg.region}").send_signal(signal.SIGKILL)
    elif kind == "server":
        world.down.add("server")
        try:
            world.program("server").send_signal(signal.SIGKILL)
            time.sleep(30)
        finally:
            world.down.clear()
    return request, run


def test_kills_within_a_run_cost_time_and_nothing_else(nightrelay: World) -> None:
    """Three runs at once, each hit in another place: the trainer, the leg's process, the parent flow."""
    kinds = ("trainer", "leg", "parent")
    with ThreadPoolExecutor(len(kinds)) as runs:
        disturbed = [runs.submit(disturb, nightrelay, kind, random.Random(f"{SEED}/{kind}")) for kind in kinds]
        for each in disturbed:
            request, run = each.result()
            check(nightrelay, request, nightrelay.finished(run, 240))


@pytest.mark.parametrize("kind", ["worker", "server"])
def test_kills_around_a_run_cost_time_and_nothing_else(nightrelay: World, kind: str) -> None:
    request, run = disturb(nightrelay, kind, random.Random(f"{SEED}/{kind}"))
    check(nightrelay, request, nightrelay.finished(run, 240))
