"""Tells a run's story where people look for it: artifacts and events on the parent's page in the Prefect UI.

Artifacts are made once per run and rewritten in place, so no versions pile up. Telling is never a reason to stop: where
the server is away the story has a gap, the run does not.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from flows.flowruns import FlowRuns
from flows.history import progress_of
from flows.journal import Journal
from flows.relay import End
from flows.render.tables import bill, bill_rows, money, plan_rows, utc
from flows.requests import Asked
from flows.rows import LegRow, RunRow
from regions.clock import Clock
from regions.errors import NotFoundError, OutsideError
from regions.model import Catalog


class Story:
    """Tells the story of one run, as its driver."""

    def __init__(self, journal: Journal, flowruns: FlowRuns, clock: Clock, catalog: Catalog, run: RunRow) -> None:
        self._journal = journal
        self._flowruns = flowruns
        self._clock = clock
        self._catalog = catalog
        self._zones = {name: region.timezone for name, region in catalog.regions.items()}
        self._run = run

    def planned(self, document: Mapping[str, Any]) -> None:
        """Show the newest plan."""
        revision = document["revision"]
        if document["cost"] is None:
            outlook = f"no plan fits: {document.get('binding') or 'no region can run it'}"
        else:
            outlook = f"{money(document['cost'], document['currency'])}, done {utc(document['finish'])}"
        self._show("plan", "table", plan_rows(document, self._zones), f"Plan, revision {revision}: {outlook}")
        self._emit("nightrelay.run.planned", {"revision": revision, "cost": document["cost"]})

    def opened(self, leg: LegRow) -> None:
        """Say that a leg has the term."""
        payload = {"leg": leg.number, "region": leg.region, "stage": leg.stage, "until": leg.planned_end.isoformat()}
        self._emit("nightrelay.leg.started", payload, leg)

    def ended(self, leg: LegRow, end: End) -> None:
        """Say how a leg ended, and show the legs with their costs."""
        payload = {"leg": leg.number, "region": leg.region, "outcome": end.outcome, "reason": end.reason}
        self._emit(f"nightrelay.leg.{end.outcome}", payload, leg)
        legs, charges = self._journal.legs(self._run.id), self._journal.charges(self._run.id)
        told = f"{len(legs)} legs: what each did and cost"
        if charges:
            told = f"{bill(charges)} so far; {told}"
        self._show("costs", "table", bill_rows(legs, charges, self._zones), told)

    def finished(self) -> None:
        """Show the run's report and its picture, and say that the run is over."""
        # Drawing is slow to import, and a driver is started often: only the one that ends the run pays for it.
        from flows import report as reporting
        from flows.render.picture import as_png

        told = reporting.of_run(self._journal, self._run.id, self._catalog)
        request = Asked.again(told.run.request).request
        done, where = progress_of(request, self._journal.checkpoints(told.run.id), [])
        show_progress(self._journal, self._flowruns, self._run, done, f"{told.run.state}; {where}")
        found = f"{told.proof.steps:,} steps, " + ("none lost" if told.proof.whole else "THE HISTORY IS BROKEN")
        title = f"{told.run.state}: {money(told.cost, told.currency)}, {found}"
        self._show("report", "markdown", reporting.markdown(told, self._zones), title)
        png = as_png(reporting.picture(told, self._catalog))
        data = "data:image/png;base64," + base64.b64encode(png).decode()
        self._show("picture", "image", data, "Legs over the price curves")
        self._emit(f"nightrelay.run.{told.run.state}", {"run": told.run.id, "reason": told.run.reason})

    def _show(self, key: str, kind: str, data: Any, description: str) -> None:
        with suppress(OutsideError, NotFoundError):
            show(self._journal, self._flowruns, self._run, key, kind, data, description)

    def _emit(self, event: str, payload: Mapping[str, Any], leg: LegRow | None = None) -> None:
        related = [leg.flow_run] if leg is not None and leg.flow_run is not None else []
        with suppress(OutsideError, NotFoundError):
            self._flowruns.emit(self._clock.real(), event, self._run.flow_run, payload, related)


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
    with suppress(OutsideError, NotFoundError):
        show(journal, flowruns, run, "progress", "progress", round(100 * done, 1), text)
