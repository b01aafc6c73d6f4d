"""What a driver does: each act writes to the journal first, then to a store, then to Prefect, and can be met again.

Whoever dies between two of these writes leaves the rest to the next driver, which finds the intent in the journal and
makes the stores and Prefect agree with it (`make_true`).
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime
from uuid import uuid4

from flows import relay
from flows.catalogs import kept
from flows.flowruns import FlowRuns
from flows.history import accepted_commits
from flows.journal import Journal
from flows.ledger import charges_of
from flows.messages import Baton, CommitRef, Control, DatasetRef, Order, baton_key, control_key, order_key
from flows.orders import order_for
from flows.rows import LegRow, RunRow
from flows.sites import Sites, put_message, read_message
from flows.story import Story
from regions.clock import Clock
from regions.errors import ConflictError
from regions.model import Catalog
from regions.planning.problem import Plan, PlannedLeg
from regions.planning.request import RunRequest


class Acts:
    """The acts of one driver of one run."""

    def __init__(
        self,
        journal: Journal,
        run: RunRow,
        request: RunRequest,
        catalog: Catalog,
        sites: Sites,
        flowruns: FlowRuns,
        clock: Clock,
    ) -> None:
        self._token = uuid4().hex
        self._journal = journal
        self._run = journal.claim(run.id, self._token, clock.real())
        self._request = request
        self._catalog = catalog
        self._sites = sites
        self._flowruns = flowruns
        self._clock = clock
        self._story = Story(journal, flowruns, clock, catalog, self._run)
        self._sure_of = 0

    def still_driving(self) -> None:
        """Show that this driver lives; FencedError where another has taken its place."""
        self._journal.change_run(self._run.id, self._token, self._clock.real())

    def keep_plan(self, made: Plan) -> None:
        """Write a plan as the next revision, if it is not the one that stands, and show it."""
        document = json.loads(json.dumps(made.document(), default=_plain))
        standing = self._journal.plan(self._run.id)
        if standing is not None and standing["legs"] == document["legs"]:
            return
        real, now = self._clock.real(), self._clock.now()
        document["revision"] = self._journal.add_plan(self._run.id, self._token, real, now, document)
        self._story.planned(document)

    def act(self, action: relay.Action) -> None:
        """Carry out one decision."""
        match action:
            case relay.Launch(leg):
                self._create(self._intend(leg))
            case relay.Open(number):
                row = self._leg(number)
                self._journal.open_term(row.run, self._token, self._clock.real(), number, row.stage)
                self.make_true()
                self._story.opened(row)
            case relay.Ask(number, wish, reason, stop_by):
                self._ask(self._leg(number), wish, reason, stop_by)

    def make_true(self) -> None:
        """Make the stores and Prefect agree with the journal, where a driver before this one left something undone."""
        legs = self._journal.legs(self._run.id)
        for row in legs:
            if row.state == "intended":
                self._create(row)
        holder = next((row for row in legs if row.state == "open"), None)
        if holder is None or self._sure_of == holder.number:
            return
        for region in {row.region for row in legs}:
            store, key = self._sites.store(region), control_key(holder.run)
            control = read_message(store, key, Control) or Control()
            if control.term < holder.number:
                put_message(store, key, Control(term=holder.number, dismissed=control.dismissed))
        baton = Baton(
            run=holder.run,
            number=holder.number,
            start_from=self._newest(holder.stage, before=holder.number),
            stop_by=holder.planned_end,
        )
        self._write_once(holder, baton_key(holder.run, holder.number), baton)
        self._sure_of = holder.number

    def end(self, view: relay.LegView, end: relay.End) -> None:
        """Write how a leg ended, the commits it really made and what it cost, in one transaction."""
        row = self._leg(end.number)
        report, beat = view.report, view.beat
        commits = []
        if view.holds_term:
            commits = accepted_commits(self._sites.store(row.region), self._sites.place(row.region), row)
        sign = report or beat
        begun = report.from_step if report else beat.from_step if beat else None
        started_at = sign.started_at if sign else None
        ended_at = report.ended_at if report else beat.at if beat else None
        ended = {
            "number": row.number,
            "outcome": end.outcome,
            "reason": end.reason,
            "started_at": started_at,
            "started_real": sign.started_real if sign else None,
            "ended_at": ended_at,
            "ended_real": report.ended_real if report else beat.real if beat else None,
            "from_step": begun if view.holds_term else None,
            "to_step": max([begun or 0, *(commit.step for commit in commits)]) if view.holds_term else None,
            "estimated": report is None,
        }
        charged = charges_of(
            row,
            self._run,
            kept(self._journal, row.catalog),
            currency=self._currency(),
            start=started_at,
            end=ended_at,
            report=report,
            estimated=report is None,
        )
        accepted = [(row.stage, row.region, commit) for commit in commits]
        self._journal.end_leg(row.run, self._token, self._clock.real(), ended, accepted, charged, report)
        if report is None and row.flow_run is not None:
            self._flowruns.cancel(row.flow_run)
        self._story.ended(row, end)

    def finish(self, state: str, reason: str) -> None:
        """Write the run's last state and tell how it went."""
        history = self._journal.checkpoints(self._run.id)
        self._journal.change_run(
            self._run.id,
            self._token,
            self._clock.real(),
            state=state,
            reason=reason,
            ended_at=self._clock.now(),
            final_digest=history[-1].digest if history and state == "finished" else None,
        )
        self._story.finished()

    def _intend(self, planned: PlannedLeg) -> LegRow:
        return self._journal.intend(
            self._run.id,
            self._token,
            self._clock.real(),
            {
                "stage": planned.stage,
                "region": planned.region,
                "offer": planned.offer,
                "market": planned.market,
                "width": planned.width,
                "catalog": self._catalog.digest,
                "planned_start": planned.start,
                "planned_end": planned.end,
            },
        )

    def _create(self, row: LegRow) -> None:
        """Write the leg's order, then create its flow run."""
        dataset = None if self._run.dataset is None else DatasetRef.model_validate(self._run.dataset)
        order = order_for(
            row, self._run, self._request, dataset, self._newest(row.stage, before=row.number), self._clock.speed
        )
        self._write_once(row, order_key(row.run, row.number), order)
        flow_run = self._flowruns.create_leg(
            self._run.flow_run,
            row.region,
            f"{row.stage} / leg {row.number} / {row.region}",
            {
                "run": row.run,
                "number": row.number,
                "stage": row.stage,
                "region": row.region,
                "store": self._sites.place(row.region).model_dump(),
            },
            tags=[f"run:{row.run}", f"region:{row.region}", f"stage:{row.stage}", f"team:{self._run.team}"],
            queue=self._run.priority,
            key=f"{row.run}:{row.number}",
        )
        self._journal.launched(row.run, self._token, self._clock.real(), row.number, flow_run)

    def _newest(self, stage: str, *, before: int) -> CommitRef | None:
        """Return the newest commit of the history made before a leg, and a store that holds it.

        A stage without commits of its own starts from the last one of the stage it `starts_from`, at step 0.
        """
        history = self._journal.checkpoints(self._run.id)
        own = [row for row in history if row.stage == stage and row.term < before]
        inherited = [row for row in history if row.stage == self._request.stage(stage).starts_from]
        if not (own or inherited):
            return None
        last = (own or inherited)[-1]
        return CommitRef(
            key=last.record,
            step=last.step if own else 0,
            term=last.term,
            digest=last.digest,
            bytes=last.bytes,
            source=self._sites.place(last.regions[-1]),
        )

    def _ask(self, row: LegRow, wish: str, reason: str, stop_by: datetime | None) -> None:
        """Change what the control object of the leg's store asks."""
        store, key = self._sites.store(row.region), control_key(row.run)
        control = read_message(store, key, Control) or Control(term=self._journal.run(row.run).term)
        if wish == "dismiss":
            changes = {"dismissed": max(control.dismissed, row.number), "reason": reason}
        elif wish == "extend" and stop_by is not None:
            changes = {"stop_by": stop_by, "reason": reason}
            self._journal.replan_leg(row.run, self._token, self._clock.real(), row.number, stop_by)
        else:
            changes = {"wish": wish, "reason": reason}
        changed = control.model_copy(update=changes)
        if changed != control:
            put_message(store, key, changed)

    def _write_once(self, row: LegRow, key: str, message: Order | Baton) -> None:
        with suppress(ConflictError):  # a driver before this one wrote it: orders and batons are written once
            put_message(self._sites.store(row.region), key, message, create=True)

    def _leg(self, number: int) -> LegRow:
        return next(row for row in self._journal.legs(self._run.id) if row.number == number)

    def _currency(self) -> str:
        standing = self._journal.plan(self._run.id)
        assert standing is not None, "a leg exists only after a plan"
        return str(standing["currency"])


def _plain(value: object) -> str:
    """Give money and instants their JSON form."""
    return value.isoformat() if isinstance(value, datetime) else str(value)
