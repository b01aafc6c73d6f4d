"""Automations as code: what a Prefect server is to do by itself. So far one: a flow run whose heart stops has crashed.

Nothing built in notices a flow run whose process is gone together with its worker; it would stay Running, and hold its
pool's slot, for ever. The beat comes every 30 s (PREFECT_FLOWS_HEARTBEAT_FREQUENCY), three may be missed. A process
that is merely cut off looks the same: terms fence what it still writes.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import StateType
from prefect.events import AutomationCore, EventTrigger, Posture
from prefect.events.actions import ChangeFlowRunState
from prefect.events.schemas.automations import Automation

from infra.deploying import with_client

BEAT = "prefect.flow-run.heartbeat"
SILENCE = timedelta(seconds=90)
ANY_STATE = "prefect.flow-run.*"
"""The next beat or any change of state ends the wait. States cannot be listed: their events bear the names people read,
such as WaitingForWindow, under which a run that sleeps has left its process on purpose."""


def zombies() -> AutomationCore:
    """Return the automation that ends flow runs whose heart has stopped."""
    return AutomationCore(
        name="nightrelay: a silent flow run has crashed",
        description="Sets a flow run to Crashed when its heartbeat has been missing for 90 s.",
        trigger=EventTrigger(
            posture=Posture.Proactive,
            after={BEAT},
            expect={ANY_STATE},
            match={"prefect.resource.id": "prefect.flow-run.*"},
            for_each={"prefect.resource.id"},
            within=SILENCE,
        ),
        actions=[
            ChangeFlowRunState(
                state=StateType.CRASHED, name="Crashed", message="its heartbeat has been missing for 90 s"
            )
        ],
    )


def apply_automations(api_url: str, *, dry_run: bool = False) -> tuple[str, ...]:
    """Make a server have our automations and return the names of those created or changed. A disabled one stays so."""

    async def work(client: PrefectClient) -> tuple[str, ...]:
        changed = []
        for wanted in (zombies(),):
            here = await client.read_automations_by_name(wanted.name)
            if here and all(_same(wanted, found) for found in here):
                continue
            changed.append(wanted.name)
            if dry_run:
                continue
            for found in here:
                await client.update_automation(found.id, wanted.model_copy(update={"enabled": found.enabled}))
            if not here:
                await client.create_automation(wanted)
        return tuple(changed)

    return with_client(api_url, work)


def _same(wanted: AutomationCore, found: Automation) -> bool:
    def plain(automation: AutomationCore) -> dict[str, Any]:
        return automation.model_dump(mode="json", include={"description", "trigger", "actions"}, exclude_none=True)

    def comparable(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: comparable(part) for name, part in value.items() if name not in ("id", "type")}
        return sorted(map(str, value)) if isinstance(value, list) else value

    return bool(comparable(plain(wanted)) == comparable(plain(found)))
