"""The only clock. Run time (prices, windows, plans, bills) may run faster than real time; leases and retries never do.

`NIGHTRELAY_CLOCK` is `real`, or `2026-11-30T12:00Z x 3600 @ 2026-12-01T08:00:00Z`: at the real instant after `@` the
run clock shows the first instant, and then runs 3,600 times as fast. Without `@` the anchor is the moment of parsing;
whoever starts other processes passes the anchored form on (`setting`), so that all read the same clock.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from regions.errors import Fault, SettingsError

_SETTING = re.compile(r"^(?P<shown>\S+)\s+x\s+(?P<speed>[0-9.]+)(?:\s+@\s+(?P<anchor>\S+))?$")


class Clock(Protocol):
    """Run time, real time and the way between them. All instants are aware and in UTC."""

    @property
    def speed(self) -> float:
        """Run seconds per real second."""
        ...

    def now(self) -> datetime:
        """Return the run clock's instant: what windows, prices, plans, deadlines and billing use."""
        ...

    def real(self) -> datetime:
        """Return the real instant: what Prefect and records of real happenings use."""
        ...

    def monotonic(self) -> float:
        """Return real seconds that never jump: what leases, heartbeats, grace and retries use."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let real seconds pass (a virtual clock passes them at once)."""
        ...

    def to_real(self, instant: datetime) -> datetime:
        """Return the real instant at which the run clock shows `instant`."""
        ...

    def to_run(self, instant: datetime) -> datetime:
        """Return what the run clock shows at the real `instant`."""
        ...


@dataclass(frozen=True, slots=True)
class SystemClock:
    """The machine's clock; run time starts as `shown` at the real instant `anchor` and runs `speed` times as fast."""

    anchor: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    shown: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    speed: float = 1.0

    def now(self) -> datetime:
        """Return the run clock's instant."""
        return self.to_run(self.real())

    def real(self) -> datetime:
        """Return the real instant."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return real monotonic seconds."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Sleep real seconds."""
        time.sleep(max(0.0, seconds))

    def to_real(self, instant: datetime) -> datetime:
        """Return the real instant at which the run clock shows `instant`."""
        return self.anchor + (instant.astimezone(UTC) - self.shown) / self.speed

    def to_run(self, instant: datetime) -> datetime:
        """Return what the run clock shows at the real `instant`."""
        return self.shown + (instant.astimezone(UTC) - self.anchor) * self.speed

    def setting(self) -> str:
        """Return the NIGHTRELAY_CLOCK text that gives this very clock in another process."""
        if self == SystemClock():
            return "real"
        return f"{_text(self.shown)} x {self.speed:g} @ {_text(self.anchor)}"


class ManualClock:
    """A clock that moves only when told: for tests and simulation."""

    def __init__(self, start: datetime, speed: float = 1.0) -> None:
        self._start = start.astimezone(UTC)
        self._passed = 0.0
        self.speed = speed

    def advance(self, seconds: float) -> None:
        """Let real seconds pass."""
        self._passed += seconds

    def now(self) -> datetime:
        """Return the run clock's instant."""
        return self._start + timedelta(seconds=self._passed * self.speed)

    def real(self) -> datetime:
        """Return the real instant."""
        return self._start + timedelta(seconds=self._passed)

    def monotonic(self) -> float:
        """Return the real seconds passed."""
        return self._passed

    def sleep(self, seconds: float) -> None:
        """Pass the seconds at once."""
        self.advance(max(0.0, seconds))

    def to_real(self, instant: datetime) -> datetime:
        """Return the real instant at which the run clock shows `instant`."""
        return self._start + (instant.astimezone(UTC) - self._start) / self.speed

    def to_run(self, instant: datetime) -> datetime:
        """Return what the run clock shows at the real `instant`."""
        return self._start + (instant.astimezone(UTC) - self._start) * self.speed


def parse_clock(text: str) -> SystemClock:
    """Return the clock a NIGHTRELAY_CLOCK text asks for; SettingsError names what is wrong with it."""
    if text.strip() in ("", "real"):
        return SystemClock()
    match = _SETTING.match(text.strip())
    if match is None:
        raise _refused(text, "`real` or `<instant> x <speed> [@ <real instant>]`")
    speed = float(match["speed"]) if match["speed"].replace(".", "", 1).isdigit() else 0.0
    if not 0 < speed <= 1e6:
        raise _refused(text, "a speed above 0 and up to 1,000,000")
    anchor = _instant(text, match["anchor"]) if match["anchor"] else datetime.now(UTC)
    return SystemClock(anchor=anchor, shown=_instant(text, match["shown"]), speed=speed)


def clock_from(environ: Mapping[str, str]) -> SystemClock:
    """Return the clock of a process with these environment variables."""
    return parse_clock(environ.get("NIGHTRELAY_CLOCK", "real"))


def _instant(setting: str, text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise _refused(setting, f"an ISO 8601 instant, not {text!r}") from None
    if instant.tzinfo is None:
        raise _refused(setting, f"an instant with its zone, such as {text}Z")
    return instant.astimezone(UTC)


def _text(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _refused(got: str, expected: str) -> SettingsError:
    fault = Fault("environment", None, "NIGHTRELAY_CLOCK", repr(got), expected)
    return SettingsError("NIGHTRELAY_CLOCK cannot be read:", [fault])
