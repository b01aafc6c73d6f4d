"""A real stack: server, stores and workers as processes; what is deployed, paused, killed and left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import psutil
import pytest
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.actions import DeploymentUpdate, WorkPoolUpdate

from flows.commands.apply import wish_for
from infra.automations import apply_automations
from infra.deploying import apply, with_client
from infra.keeping import bearing
from infra.pools import Wanted
from infra.project import PROJECT
from infra.stack import LocalStack, StackPlan
from regions.clock import SystemClock
from regions.errors import OutsideError

pytestmark = pytest.mark.scenario

REGIONS = ("local-berlin", "local-shanghai")
SERVER_STARTS = 120.0


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("templates")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, templates: Path) -> Iterator[LocalStack]:
    plan = StackPlan(tmp_path_factory.mktemp("stack"), dict.fromkeys(REGIONS, 2), stores="s3", templates=templates)
    with LocalStack(plan, SystemClock(), os.environ, kept=True) as started:
        started.wait_for_server(SERVER_STARTS)
        yield started
    assert bearing(started.state.mark) == []


@pytest.fixture(scope="module")
def wish() -> Wanted:
    return wish_for(PROJECT / "regions" / "catalog", list(REGIONS))


def soon(true: Callable[[], bool], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.1)
    return true()


def test_apply_makes_all_and_then_nothing(stack: LocalStack, wish: Wanted) -> None:
    url = stack.state.api_url
    planned = apply(url, wish, dry_run=True)
    assert planned == apply(url, wish) and len(planned) == 15
    assert apply(url, wish) == apply(url, wish, dry_run=True) == ()
    assert len(apply_automations(url)) == 1 and apply_automations(url) == ()
    stack.wait_for_workers(SERVER_STARTS)
    assert stack.memory() < 1200 << 20


def test_what_an_operator_paused_survives_apply(stack: LocalStack, wish: Wanted) -> None:
    url = stack.state.api_url

    async def pause(client: PrefectClient) -> UUID:
        await client.update_work_pool("local-berlin", WorkPoolUpdate(is_paused=True, concurrency_limit=9))
        (queue,) = [q for q in await client.read_work_queues("local-berlin") if q.name == "core"]
        await client.update_work_queue(queue.id, is_paused=True)
        deployed = await client.read_deployment_by_name("leg/local-berlin")
        await client.update_deployment(deployed.id, DeploymentUpdate(paused=True, tags=["edited"]))
        return queue.id

    async def look(client: PrefectClient) -> tuple[bool, bool, bool, int | None]:
        pool = await client.read_work_pool("local-berlin")
        deployed = await client.read_deployment_by_name("leg/local-berlin")
        return pool.is_paused, (await client.read_work_queue(queue)).is_paused, deployed.paused, pool.concurrency_limit

    apply(url, wish)
    queue = with_client(url, pause)
    changes = apply(url, wish)
    assert {change.name for change in changes} == {"local-berlin", "leg/local-berlin"}
    assert with_client(url, look) == (True, True, True, 2)


def test_plain_prefect_deploy_agrees_with_apply(stack: LocalStack, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(PROJECT / "prefect.yaml", tmp_path)
    local = ["local-berlin", "local-los-angeles", "local-shanghai"]
    wanted = wish_for(PROJECT / "regions" / "catalog", local)
    apply(stack.state.api_url, wanted)
    done = subprocess.run(
        [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all"],
        cwd=PROJECT,
        env={**os.environ, "HOME": str(home), "PREFECT_HOME": str(home), "PREFECT_API_URL": stack.state.api_url},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [change.document() for change in apply(stack.state.api_url, wanted, dry_run=True)] == []


def test_a_killed_server_comes_back_with_all_it_knew(stack: LocalStack, wish: Wanted) -> None:
    apply(stack.state.api_url, wish)
    (server,) = [program for program in stack.status() if program.name == "server"]
    os.kill(server.pid, signal.SIGKILL)
    assert soon(lambda: not all(program.running for program in stack.status()))
    assert stack.start() == ("server",)
    stack.wait_for_server(SERVER_STARTS)
    assert apply(stack.state.api_url, wish, dry_run=True) == ()
    assert all(program.running for program in stack.status()) and stack.start() == ()


def test_one_home_one_stack(stack: LocalStack) -> None:
    with pytest.raises(OutsideError, match=r"runs in .* already"):
        LocalStack(stack.plan, SystemClock(), os.environ, kept=True).start()


def test_a_port_in_use_is_told_before_anything_starts(stack: LocalStack, tmp_path: Path) -> None:
    other = LocalStack(StackPlan(tmp_path, {}, port=stack.state.port), SystemClock(), os.environ, kept=True)
    with pytest.raises(OutsideError, match="is in use"):
        other.start()
    assert other.status() == ()


STARTER = """
import os, sys, time
from pathlib import Path
from infra.stack import LocalStack, StackPlan
from regions.clock import SystemClock
home, templates = map(Path, sys.argv[1:])
plan = StackPlan(home, {"local-berlin": 1}, stores="s3", templates=templates)
stack = LocalStack(plan, SystemClock(), os.environ, kept=True)
stack.start()
(home / "mark").write_text(stack.state.mark)
time.sleep(600)
"""


def test_a_killed_starter_leaves_nothing(tmp_path: Path, templates: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", STARTER, str(tmp_path), str(templates)]) as starter:
        assert soon(lambda: (tmp_path / "mark").exists() and (tmp_path / "mark").read_text() != "")
        mark = (tmp_path / "mark").read_text()
        assert len(bearing(mark)) == 4
        starter.kill()
        assert soon(lambda: bearing(mark) == [])


def nightrelay(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "flows.cli", *arguments],
        env={**os.environ, "NIGHTRELAY_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )


def test_up_stays_and_down_leaves_nothing(tmp_path: Path, templates: Path) -> None:
    shutil.copytree(templates, tmp_path / "templates")
    only = ("--region", "local-berlin")
    try:
        started = nightrelay(tmp_path, "up", *only)
        assert started.returncode == 0, started.stderr
        shown = nightrelay(tmp_path, "status", "--json")
        assert shown.returncode == 0 and '"running": true' in shown.stdout
        assert (tmp_path / "stores" / "local-berlin").is_dir()
        again = nightrelay(tmp_path, "up", *only, "--json")
        assert '"started": []' in again.stdout
        healthy = nightrelay(tmp_path, "doctor", "--json")
        assert healthy.returncode == 0, healthy.stdout
    finally:
        stopped = nightrelay(tmp_path, "down")
    assert stopped.returncode == 0 and "server" in stopped.stdout
    assert nightrelay(tmp_path, "status").returncode == 1
    assert not [
        process
        for process in psutil.process_iter(["cmdline"])
        if str(tmp_path) in " ".join(process.info["cmdline"] or ())
    ]
