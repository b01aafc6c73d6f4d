"""The sweep: one small resident process of the control side that notices what happens while no driver is awake.

It reads each live leg's heartbeat and report from its region's store, keeps the journal's view of them fresh, wakes the
parent flow run when something is to be decided, brings back a parent that died, and carries cancellations out, since a
cancelled parent cannot. It decides nothing else. `python -m flows.sweep` runs it until SIGTERM.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from flows import relay
from flows.absorb import live_legs
from flows.catalogs import current
from flows.driver import Driver
from flows.flowruns import FlowRuns, FlowRunView
from flows.history import progress_of
from flows.journal import Journal
from flows.requests import Asked
from flows.rows import RunRow
from flows.settings import Settings
from flows.sites import Sites
from flows.story import show_progress
from regions.errors import FencedError, NightrelayError

EVERY = 1.0
"""Real seconds between two looks."""
TELL_EVERY = 15.0
"""Real seconds between two changes of a run's progress artifact: the server keeps an event for each."""
DRIVER_SILENCE = timedelta(seconds=60)
"""A parent that Prefect calls running and that has not touched the journal for so long has died."""


class Sweep:
    """Looks after every live run of one journal."""

    def __init__(self, settings: Settings, journal: Journal, flowruns: FlowRuns, say: Callable[[str], None]) -> None:
        self._settings = settings
        self._journal = journal
        self._flowruns = flowruns
        self._say = say
        self._clock = settings.clock
        self._limits = relay.Limits()
        self._ending: dict[str, Driver] = {}
        self._told: dict[str, tuple[str, float]] = {}

    def turn(self) -> None:
        """Look at every live run once. One run's trouble does not keep the others waiting."""
        for run in self._journal.runs(live=True):
            try:
                self._look(run)
            except NightrelayError as error:
                self._say(f"{run.id}: {error}")

    def _look(self, run: RunRow) -> None:
        sites = Sites(self._settings, current(self._journal, self._settings.catalog, self._clock))
        legs = list(live_legs(self._journal, sites, self._flowruns, run.id).values())
        parent = self._flowruns.view(run.flow_run)
        if parent is None or parent.type in ("CANCELLED", "CANCELLING"):
            self._journal.ask_cancel(run.id)
        if run.cancel or parent is None or parent.type == "CANCELLED":
            self._end(run)
            return
        self._tell(run, legs)
        if why := attention(run, legs, parent, self._clock.real(), self._limits):
            self._say(f"{run.id}: waking its parent: {why}")
            self._flowruns.schedule(run.flow_run, self._clock.real(), "Waking", why)

    def _tell(self, run: RunRow, legs: list[relay.LegView]) -> None:
        """Keep the progress artifact fresh, where something has changed."""
        request = Asked.again(run.request).request
        done, text = progress_of(request, self._journal.checkpoints(run.id), legs)
        told, at = self._told.get(run.id, ("", -TELL_EVERY))
        if text != told and self._clock.monotonic() - at >= TELL_EVERY:
            self._told[run.id] = (text, self._clock.monotonic())
            show_progress(self._journal, self._flowruns, run, done, text)

    def _end(self, run: RunRow) -> None:
        """Drive a cancelled run to its end; FencedError: somebody else does it."""
        if run.id not in self._ending:
            self._say(f"{run.id}: ending it, as asked")
            self._ending[run.id] = Driver(self._journal, run, self._settings, self._flowruns)
        try:
            self._ending[run.id].turn()
        except FencedError:
            del self._ending[run.id]


def attention(
    run: RunRow, legs: list[relay.LegView], parent: FlowRunView, real: datetime, limits: relay.Limits
) -> str | None:
    """Return why the run's parent must be woken now, or None. Pure."""
    if parent.type in ("CRASHED", "FAILED", "COMPLETED"):
        return f"its parent is {parent.name} and the run is not over"
    if parent.type == "RUNNING":
        # It has only just been started where Prefect's state is newer: its driver has not claimed the run yet.
        seen = max(run.driver_seen or run.submitted_real, parent.since or run.submitted_real)
        return "its parent has fallen silent" if real - seen > DRIVER_SILENCE else None
    if parent.type != "SCHEDULED" or parent.name in ("Waking", "Scheduled", "Late", "AwaitingRetry"):
        return None
    if ended := relay.endings(legs, real, limits):
        first = ended[0]
        return f"leg {first.number} ended ({first.outcome}: {first.reason})"
    return None


def main() -> None:
    """Sweep until SIGTERM or SIGINT."""
    settings = Settings.read(os.environ)
    stop = threading.Event()
    for wanted in (signal.SIGTERM, signal.SIGINT):
        signal.signal(wanted, lambda *_: stop.set())

    def say(text: str) -> None:
        sys.stderr.write(f"{settings.clock.real():%H:%M:%S} sweep: {text}\n")
        sys.stderr.flush()

    sweep = Sweep(settings, Journal.open(settings.database_url), FlowRuns(settings.api_url, patience=5), say)
    while not stop.wait(EVERY):
        sweep.turn()


if __name__ == "__main__":
    main()
