"""The seam to Prefect's API for the control side: leg flow runs, the parent's own schedule, artifacts and events.

Prefect is a trigger and a view here, never the proof of anything. Every call tolerates an API that is away for minutes
(docs/decisions/0604) and raises OutsideError beyond that; no other module of flows sees Prefect's exceptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID, uuid4

import httpx
from prefect import Task
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import ArtifactCreate, ArtifactUpdate
from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError
from prefect.states import Cancelled, Cancelling, Pending, Scheduled
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

from regions.errors import Fault, NotFoundError, OutsideError, SettingsError

_T = TypeVar("_T")

PARENT_BUSY = frozenset({"RUNNING", "PENDING"})
FINAL = frozenset({"COMPLETED", "FAILED", "CRASHED", "CANCELLED"})


@dataclass(frozen=True, slots=True)
class FlowRunView:
    """What Prefect says of a flow run: `type` as in StateType (RUNNING, SCHEDULED, ...), and the state's name."""

    type: str
    name: str
    message: str
    since: datetime | None = None
    """The real instant at which it entered that state."""


class FlowRuns:
    """Calls to one Prefect server, each tried for `patience` real seconds."""

    def __init__(self, api_url: str | None, patience: float = 180.0) -> None:
        if not api_url:
            expected = "the API of a Prefect server, such as http://127.0.0.1:4200/api"
            fault = Fault("environment", None, "PREFECT_API_URL", "nothing", expected, "`nightrelay status` shows it")
            raise SettingsError("no Prefect server is named:", [fault])
        self._client = SyncPrefectClient(api_url)
        self._patience = patience

    @property
    def ui(self) -> str:
        """Return the address of the server's UI."""
        return str(self._client.api_url).removesuffix("/").removesuffix("/api")

    def view(self, flow_run: str, *, patience: float | None = None) -> FlowRunView | None:
        """Return the flow run's state, or None where Prefect does not know it. `patience` 0: ask once."""
        try:
            state = self._call(lambda: self._client.read_flow_run(UUID(flow_run)), patience).state
        except NotFoundError:
            return None
        if state is None:
            return FlowRunView("PENDING", "Pending", "")
        return FlowRunView(state.type.value, state.name or "", state.message or "", state.timestamp)

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
        """Create a leg's flow run as a child of the parent, shown in its graph under `name`; return its id.

        `key` makes it idempotent: asked again, the flow run made first is returned. It must not hold the region, since
        Prefect's keys are per flow: a driver that decides anew must meet the leg it asked for, wherever that runs.
        """

        def create() -> str:
            deployed = self._client.read_deployment_by_name(f"leg/{deployment}")
            task = Task(fn=lambda: None, name=name)
            link = self._client.create_task_run(task, UUID(parent), dynamic_key=key, name=name, state=Pending())
            made = self._client.create_flow_run_from_deployment(
                deployed.id,
                parameters=dict(parameters),
                state=Scheduled(),
                name=name,
                tags=list(tags),
                idempotency_key=key,
                parent_task_run_id=link.id,
                work_queue_name=queue,
            )
            return str(made.id)

        return self._call(create)

    def submit(self, run: str | Mapping[str, Any], *, resume: str | None = None) -> str:
        """Start a run as `prefect deployment run train/relay` does, and return its flow run's id."""

        def create() -> str:
            deployed = self._client.read_deployment_by_name("train/relay")
            parameters: dict[str, Any] = {"run": run if isinstance(run, str) else dict(run)}
            if resume is not None:
                parameters["resume"] = resume
            return str(self._client.create_flow_run_from_deployment(deployed.id, parameters=parameters).id)

        return self._call(create)

    def schedule(self, flow_run: str, when: datetime, name: str, message: str) -> None:
        """Put a flow run back to Scheduled at a real instant, under a state name people can read."""
        state: Any = Scheduled(scheduled_time=when, name=name, message=message)
        self._call(lambda: self._client.set_flow_run_state(UUID(flow_run), state, force=True))

    def cancel(self, flow_run: str) -> None:
        """Cancel a flow run: at once where it only waits, by way of Cancelling where it has a process."""
        seen = self.view(flow_run)
        if seen is None or seen.type in FINAL:
            return
        state: Any = Cancelled() if seen.type == "SCHEDULED" else Cancelling()
        self._call(lambda: self._client.set_flow_run_state(UUID(flow_run), state, force=False))

    def artifact(self, flow_run: str, key: str, kind: str, data: Any, description: str = "") -> str:
        """Create an artifact on a flow run's page and return its id. Kinds: table, markdown, progress, image."""
        wanted = ArtifactCreate(key=key, type=kind, data=data, description=description, flow_run_id=UUID(flow_run))
        return str(self._call(lambda: self._client.create_artifact(wanted)).id)

    def update_artifact(self, artifact: str, data: Any, description: str = "") -> None:
        """Replace an artifact's content in place, so that no versions pile up."""
        wanted = ArtifactUpdate(data=data, description=description)
        self._call(lambda: self._client.update_artifact(UUID(artifact), wanted))

    def emit(
        self, real: datetime, event: str, flow_run: str, payload: Mapping[str, Any], related: Iterable[str] = ()
    ) -> None:
        """Record an event on a flow run, with other flow runs it concerns."""
        body = {
            "id": str(uuid4()),
            "occurred": real.isoformat(),
            "event": event,
            "resource": {"prefect.resource.id": f"prefect.flow-run.{flow_run}"},
            "related": [
                {"prefect.resource.id": f"prefect.flow-run.{other}", "prefect.resource.role": "flow-run"}
                for other in related
            ],
            "payload": dict(payload),
        }
        self._call(lambda: self._client.request("POST", "/events", json=[body]))

    def _call(self, call: Callable[[], _T], patience: float | None = None) -> _T:
        """Make one call; go on trying while the server is away or busy."""
        limit = self._patience if patience is None else patience

        def give_up(state: RetryCallState) -> Any:
            error = state.outcome.exception() if state.outcome else None
            raise OutsideError(
                f"the Prefect server at {self._client.api_url} did not answer for {limit:.0f} s: {error}; "
                "is it running? (nightrelay status)"
            ) from error

        attempts = Retrying(
            retry=retry_if_exception(_passing),
            wait=wait_random_exponential(multiplier=0.3, max=5),
            stop=stop_after_delay(limit),
            retry_error_callback=give_up,
        )
        try:
            return attempts(call)
        except ObjectNotFound as error:
            raise NotFoundError(f"Prefect does not know it: {error}") from error
        except PrefectHTTPStatusError as error:
            raise OutsideError(f"Prefect refused: {error}") from error


def _passing(error: BaseException) -> bool:
    """Say whether an API error is worth trying again: no connection, a timeout, or the server's own fault."""
    if isinstance(error, ObjectNotFound):
        return False
    if isinstance(error, PrefectHTTPStatusError):
        return error.response.status_code in (408, 425, 429) or error.response.status_code >= 500
    return isinstance(error, httpx.TransportError)
