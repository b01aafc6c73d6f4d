"""Drives one run: reads facts, decides (flows.relay), writes the decision to the journal, acts on it, asks again.

It may die at any point and another may take its place: everything it needs is in the journal and the regions' stores,
each act is idempotent (flows.acts), and a driver that was replaced cannot write any more (flows.journal).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from flows import relay
from flows.absorb import live_legs
from flows.acts import Acts
from flows.catalogs import current
from flows.flowruns import FlowRuns
from flows.history import outcomes_of, stage_under_way
from flows.journal import Journal
from flows.requests import Asked
from flows.rows import RunRow
from flows.settings import Settings
from flows.sites import Sites
from flows.situation import observed_startup, situation_of, with_startup
from regions.planning.problem import Plan, PlannedLeg, Situation
from regions.planning.request import RunRequest
from regions.planning.single import plan

FRESH = 5.0
"""Real seconds for which a plan is not made anew while nothing has changed."""


@dataclass(frozen=True, slots=True)
class Done:
    """The run is over."""

    state: str
    reason: str


class Driver:
    """The one that may act for a run, from its making until another is made."""

    def __init__(self, journal: Journal, run: RunRow, settings: Settings, flowruns: FlowRuns) -> None:
        self._journal = journal
        self._clock = settings.clock
        self._flowruns = flowruns
        self._request = Asked.again(run.request).request
        self._catalog = current(journal, settings.catalog, settings.clock)
        self._sites = Sites(settings, self._catalog)
        self._run = run
        self._acts = Acts(journal, run, self._request, self._catalog, self._sites, flowruns, settings.clock)
        self._planned: tuple[object, float, Plan] | None = None
        allowed = self._request.regions.allow or tuple(self._catalog.regions)
        offers = [offer for name in allowed for offer in self._catalog.regions[name].offers]
        self._longest_startup = max((offer.startup.total_seconds() for offer in offers), default=0.0)
        self.limits = relay.Limits()

    def turn(self) -> relay.Wait | Done:
        """Look once, do all there is to do now, and say when to look again."""
        self._acts.still_driving()
        self._run = self._journal.run(self._run.id)
        views = self._absorb()
        for end in relay.endings(list(views.values()), self._clock.real(), self.limits):
            self._acts.end(views.pop(end.number), end)
        live = list(views.values())
        legs = self._journal.legs(self._run.id)
        if self._run.cancel:
            return self._stop(live, "cancelled", "cancelled by its user")
        if why := relay.given_up(outcomes_of(legs), self.limits):
            return self._stop(live, "failed", why)
        stage = stage_under_way(self._request, self._journal.checkpoints(self._run.id), legs)
        if stage is None:
            return self._stop(live, "finished", "every stage is done")
        return self._go_on(live, stage)

    def _go_on(self, live: Sequence[relay.LegView], stage: str) -> relay.Wait | Done:
        """Plan where a choice is due, and take it."""
        real, tempo = self._clock.real(), self._tempo()
        planned: tuple[PlannedLeg, ...] = ()
        if relay.wants_plan(live, real, tempo, self._longest_startup):
            made = self._plan(live)
            planned = made.legs
            if not planned and not live:
                return self._stop(live, "failed", f"nothing fits: {made.binding or 'no region can run it'}")
        actions = relay.choose(live, planned, stage, real, tempo)
        for action in actions:
            self._acts.act(action)
        self._acts.make_true()
        if actions:
            live = list(self._absorb().values())
        return relay.pause(live, planned, self._clock.real(), tempo, self.limits, self._longest_startup)

    def _plan(self, live: Sequence[relay.LegView]) -> Plan:
        """Return a plan from how the run stands; the last one while nothing has changed and it is seconds old."""
        facts = (len(self._journal.checkpoints(self._run.id)), tuple(leg.number for leg in live))
        now = self._clock.monotonic()
        if self._planned is not None and self._planned[0] == facts and now - self._planned[1] < FRESH:
            return self._planned[2]
        situation, at = self._situation(live), self._clock.now()
        seen = observed_startup(self._journal.legs(self._run.id))
        startup = timedelta(seconds=self.limits.launch_guess) if seen is None else seen
        catalog = with_startup(self._catalog, startup * self._clock.speed)
        made = plan(self._request, catalog, situation, at)
        if not made.legs and self._journal.legs(self._run.id):
            # A run under way that cannot keep its promise any more is not thrown away: it goes on, as fast as it can.
            made = plan(soonest(self._request), catalog, situation, at)
        self._planned = (facts, now, made)
        self._acts.keep_plan(made)
        return made

    def _tempo(self) -> relay.Tempo:
        legs = self._journal.legs(self._run.id)
        launches = [
            (leg.started_real - leg.launched_real).total_seconds() for leg in legs if leg.started_real is not None
        ]
        return relay.tempo_of(launches, self._clock.to_real, self._clock.speed, self.limits)

    def _absorb(self) -> dict[int, relay.LegView]:
        return live_legs(self._journal, self._sites, self._flowruns, self._run.id)

    def _situation(self, live: Sequence[relay.LegView]) -> Situation:
        return situation_of(
            self._run,
            self._request,
            self._journal.legs(self._run.id),
            self._journal.checkpoints(self._run.id),
            self._journal.charges(self._run.id),
            standing=next((leg.number for leg in live if leg.holds_term), None),
            dataset_bytes=int((self._run.dataset or {}).get("bytes", 0)),
            accelerators={
                (region.id, offer.id): offer.accelerator
                for region in self._catalog.regions.values()
                for offer in region.offers
            },
        )

    def _stop(self, live: Sequence[relay.LegView], state: str, reason: str) -> relay.Wait | Done:
        """End the run: ask whoever lives to leave; when nobody does, write its last state."""
        for ask in relay.stop_everything(live, reason):
            self._acts.act(ask)
        if live:
            return relay.Wait(self._clock.real(), "Ending", "waiting for the last leg to save and leave")
        self._acts.finish(state, reason)
        return Done(state, reason)


def soonest(request: RunRequest) -> RunRequest:
    """Return the request without the promises it can no longer keep: done as soon as possible, whatever that costs."""
    return request.model_copy(update={"deadline": None, "within": None, "budget": None, "objective": "time"})
