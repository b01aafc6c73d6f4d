"""Drives one run: reads facts, decides (flows.relay), writes the decision to the journal, acts on it, asks again.

It may die at any point and another may take its place: everything it needs is in the journal and the regions' stores,
each act is idempotent, and a driver that was replaced cannot write any more (flows.journal).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from flows import relay
from flows.absorb import live_legs
from flows.flowruns import FlowRuns
from flows.history import accepted_commits, outcomes_of, stage_under_way
from flows.journal import Journal
from flows.ledger import charges_of
from flows.messages import (
    Baton,
    CommitRef,
    Control,
    Heartbeat,
    Order,
    Report,
    baton_key,
    control_key,
    heartbeat_key,
    order_key,
    report_key,
)
from flows.orders import order_for
from flows.rows import LegRow, RunRow
from flows.sites import Sites, put_message, read_message
from flows.situation import situation_of
from flows.story import Story
from regions.clock import Clock
from regions.errors import ConflictError, NightrelayError, StoreUnavailable
from regions.load import Catalog
from regions.planning import plan
from regions.planning.problem import Plan
from regions.planning.request import RunRequest


@dataclass(frozen=True, slots=True)
class Done:
    """The run is over."""

    state: str
    reason: str


class Driver:
    """The one that may act for a run, from `claim` until another claims it."""

    def __init__(
        self,
        journal: Journal,
        run: RunRow,
        catalog: Catalog,
        sites: Sites,
        flowruns: FlowRuns,
        clock: Clock,
        limits: relay.Limits | None = None,
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._limits = limits or relay.Limits()
        self._token = uuid4().hex
        self._run = journal.claim(run.id, self._token, clock.real())
        self._request = RunRequest.model_validate(run.request)
        self._catalog = catalog
        self._sites = sites
        self._flowruns = flowruns
        self._story = Story(journal, flowruns, clock, self._run.id, self._token)
        self._baton_sure = 0

    def turn(self) -> relay.Wait | Done:
        """Look once, do all there is to do now, and say when to look again."""
        self._run = self._journal.run(self._run.id)
        self._journal.change_run(self._run.id, self._token, self._clock.real())
        views = self._absorb()
        if ended := relay.endings(list(views.values()), self._clock.real(), self._limits):
            for end in ended:
                self._end(views.pop(end.number), end)
            self._run = self._journal.run(self._run.id)
        live = list(views.values())
        if self._run.cancel:
            return self._stop(live, "cancelled", self._run.reason or "cancelled by its user")
        if why := relay.given_up(outcomes_of(self._journal.legs(self._run.id)), self._limits):
            return self._stop(live, "failed", why)
        stage = stage_under_way(self._request, self._journal.checkpoints(self._run.id), self._legs())
        if stage is None:
            return self._stop(live, "finished", "every stage is done")
        return self._go_on(live, stage)

    def _go_on(self, live: Sequence[relay.LegView], stage: str) -> relay.Wait | Done:
        now_to_real = self._clock.to_real
        real = self._clock.real()
        planned: tuple = ()
        if relay.wants_plan(live, real, now_to_real, self._limits):
            made = self._plan(live)
            if not made.feasible and not made.legs and not live:
                return self._stop(live, "failed", f"nothing fits: {made.binding}")
            planned = made.legs
        actions = relay.choose(live, planned, stage, real, now_to_real, self._limits)
        for action in actions:
            self._act(action)
        self._keep_baton()
        if actions:
            live = list(self._absorb().values())
        return relay.pause(live, planned, self._clock.real(), now_to_real, self._limits)

    # Facts

    def _legs(self) -> list[LegRow]:
        return self._journal.legs(self._run.id)

    def _absorb(self) -> dict[int, relay.LegView]:
        return live_legs(self._journal, self._sites, self._flowruns, self._run.id)

    # Acts

    def _plan(self, live: Sequence[relay.LegView]) -> Plan:
        holder = next((leg.number for leg in live if leg.holds_term), None)
        situation = situation_of(
            self._run,
            self._request,
            self._legs(),
            self._journal.checkpoints(self._run.id),
            self._journal.charges(self._run.id),
            standing=holder,
            dataset_bytes=self._run.artifacts.get("dataset_bytes", 0),
        )
        made = plan(self._request, self._catalog, situation, self._clock.now())
        document = self._story.document(made)
        if self._story.changed(document):
            self._journal.add_plan(self._run.id, self._token, self._clock.real(), self._clock.now(), document)
            self._story.planned(self._run)
        return made

    def _act(self, action: relay.Action) -> None:
        match action:
            case relay.Launch(leg):
                self._launch(leg)
            case relay.Open(number):
                self._open(number)
            case relay.Ask(number, wish, reason, stop_by):
                self._ask(number, wish, reason, stop_by)

    def _launch(self, planned: relay.PlannedLeg) -> None:
        """Write the intent, then the order, then create the flow run: any of them may be met again after a crash."""
        row = self._journal.intend(
            self._run.id,
            self._token,
            self._clock.real(),
            {
                "stage": planned.stage,
                "region": planned.region,
                "offer": planned.offer,
                "market": planned.market,
                "width": planned.width,
                "planned_start": planned.start,
                "planned_end": planned.end,
            },
        )
        self._create(row)

    def _create(self, row: LegRow) -> None:
        order = self._order(row)
        store = self._sites.store(row.region)
        self._write_once(row, order_key(row.run, row.number), order)
        if read_message(store, control_key(row.run), Control) is None:
            put_message(store, control_key(row.run), Control(term=self._run.term))
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

    def _order(self, row: LegRow) -> Order:
        return order_for(
            row,
            self._run,
            self._request,
            self._sites,
            precopy=self._newest(row.stage, before=row.number),
        )

    def _newest(self, stage: str, *, before: int) -> CommitRef | None:
        """Return the newest commit of the history made before a leg, and a store that holds it."""
        history = [row for row in self._journal.checkpoints(self._run.id) if row.stage == stage and row.term < before]
        starts_from = self._request.stage(stage).starts_from
        if not history and starts_from is not None:
            history = [row for row in self._journal.checkpoints(self._run.id) if row.stage == starts_from]
        if not history:
            return None
        last = history[-1]
        return CommitRef(
            key=last.record,
            step=last.step if last.stage == stage else 0,
            term=last.term,
            digest=last.digest,
            bytes=last.bytes,
            source=self._sites.place(last.regions[-1]),
        )

    def _open(self, number: int) -> None:
        row = next(leg for leg in self._legs() if leg.number == number)
        self._journal.open_term(row.run, self._token, self._clock.real(), number, row.stage)
        self._run = self._journal.run(row.run)
        self._keep_baton()
        self._story.opened(self._run, row)

    def _keep_baton(self) -> None:
        """Make the stores agree with the term in the journal; whoever died in between left that to the next driver."""
        for row in self._legs():
            if row.state == "intended":
                self._create(row)
        holder = next((leg for leg in self._legs() if leg.state == "open"), None)
        if holder is None or self._baton_sure == holder.number:
            return
        for region in {leg.region for leg in self._legs()}:
            control = read_message(self._sites.store(region), control_key(holder.run), Control) or Control()
            if control.term < holder.number:
                standing = Control(term=holder.number, dismissed=control.dismissed)
                put_message(self._sites.store(region), control_key(holder.run), standing)
        baton = Baton(
            run=holder.run,
            number=holder.number,
            start_from=self._newest(holder.stage, before=holder.number),
            stop_by=holder.planned_end,
        )
        self._write_once(holder, baton_key(holder.run, holder.number), baton)
        self._baton_sure = holder.number

    def _write_once(self, row: LegRow, key: str, message: Order | Baton) -> None:
        try:
            put_message(self._sites.store(row.region), key, message, create=True)
        except ConflictError:
            pass  # A driver before this one wrote it; orders and batons are written once.

    def _ask(self, number: int, wish: str, reason: str, stop_by: datetime | None) -> None:
        row = next(leg for leg in self._legs() if leg.number == number)
        store = self._sites.store(row.region)
        control = read_message(store, control_key(row.run), Control) or Control(term=self._run.term)
        if wish == "dismiss":
            changed = control.model_copy(update={"dismissed": max(control.dismissed, number), "reason": reason})
        elif wish == "extend" and stop_by is not None:
            changed = control.model_copy(update={"stop_by": stop_by, "reason": reason})
            self._journal.replan_leg(row.run, self._token, self._clock.real(), number, stop_by)
        else:
            changed = control.model_copy(update={"wish": wish, "reason": reason})
        if changed != control:
            put_message(store, control_key(row.run), changed)

    def _end(self, view: relay.LegView, end: relay.End) -> None:
        """Write how a leg ended, with the commits it really made and what it cost, in one transaction."""
        row = next(leg for leg in self._legs() if leg.number == end.number)
        report, beat = view.report, view.beat
        commits = accepted_commits(self._sites.store(row.region), self._sites.place(row.region), row)
        started = next((fact for fact in (report, beat) if fact is not None), None)
        last = max((commit.step for commit in commits), default=None)
        begun = report.from_step if report else (beat.from_step if beat else None)
        leg = {
            "number": row.number,
            "outcome": end.outcome,
            "reason": end.reason,
            "started_at": started.started_at if started else None,
            "started_real": started.started_real if started else None,
            "ended_at": report.ended_at if report else (beat.at if beat else None),
            "ended_real": report.ended_real if report else (beat.real if beat else None),
            "from_step": begun,
            "to_step": last if last is not None else begun,
            "estimated": report is None,
        }
        charged = charges_of(row, leg, report, self._run, self._request, self._catalog)
        accepted = [(row.stage, row.region, commit) for commit in commits] if view.holds_term else []
        self._journal.end_leg(row.run, self._token, self._clock.real(), leg, accepted, charged, report)
        if report is None and row.flow_run is not None:
            self._flowruns.cancel(row.flow_run)
        self._story.ended(self._run, row, end)

    def _stop(self, live: Sequence[relay.LegView], state: str, reason: str) -> relay.Wait | Done:
        """End the run: ask whoever lives to leave, then write the last state."""
        for ask in relay.stop_everything(live, reason):
            self._act(ask)
        if live:
            return relay.Wait(self._clock.real(), "Ending", "waiting for the last leg to save and leave")
        history = self._journal.checkpoints(self._run.id)
        final = history[-1].digest if history and state == "finished" else None
        self._journal.change_run(
            self._run.id,
            self._token,
            self._clock.real(),
            state=state,
            reason=reason,
            ended_at=self._clock.now(),
            final_digest=final,
        )
        self._run = self._journal.run(self._run.id)
        self._story.finished(self._run, self._request, self._catalog)
        return Done(state, reason)
