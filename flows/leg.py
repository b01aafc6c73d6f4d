"""The child flow: one leg in one region. It needs its region's store and nothing else of the control side.

Prefect starts it, shows it and may cancel it. What it is to do stands in its order, what it did stands in its report;
its state in Prefect only repeats the report (docs/decisions/0603).
"""

from __future__ import annotations

import os
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.exceptions import TerminationSignal
from prefect.states import Completed, Failed

from flows.legwork import Legwork
from flows.messages import Order, Place, Report, order_key, report_key
from flows.settings import Settings
from flows.sites import open_place, read_message
from regions.errors import NotFoundError


@flow(name="leg", flow_run_name="{stage} / leg {number} / {region}", persist_result=False, validate_parameters=False)
def leg(run: str, number: int, stage: str, region: str, store: dict[str, Any]) -> State[None]:
    """Do what leg `number` of `run` is ordered to do in `region`; `store` says where its store is: a Place."""
    settings = Settings.read(os.environ)
    place = Place.model_validate(store)
    opened = open_place(place)
    report = read_message(opened, report_key(run, number), Report)
    if report is None:
        order = read_message(opened, order_key(run, number), Order)
        if order is None:
            raise NotFoundError(f"{place.url} holds no order for leg {number} of {run}: {order_key(run, number)}")
        work = Legwork(opened, place, order, settings.clock, settings.work)
        try:
            report = work.run()
        except (TerminationSignal, KeyboardInterrupt):
            # Cancelled in the UI or by the worker: Prefect kills this process 30 s from now, so save, say so, and go.
            work.leave("its flow run was cancelled")
            raise
    return _state(report)


def _state(report: Report) -> State[None]:
    """Repeat the report as a state people can read."""
    text = f"{report.reason} (steps {report.from_step} to {report.to_step}, ended {report.ended_at:%Y-%m-%d %H:%M}Z)"
    if report.outcome == "failed":
        return Failed(message=text)
    name = "".join(word.capitalize() for word in report.outcome.split("_"))
    return Completed(name=name, message=text)
