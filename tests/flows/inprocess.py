"""A relay without Prefect: the same driver and the same legs, each leg a thread of this process.

It stands for the seam `flows.flowruns.FlowRuns` only; journal, stores, planner, legs and trainers are the real ones.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from flows.flowruns import FlowRunView
from flows.legwork import Legwork
from flows.messages import Order, Place, order_key
from flows.sites import open_place, read_message
from regions.clock import Clock


class ThreadLegs:
    """Creates legs as threads; remembers what was shown and said."""

    def __init__(self, clock: Clock, work: Path) -> None:
        self._clock = clock
        self._work = work
        self._threads: dict[str, threading.Thread] = {}
        self._states: dict[str, str] = {}
        self.events: list[tuple[str, Mapping[str, Any]]] = []
        self.artifacts: dict[str, Any] = {}
        self.refuse_regions: set[str] = set()

    ui = "http://127.0.0.1/none"

    def view(self, flow_run: str, *, patience: float | None = None) -> FlowRunView | None:
        return FlowRunView(self._states.get(flow_run, "RUNNING"), "", "")

    def create_leg(
        self,
        parent: str,
        deployment: str,
        name: str,
        parameters: Mapping[str, Any],
        *,
        tags: Iterable[str],
        queue: str,
        key: str,
    ) -> str:
        if key not in self._threads:
            self._threads[key] = threading.Thread(target=self._leg, args=(key, dict(parameters)), daemon=True)
            self._states[key] = "RUNNING"
            if deployment not in self.refuse_regions:
                self._threads[key].start()
        return key

    def _leg(self, key: str, parameters: dict[str, Any]) -> None:
        place = Place.model_validate(parameters["store"])
        store = open_place(place)
        order = read_message(store, order_key(parameters["run"], parameters["number"]), Order)
        assert order is not None
        Legwork(store, place, order, self._clock, self._work / place.region).run()
        self._states[key] = "COMPLETED"

    def schedule(self, flow_run: str, when: datetime, name: str, message: str) -> None: ...

    def cancel(self, flow_run: str) -> None:
        self._states[flow_run] = "CANCELLED"

    def artifact(self, flow_run: str, key: str, kind: str, data: Any, description: str = "") -> str:
        self.artifacts[key] = data
        return key

    def update_artifact(self, artifact: str, data: Any, description: str = "") -> None:
        self.artifacts[artifact] = data

    def emit(
        self, real: datetime, event: str, flow_run: str, payload: Mapping[str, Any], related: Iterable[str] = ()
    ) -> None:
        self.events.append((event, payload))
