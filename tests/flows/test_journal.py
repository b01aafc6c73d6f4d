"""The journal on SQLite and on PostgreSQL: one driver at a time, terms that only grow, replays that change nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, text

from flows.journal import Journal
from flows.messages import CommitRef, Heartbeat, Place
from regions.errors import ConflictError, FencedError, NotFoundError, OutsideError, SettingsError
from tests.support import postgres

T0 = datetime(2026, 11, 30, 15, 0, tzinfo=UTC)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    if postgres.programs() is None:
        pytest.skip("PostgreSQL's server programs are not installed (Debian: postgresql)")
    with postgres.server() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Journal:
    if request.param == "sqlite":
        return Journal.open(f"sqlite:///{tmp_path}/journal.db")
    url = request.getfixturevalue("postgres_url")
    name = f"t{uuid4().hex[:12]}"
    admin = create_engine(url.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    return Journal.open(url.replace("/postgres", f"/{name}"))


def submitted(journal: Journal, run: str = "gpt-1", flow_run: str = "f1") -> None:
    journal.submit(
        {
            "id": run, "flow_run": flow_run, "recipe": "gpt", "team": "nlp", "priority": "normal", "request": {},
            "catalog": "c", "submitted_at": T0, "submitted_real": T0, "state": "submitted", "reason": "", "term": 0,
            "cancel": False, "driver": "",
        }
    )  # fmt: skip


def a_leg(region: str = "a") -> dict[str, Any]:
    return {
        "stage": "pretrain", "region": region, "offer": "cpu", "market": "on_demand", "width": 1, "catalog": "c",
        "planned_start": T0, "planned_end": T0 + timedelta(hours=8),
    }  # fmt: skip


def a_commit(step: int, term: int) -> CommitRef:
    place = Place(region="a", url="memory://a")
    return CommitRef(key=f"k{step}-{term}", step=step, term=term, digest=f"d{step}", bytes=10, source=place)


def a_charge(amount: str) -> dict[str, Any]:
    return {
        "stage": "pretrain", "team": "nlp", "region": "a", "offer": "cpu", "market": "on_demand", "what": "compute",
        "start_at": T0, "end_at": T0 + timedelta(hours=1), "quantity": Decimal(1), "unit": "instance-hour",
        "price": Decimal(amount), "amount": Decimal(amount), "currency": "CNY", "rate": Decimal(1),
        "total": Decimal(amount), "total_currency": "CNY", "window": None, "basis": "list",
    }  # fmt: skip


def ended(number: int, outcome: str = "handed_off", to_step: int = 10) -> dict[str, Any]:
    return {
        "number": number, "outcome": outcome, "reason": "", "started_at": T0, "started_real": T0, "ended_at": T0,
        "ended_real": T0, "from_step": 0, "to_step": to_step, "estimated": False,
    }  # fmt: skip


def test_a_retried_submission_is_the_same_run(journal: Journal) -> None:
    submitted(journal)
    submitted(journal)
    assert [run.id for run in journal.runs()] == ["gpt-1"]


def test_two_submissions_never_share_an_id(journal: Journal) -> None:
    submitted(journal)
    with pytest.raises(ConflictError, match="gpt-1"):
        submitted(journal, flow_run="f2")


def test_an_unknown_run_is_named_with_those_there_are(journal: Journal) -> None:
    submitted(journal)
    with pytest.raises(NotFoundError, match=r"gpt-9.*gpt-1"):
        journal.run("gpt-9")


def test_instants_and_money_come_back_exactly(journal: Journal) -> None:
    submitted(journal)
    journal.claim("gpt-1", "d", T0)
    leg = journal.intend("gpt-1", "d", T0, a_leg())
    journal.open_term("gpt-1", "d", T0, leg.number, "pretrain")
    exact = "0.1234567890123456789012"
    journal.end_leg("gpt-1", "d", T0, ended(1), [], [a_charge(exact)], None)
    assert journal.run("gpt-1").submitted_at == T0
    assert journal.charges("gpt-1")[0]["amount"] == Decimal(exact)


def test_a_replaced_driver_cannot_write_any_more(journal: Journal) -> None:
    submitted(journal)
    journal.claim("gpt-1", "first", T0)
    journal.claim("gpt-1", "second", T0)
    with pytest.raises(FencedError):
        journal.intend("gpt-1", "first", T0, a_leg())
    with pytest.raises(FencedError):
        journal.change_run("gpt-1", "first", T0, state="finished")
    assert journal.legs("gpt-1") == [] and journal.run("gpt-1").state == "submitted"


def test_terms_only_grow(journal: Journal) -> None:
    submitted(journal)
    journal.claim("gpt-1", "d", T0)
    for region in ("a", "b"):
        journal.intend("gpt-1", "d", T0, a_leg(region))
    journal.open_term("gpt-1", "d", T0, 2, "pretrain")
    with pytest.raises(FencedError):
        journal.open_term("gpt-1", "d", T0, 1, "pretrain")
    with pytest.raises(FencedError):
        journal.open_term("gpt-1", "d", T0, 2, "pretrain")
    assert journal.run("gpt-1").term == 2


def test_ending_a_leg_again_changes_nothing(journal: Journal) -> None:
    submitted(journal)
    journal.claim("gpt-1", "d", T0)
    journal.intend("gpt-1", "d", T0, a_leg())
    journal.open_term("gpt-1", "d", T0, 1, "pretrain")
    commits = [("pretrain", "a", a_commit(10, 1))]
    journal.end_leg("gpt-1", "d", T0, ended(1), commits, [a_charge("1.5")], None)
    journal.end_leg("gpt-1", "d", T0, ended(1, "lost", 20), commits, [a_charge("9")], None)
    (leg,) = journal.legs("gpt-1")
    assert (leg.outcome, leg.to_step) == ("handed_off", 10)
    assert [charge["amount"] for charge in journal.charges("gpt-1")] == [Decimal("1.5")]
    assert [(row.step, row.regions) for row in journal.checkpoints("gpt-1")] == [(10, ("a",))]


def test_an_older_heartbeat_never_replaces_a_newer_one(journal: Journal) -> None:
    submitted(journal)
    journal.claim("gpt-1", "d", T0)
    journal.intend("gpt-1", "d", T0, a_leg())

    def beat(seconds: int, step: int) -> Heartbeat:
        real = T0 + timedelta(seconds=seconds)
        return Heartbeat(number=1, real=real, at=real, phase="train", started_real=T0, started_at=T0, pid=1, step=step)

    journal.saw("gpt-1", 1, beat(20, 5))
    journal.saw("gpt-1", 1, beat(10, 3))
    seen = journal.legs("gpt-1")[0].beat
    assert seen is not None and seen.step == 5


def test_only_a_stopped_run_can_be_resumed(journal: Journal) -> None:
    submitted(journal)
    with pytest.raises(ConflictError, match="submitted"):
        journal.reopen("gpt-1", "f2")
    journal.claim("gpt-1", "d", T0)
    journal.change_run("gpt-1", "d", T0, state="cancelled")
    assert journal.reopen("gpt-1", "f2").state == "submitted"
    assert journal.run_of("f2") is not None and journal.run_of("f1") is None


def test_many_writers_lose_nothing(journal: Journal) -> None:
    """Drivers of several runs and the sweep write at once; SQLite has one writer at a time, and none may fail."""
    for index in range(4):
        submitted(journal, f"gpt-{index}", f"f{index}")
        journal.claim(f"gpt-{index}", "d", T0)
    errors: list[BaseException] = []

    def write(index: int) -> None:
        try:
            for _ in range(10):
                journal.intend(f"gpt-{index}", "d", T0, a_leg())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [len(journal.legs(f"gpt-{index}")) for index in range(4)] == [10] * 4


def test_a_database_that_does_not_open_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="NIGHTRELAY_DATABASE_URL"):
        Journal.open("no url")
    (tmp_path / "journal.db").write_text("this is no database, and long enough to be seen as none" * 20)
    with pytest.raises(OutsideError, match=r"journal\.db"):
        Journal.open(f"sqlite:///{tmp_path}/journal.db")
    with pytest.raises(OutsideError, match="does not open"):
        Journal.open("postgresql://nobody@127.0.0.1:1/none")
