"""The journal: what was decided and what happened to each run, leg and checkpoint. One authority, one writer per run.

Whoever drives a run claims it with a token; every later write carries the token in the same transaction, so a driver
that was replaced (a parent flow taken for dead) cannot write any more. Accepting commits and opening the next term are
updates of the run's one row. What is decided is written here before it is acted on.

Longer than other modules: every write to a run's row is here, so that the fence can be read in one place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Engine, insert, select, update
from sqlalchemy.exc import IntegrityError

from flows import schema
from flows.database import open_database
from flows.messages import CommitRef, Heartbeat, Report
from flows.rows import LIVE, CheckpointRow, LegRow, RunRow, row_of
from regions.errors import ConflictError, FencedError, NotFoundError


class Journal:
    """The journal in one database, SQLite or PostgreSQL by URL. Safe for several processes and threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._reading = engine.execution_options(nightrelay_reads=True)

    @classmethod
    def open(cls, url: str) -> Journal:
        """Open it by URL (see flows.database.open_database)."""
        return cls(open_database(url))

    # Runs

    def submit(self, run: Mapping[str, Any]) -> RunRow:
        """Record a new run; where the flow run already has one, return that (a retry is the same run)."""
        try:
            with self._engine.begin() as tx:
                tx.execute(insert(schema.runs).values(**run))
        except IntegrityError:
            existing = self.run_of(str(run["flow_run"]))
            if existing is None:
                raise ConflictError(f"a run named {run['id']} exists and belongs to another submission") from None
            return existing
        return self.run(str(run["id"]))

    def keep_catalog(self, digest: str, document: Mapping[str, Any], seen: datetime) -> None:
        """Keep the prices a run is judged by; the same digest is kept once."""
        with self._engine.begin() as tx:
            if tx.execute(select(schema.catalogs.c.digest).where(schema.catalogs.c.digest == digest)).first() is None:
                tx.execute(insert(schema.catalogs).values(digest=digest, document=dict(document), seen=seen))

    def catalog(self, digest: str) -> dict[str, Any]:
        """Return what was kept of a catalog; NotFoundError where nothing was."""
        row = self._one(select(schema.catalogs.c.document).where(schema.catalogs.c.digest == digest))
        if row is None:
            raise NotFoundError(f"the journal keeps no catalog {digest}")
        return dict(row["document"])

    def run(self, run: str) -> RunRow:
        """Return the run; NotFoundError names it and the newest ones there are."""
        row = self._one(select(schema.runs).where(schema.runs.c.id == run))
        if row is None:
            newest = ", ".join(known.id for known in self.runs()[:5]) or "none yet"
            raise NotFoundError(f"no run {run!r} in the journal; the newest: {newest}")
        return row_of(RunRow, row)

    def run_of(self, flow_run: str) -> RunRow | None:
        """Return the run a Prefect flow run drives, if it has one yet."""
        row = self._one(select(schema.runs).where(schema.runs.c.flow_run == flow_run))
        return None if row is None else row_of(RunRow, row)

    def runs(self, *, live: bool = False) -> list[RunRow]:
        """Return the runs, newest first; only those that still need decisions where `live`."""
        query = select(schema.runs).order_by(schema.runs.c.submitted_real.desc())
        if live:
            query = query.where(schema.runs.c.state.in_(LIVE))
        return [row_of(RunRow, row) for row in self._all(query)]

    def claim(self, run: str, driver: str, real: datetime) -> RunRow:
        """Make `driver` the one that may write for the run, from now on."""
        with self._engine.begin() as tx:
            tx.execute(update(schema.runs).where(schema.runs.c.id == run).values(driver=driver, driver_seen=real))
        return self.run(run)

    def ask_cancel(self, run: str) -> None:
        """Record the wish to end the run; whoever drives it carries it out."""
        with self._engine.begin() as tx:
            tx.execute(
                update(schema.runs).where(schema.runs.c.id == run, schema.runs.c.state.in_(LIVE)).values(cancel=True)
            )

    def change_run(self, run: str, driver: str, real: datetime, **values: Any) -> None:
        """Change the run's row as its driver; FencedError where another driver has claimed it."""
        with self._driving(run, driver, real) as tx:
            if values:
                tx.execute(update(schema.runs).where(schema.runs.c.id == run).values(**values))

    def reopen(self, run: str, flow_run: str) -> RunRow:
        """Let a stopped run go on under a new flow run (`resume=`); ConflictError while it is live."""
        with self._engine.begin() as tx:
            done = tx.execute(
                update(schema.runs)
                .where(schema.runs.c.id == run, schema.runs.c.state.in_(("failed", "cancelled")))
                .values(flow_run=flow_run, state="submitted", cancel=False, reason="", ended_at=None)
            ).rowcount
        row = self.run(run)
        if not done and row.flow_run != flow_run:
            raise ConflictError(f"run {run} is {row.state}; only a failed or cancelled run can be resumed")
        return row

    def artifact(self, run: str, key: str) -> str | None:
        """Return the id of the artifact that shows `key` on the run's page in the UI, if one was made."""
        table = schema.artifacts
        row = self._one(select(table.c.artifact).where(table.c.run == run, table.c.key == key))
        return None if row is None else str(row["artifact"])

    def keep_artifact(self, run: str, key: str, artifact: str) -> None:
        """Remember an artifact that was made; the first one stays."""
        try:
            with self._engine.begin() as tx:
                tx.execute(insert(schema.artifacts).values(run=run, key=key, artifact=artifact))
        except IntegrityError:
            return

    # Plans

    def add_plan(self, run: str, driver: str, real: datetime, at: datetime, document: Mapping[str, Any]) -> int:
        """Add the next revision and return its number."""
        with self._driving(run, driver, real) as tx:
            newest = tx.execute(
                select(schema.plans.c.revision)
                .where(schema.plans.c.run == run)
                .order_by(schema.plans.c.revision.desc())
                .limit(1)
            ).scalar()
            revision = (newest or 0) + 1
            document = {**document, "revision": revision}
            tx.execute(insert(schema.plans).values(run=run, revision=revision, at=at, document=document))
        return revision

    def plan(self, run: str, revision: int | None = None) -> dict[str, Any] | None:
        """Return a revision's document, the newest where none is named."""
        query = select(schema.plans.c.document).where(schema.plans.c.run == run)
        if revision is not None:
            query = query.where(schema.plans.c.revision == revision)
        row = self._one(query.order_by(schema.plans.c.revision.desc()).limit(1))
        return None if row is None else dict(row["document"])

    # Legs

    def legs(self, run: str) -> list[LegRow]:
        """Return the run's legs in order of their numbers."""
        query = select(schema.legs).where(schema.legs.c.run == run).order_by(schema.legs.c.number)
        return [row_of(LegRow, row) for row in self._all(query)]

    def intend(self, run: str, driver: str, real: datetime, leg: Mapping[str, Any]) -> LegRow:
        """Record a leg before anything of it exists; its number is the next one of the run."""
        with self._driving(run, driver, real) as tx:
            newest = tx.execute(
                select(schema.legs.c.number)
                .where(schema.legs.c.run == run)
                .order_by(schema.legs.c.number.desc())
                .limit(1)
            ).scalar()
            number = (newest or 0) + 1
            tx.execute(
                insert(schema.legs).values(
                    run=run, number=number, state="intended", launched_real=real, estimated=False, reason="", **leg
                )
            )
        return self.legs(run)[-1]

    def launched(self, run: str, driver: str, real: datetime, number: int, flow_run: str) -> None:
        """Record the flow run that carries a leg."""
        with self._driving(run, driver, real) as tx:
            tx.execute(_leg(run, number).values(flow_run=flow_run, state="launched"))

    def open_term(self, run: str, driver: str, real: datetime, number: int, stage: str) -> None:
        """Give a leg the term, on the run's one row; refused where a leg with a higher number ever had it."""
        with self._driving(run, driver, real) as tx:
            moved = tx.execute(
                update(schema.runs)
                .where(schema.runs.c.id == run, schema.runs.c.term < number)
                .values(term=number, stage=stage, state="running")
            ).rowcount
            if not moved:
                raise FencedError(f"leg {number} of {run} cannot have the term: a newer one stands")
            tx.execute(_leg(run, number).values(state="open", opened_real=real))

    def replan_leg(self, run: str, driver: str, real: datetime, number: int, planned_end: datetime) -> None:
        """Move the standing leg's planned end."""
        with self._driving(run, driver, real) as tx:
            tx.execute(_leg(run, number).values(planned_end=planned_end))

    def saw(self, run: str, number: int, beat: Heartbeat) -> None:
        """Mirror a leg's heartbeat: a view with one writer, the leg; so no driver is needed, and an older one loses."""
        with self._engine.begin() as tx:
            tx.execute(
                _leg(run, number)
                .where(
                    schema.legs.c.state != "ended",
                    (schema.legs.c.heartbeat_real.is_(None)) | (schema.legs.c.heartbeat_real < beat.real),
                )
                .values(
                    heartbeat=beat.model_dump(mode="json"),
                    heartbeat_real=beat.real,
                    started_at=beat.started_at,
                    started_real=beat.started_real,
                    pid=beat.pid,
                    trainer_pid=beat.trainer_pid,
                )
            )

    def end_leg(
        self,
        run: str,
        driver: str,
        real: datetime,
        leg: Mapping[str, Any],
        accepted: Sequence[tuple[str, str, CommitRef]],
        charges: Sequence[Mapping[str, Any]],
        report: Report | None,
    ) -> None:
        """End a leg in one transaction: its outcome, the commits that enter the history, its charges.

        `leg` holds number, outcome, reason, the instants and steps; `accepted` are (stage, region, commit). A leg that
        has ended already stays as it was, so a replay changes nothing.
        """
        number = leg["number"]
        with self._driving(run, driver, real) as tx:
            values = {name: value for name, value in leg.items() if name != "number"}
            values["report"] = None if report is None else report.model_dump(mode="json")
            ended = tx.execute(_leg(run, number).where(schema.legs.c.state != "ended").values(state="ended", **values))
            if not ended.rowcount:
                return
            for stage, region, commit in accepted:
                self._accept(tx, run, stage, region, commit, real)
            for line, charge in enumerate(charges):
                tx.execute(insert(schema.charges).values(run=run, leg=number, line=line, **charge))

    @staticmethod
    def _accept(tx: Connection, run: str, stage: str, region: str, commit: CommitRef, real: datetime) -> None:
        key = {"run": run, "stage": stage, "step": commit.step, "term": commit.term}
        same = [getattr(schema.checkpoints.c, name) == value for name, value in key.items()]
        if tx.execute(select(schema.checkpoints.c.run).where(*same)).first() is None:
            tx.execute(
                insert(schema.checkpoints).values(
                    **key, digest=commit.digest, record=commit.key, bytes=commit.bytes, accepted_real=real
                )
            )
        there = [getattr(schema.places.c, name) == value for name, value in {**key, "region": region}.items()]
        if tx.execute(select(schema.places.c.run).where(*there)).first() is None:
            tx.execute(insert(schema.places).values(**key, region=region))

    # Checkpoints and charges

    def checkpoints(self, run: str) -> list[CheckpointRow]:
        """Return the committed history, oldest first; of a step committed twice, the newer term stands last."""
        order = (schema.checkpoints.c.stage, schema.checkpoints.c.step, schema.checkpoints.c.term)
        rows = self._all(select(schema.checkpoints).where(schema.checkpoints.c.run == run).order_by(*order))
        where: dict[tuple[str, int, int], list[str]] = {}
        for place in self._all(
            select(schema.places).where(schema.places.c.run == run).order_by(schema.places.c.region)
        ):
            where.setdefault((place["stage"], place["step"], place["term"]), []).append(place["region"])
        return [
            CheckpointRow(
                run=run,
                stage=row["stage"],
                step=row["step"],
                term=row["term"],
                digest=row["digest"],
                record=row["record"],
                bytes=row["bytes"],
                regions=tuple(where.get((row["stage"], row["step"], row["term"]), ())),
            )
            for row in rows
        ]

    def charges(self, run: str | None = None) -> list[Mapping[str, Any]]:
        """Return the ledger's lines, of one run or of all, in the order they were made."""
        query = select(schema.charges).order_by(schema.charges.c.run, schema.charges.c.leg, schema.charges.c.line)
        return self._all(query if run is None else query.where(schema.charges.c.run == run))

    # Inside

    @contextmanager
    def _driving(self, run: str, driver: str, real: datetime) -> Iterator[Connection]:
        """Open a transaction that holds the run's row, if `driver` is still the one that claimed it."""
        with self._engine.begin() as tx:
            mine = tx.execute(
                update(schema.runs)
                .where(schema.runs.c.id == run, schema.runs.c.driver == driver)
                .values(driver_seen=real)
            ).rowcount
            if not mine:
                raise FencedError(f"another driver has claimed run {run}; this one must end")
            yield tx

    def _one(self, query: Any) -> Mapping[str, Any] | None:
        with self._reading.connect() as connection:
            row = connection.execute(query).mappings().first()
            return None if row is None else dict(row)

    def _all(self, query: Any) -> list[Mapping[str, Any]]:
        with self._reading.connect() as connection:
            return [dict(row) for row in connection.execute(query).mappings().all()]


def _leg(run: str, number: int) -> Any:
    return update(schema.legs).where(schema.legs.c.run == run, schema.legs.c.number == number)
