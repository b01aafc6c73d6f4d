"""Takes in what the live legs of a run say of themselves, from their regions' stores, into the journal's view."""

from __future__ import annotations

from flows.flowruns import FINAL, FlowRuns
from flows.journal import Journal
from flows.messages import Heartbeat, Report, heartbeat_key, report_key
from flows.relay import LegView
from flows.rows import LegRow
from flows.sites import Sites, read_message
from regions.errors import NightrelayError, StoreUnavailable


def live_legs(journal: Journal, sites: Sites, flowruns: FlowRuns, run: str) -> dict[int, LegView]:
    """Return the run's legs that have not ended, as the newest facts have them, by number.

    Heartbeats are kept in the journal on the way. A store or a Prefect server that is away leaves older facts standing.
    """
    views = {}
    for leg in journal.legs(run):
        if leg.state == "ended":
            continue
        report, beat = _read(sites, leg)
        if beat is not None and (leg.heartbeat_real is None or beat.real > leg.heartbeat_real):
            journal.saw(run, leg.number, beat)
        views[leg.number] = LegView(
            number=leg.number,
            stage=leg.stage,
            region=leg.region,
            holds_term=leg.state == "open",
            launched_real=leg.launched_real,
            opened_real=leg.opened_real,
            planned_start=leg.planned_start,
            planned_end=leg.planned_end,
            beat=beat or leg.beat,
            report=report,
            process_gone=_gone(flowruns, leg),
        )
    return views


def _read(sites: Sites, leg: LegRow) -> tuple[Report | None, Heartbeat | None]:
    try:
        store = sites.store(leg.region)
        return (
            read_message(store, report_key(leg.run, leg.number), Report),
            read_message(store, heartbeat_key(leg.run, leg.number), Heartbeat),
        )
    except StoreUnavailable:
        return None, None


def _gone(flowruns: FlowRuns, leg: LegRow) -> bool:
    """Ask Prefect whether the leg's flow run has ended: only a trigger to look sooner, so no answer means no."""
    if leg.flow_run is None:
        return False
    try:
        seen = flowruns.view(leg.flow_run, patience=0)
    except NightrelayError:
        return False
    return seen is None or seen.type in FINAL
