"""Starts, watches and stops a local stack. Everything starts at once and finds the rest by waiting for it.

Kept: the stack goes with the process that started it, however that dies (infra.keeping); the demo and the tests.
Detached: it stays until `down`; daily use. Started again, only what is missing starts.
"""

from __future__ import annotations

import json
import secrets
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import psutil

from infra.keeping import Keeping, Program, bearing
from infra.launch.outcome import last_lines
from infra.stack.database import ServerDatabase
from infra.stack.environment import Site, control_environment, write_side
from infra.stack.home import locked, make_home
from infra.stack.memory import tree_bytes
from infra.stack.plan import CONTROL, SERVER, StackPlan
from infra.stack.ports import ask, claim_port, free_port, listening
from infra.stack.programs import programs_of, sites_of, worker_of
from infra.stack.state import Running, StackState, read_state, running, write_state
from regions.clock import Clock
from regions.errors import OutsideError

_EVERY = 0.1
_MEND_EVERY = 5.0
"""Real seconds between two restarts."""


@dataclass(frozen=True, slots=True)
class Status:
    """One program as it stands. `bytes` is its tree's share of memory (PSS), 0 where it does not run."""

    name: str
    running: bool
    pid: int
    bytes: int
    log: str

    def document(self) -> dict[str, object]:
        """Return it as `status --json` prints it."""
        return {name: getattr(self, name) for name in ("name", "running", "pid", "bytes", "log")}


class LocalStack:
    """One stack in one home folder."""

    def __init__(self, plan: StackPlan, clock: Clock, environ: Mapping[str, str], *, kept: bool) -> None:
        self.plan = plan
        self._clock = clock
        self._environ = environ
        self._kept = kept
        self._keeping: Keeping | None = None
        self._mend_again = 0.0
        self._database = ServerDatabase(
            plan.layout.side(SERVER), plan.templates if plan.templates is not None else plan.home / "templates"
        )
        self.state = read_state(plan.layout.state) or StackState("", "", kept, 0)

    def __enter__(self) -> Self:
        """Start it."""
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it, whatever happened."""
        self.stop()

    @property
    def sites(self) -> dict[str, Site]:
        """Where each region's store is."""
        return sites_of(self.plan, self.state)

    @property
    def environment(self) -> dict[str, str]:
        """The control side's environment, for whoever submits runs and reads the journal."""
        return control_environment(self._environ, self.plan, self.state.api_url, self.sites)

    def start(self) -> tuple[str, ...]:
        """Start what does not run and return its names; it is ready after `wait_for_server` and `wait_for_workers`."""
        layout = self.plan.layout
        make_home(self.plan)
        with locked(self.plan):
            self._claim()
            layout.sites.write_text(json.dumps({name: site.document() for name, site in self.sites.items()}) + "\n")
            self._write_sides()
            return self._start_missing(self._database.prepare())

    def mend(self) -> tuple[str, ...]:
        """Start again what has died since `start`, as a supervisor does, and return its names.

        What dies again at once is not started more often than every few seconds.
        """
        now = self._clock.monotonic()
        if now < self._mend_again:
            return ()
        started = self._start_missing(migrate=False)
        if started:
            self._mend_again = now + _MEND_EVERY
        return started

    def _start_missing(self, migrate: bool) -> tuple[str, ...]:
        missing = [
            program
            for program in programs_of(self.plan, self.state, self._environ, migrate=migrate)
            if self._running(program.name) is None
        ]
        for program in missing:
            self._start(program)
        return tuple(program.name for program in missing)

    def wait_for_server(self, seconds: float = 60.0) -> None:
        """Wait until server and stores answer; OutsideError with the last words of the one that failed."""
        deadline = self._clock.monotonic() + seconds
        ports = {f"store-{region}": port for region, port in self.state.store_ports.items()}
        while True:
            self._refuse_dead((SERVER, *ports))
            if ask(self.state.port, "/api/health") is True and all(listening(port) for port in ports.values()):
                break
            if self._clock.monotonic() > deadline:
                raise OutsideError(
                    f"the Prefect server did not answer within {seconds:.0f} s{self._last_words(SERVER)}"
                )
            self._clock.sleep(_EVERY)
        self._database.keep()

    def wait_for_workers(self, seconds: float = 60.0) -> None:
        """Wait until every pool has a worker that polls it; the pools must have been made (infra.pools)."""
        deadline = self._clock.monotonic() + seconds
        waiting = [CONTROL, *self.plan.regions]
        while waiting:
            self._refuse_dead([worker_of(pool) for pool in waiting])
            waiting = [pool for pool in waiting if not self._online(pool)]
            if waiting and self._clock.monotonic() > deadline:
                names = ", ".join(waiting)
                words = self._last_words(worker_of(waiting[0]))
                raise OutsideError(f"no worker took up work within {seconds:.0f} s in: {names}{words}")
            if waiting:
                self._clock.sleep(_EVERY)

    def status(self) -> tuple[Status, ...]:
        """Return every program as it stands now."""
        return tuple(self._status(program) for program in self.state.programs)

    def stop(self) -> None:
        """Stop everything, down to the last trainer: what decides first, then who works, the server and stores last."""
        if not self.state.mark:
            return
        if self._keeping is not None:
            self._keeping.end()
            self._keeping = None
        elif not self.state.kept:
            names = self._names()
            last = [name for name in names if name == SERVER or name.startswith("store-")]
            workers = [name for name in names if name.startswith("worker-")]
            watching = [name for name in names if name not in (*last, *workers)]
            self._end([*watching, *workers])
            self._end(last)
        for process in bearing(self.state.mark):
            with suppress(psutil.Error):
                process.kill()
        self.plan.layout.state.unlink(missing_ok=True)

    def memory(self) -> int:
        """Return the bytes (PSS) of all its processes, down to the trainers."""
        return sum(status.bytes for status in self.status())

    # Starting

    def _claim(self) -> None:
        """Fix ports and mark, and write them before anything starts."""
        alive = [program for program in self.state.programs if program.process is not None]
        if alive and self._kept and self._keeping is None:
            raise OutsideError(
                f"a stack runs in {self.plan.home} already: stop it (nightrelay down), or set another NIGHTRELAY_HOME",
                kind="stack-runs",
            )
        if not alive:
            self.stop()
            wanted = self.plan.port
            self.state = StackState(
                secrets.token_hex(8),
                secrets.token_hex(16),
                self._kept,
                claim_port(wanted),
                {region: free_port() for region in self.plan.regions} if self.plan.stores == "s3" else {},
                self.plan.stores,
            )
        elif self.plan.port not in (None, self.state.port):
            raise OutsideError(
                f"the stack runs on port {self.state.port}: stop it first (nightrelay down) to move it",
                kind="stack-runs",
            )
        write_state(self.plan.layout.state, self.state)

    def _write_sides(self) -> None:
        layout, sites = self.plan.layout, self.sites
        write_side(layout.side(SERVER), {})
        write_side(layout.side(CONTROL), {region: site.owner for region, site in sites.items() if site.owner})
        for region in self.plan.regions:
            keys = {name: site.owner if name == region else site.reader for name, site in sites.items()}
            write_side(layout.side(region), {name: key for name, key in keys.items() if key})
            if self.plan.stores == "files":
                layout.store(region).mkdir(parents=True, exist_ok=True)

    def _start(self, program: Program) -> None:
        if self._kept:
            if self._keeping is None:
                self._keeping = Keeping(self._clock, self.state.mark)
            pid = self._keeping.start(program)
        else:
            pid = _detach(program)
        self.state = self.state.with_program(running(program.name, pid))
        write_state(self.plan.layout.state, self.state)

    # Watching

    def _names(self) -> list[str]:
        return [program.name for program in self.state.programs]

    def _running(self, name: str) -> psutil.Process | None:
        return next((program.process for program in self.state.programs if program.name == name), None)

    def _online(self, pool: str) -> bool:
        found = ask(self.state.port, f"/api/work_pools/{pool}/workers/filter", {})
        pid = next((program.pid for program in self.state.programs if program.name == worker_of(pool)), 0)
        workers = found if isinstance(found, list) else []
        return any(worker["name"] == f"{pool}-{pid}" and worker["status"] == "ONLINE" for worker in workers)

    def _refuse_dead(self, names: Sequence[str]) -> None:
        for name in names:
            if self._running(name) is None:
                raise OutsideError(f"{name} ended as it started{self._last_words(name)}")

    def _last_words(self, name: str) -> str:
        log = self.plan.layout.log(name)
        lines = [line.strip() for line in last_lines(log).splitlines() if line.strip()]
        return f": {lines[-1]} (all of it: {log})" if lines else f" (log: {log})"

    def _status(self, program: Running) -> Status:
        process = program.process
        log = str(self.plan.layout.log(program.name))
        if process is None:
            return Status(program.name, False, program.pid, 0, log)
        return Status(program.name, True, program.pid, tree_bytes(process), log)

    # Stopping

    def _end(self, names: Sequence[str]) -> None:
        """Ask a group to leave, one right after the other; kill who stays."""
        processes = [process for name in names if (process := self._running(name)) is not None]
        for process in processes:
            with suppress(psutil.Error):
                process.send_signal(signal.SIGTERM)
        _, stubborn = psutil.wait_procs(processes, timeout=8)
        for process in stubborn:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(stubborn, timeout=5)


def _detach(program: Program) -> int:
    program.log.parent.mkdir(parents=True, exist_ok=True)
    with program.log.open("ab") as log:
        process = subprocess.Popen(
            program.argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=dict(program.env),
            cwd=program.cwd,
            start_new_session=True,
        )
    return process.pid
