"""Tells a run's story where people look for it: artifacts and events on the parent's page in the Prefect UI.

Artifacts are made once per run and rewritten in place, so no versions pile up. Telling is never a reason to stop: where
the server is away the story has a gap, the run does not.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from flows.flowruns import FlowRuns
from flows.journal import Journal
from flows.relay import End
from flows.render.tables import leg_rows, plan_rows
from flows.rows import LegRow, RunRow
from regions.clock import Clock
from regions.errors import NightrelayError
from regions.load import Catalog


class Story:
    """Tells the story of one run, as its driver."""

    def __init__(
        self, journal: Journal, flowruns: FlowRuns, clock: Clock, catalog: Catalog, run: str, driver: str
    ) -> None:
        self._journal = journal
        self._flowruns = flowruns
        self._clock = clock
        self._zones = {name: region.timezone for name, region in catalog.regions.items()}
        self._run = run
        self._driver = driver

    def planned(self, run: RunRow, document: Mapping[str, Any]) -> None:
        """Show the newest plan."""
        revision = document["revision"]
        title = f"Plan, revision {revision}: {document['cost']} {document['currency']}, done {document['finish']}"
        self._show(run, "plan", "table", plan_rows(document, self._zones), title)
        if revision > 1:
            self._emit(run, "nightrelay.run.replanned", {"revision": revision})

    def opened(self, run: RunRow, leg: LegRow) -> None:
        """Say that a leg has the term."""
        payload = {"leg": leg.number, "region": leg.region, "stage": leg.stage, "until": leg.planned_end.isoformat()}
        self._emit(run, "nightrelay.leg.started", payload, leg)

    def ended(self, run: RunRow, leg: LegRow, end: End) -> None:
        """Say how a leg ended, and show the legs with their costs."""
        payload = {"leg": leg.number, "region": leg.region, "outcome": end.outcome, "reason": end.reason}
        self._emit(run, f"nightrelay.leg.{end.outcome}", payload, leg)
        rows = leg_rows(self._journal.legs(run.id), self._journal.charges(run.id), self._zones)
        self._show(run, "legs", "table", rows, "What each leg did and cost")

    def reported(self, run: RunRow, markdown: str, png: bytes | None) -> None:
        """Show the run's report and its picture, and say that the run is over."""
        self._show(run, "report", "markdown", markdown, "The run's report")
        if png is not None:
            data = "data:image/png;base64," + base64.b64encode(png).decode()
            self._show(run, "picture", "image", data, "Legs over the price curves")
        self._emit(run, f"nightrelay.run.{run.state}", {"run": run.id, "reason": run.reason})

    def _show(self, run: RunRow, key: str, kind: str, data: Any, description: str) -> None:
        try:
            show(self._journal, self._flowruns, run, key, kind, data, description)
        except NightrelayError:
            return

    def _emit(self, run: RunRow, event: str, payload: Mapping[str, Any], leg: LegRow | None = None) -> None:
        related = [leg.flow_run] if leg is not None and leg.flow_run is not None else []
        try:
            self._flowruns.emit(self._clock.real(), event, run.flow_run, payload, related)
        except NightrelayError:
            return


def show(journal: Journal, flowruns: FlowRuns, run: RunRow, key: str, kind: str, data: Any, description: str) -> None:
    """Make or rewrite one artifact of the run's page; its id is kept in the journal."""
    known = journal.artifact(run.id, key)
    if known is not None:
        flowruns.update_artifact(known, data, description)
        return
    made = flowruns.artifact(
        run.flow_run, f"{run.id}-{key}".lower().replace("_", "-").replace(".", "-"), kind, data, description
    )
    journal.keep_artifact(run.id, key, made)


def show_progress(journal: Journal, flowruns: FlowRuns, run: RunRow, done: float, text: str) -> None:
    """Show how much of the run's work is done, in percent; where the server is away, say nothing."""
    try:
        show(journal, flowruns, run, "progress", "progress", round(100 * done, 1), text)
    except NightrelayError:
        return
