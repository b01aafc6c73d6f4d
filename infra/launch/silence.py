"""When a trainer's silence means that it hangs: each phase has its limit, and training is measured by its own pace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from infra.launch.progress import Progress


@dataclass(frozen=True, slots=True)
class SilenceLimits:
    """Real seconds without a word after which a trainer is taken to hang, by phase.

    Once its pace is known, `train` allows `paces` times that instead, but never less than `floor`.
    """

    phases: Mapping[str, float] = field(
        default_factory=lambda: {
            "load": 1200.0,
            "compile": 3600.0,
            "warmup": 1200.0,
            "train": 900.0,
            "eval": 3600.0,
            "save": 1800.0,
        }
    )
    paces: float = 20.0
    floor: float = 60.0
    mute: float = 3600.0
    """For a trainer that has never said anything by the contract, and prints and saves nothing either."""


class SilenceWatch:
    """Notices that a trainer has fallen silent. Instants are monotonic seconds."""

    def __init__(self, limits: SilenceLimits, started: float) -> None:
        self._limits = limits
        self._last = started
        self._phase = "load"
        self._heard = False
        self._step: int | None = None
        self._stepped = started
        self._pace: float | None = None

    def hear(self, progress: Progress, now: float) -> None:
        """Take in a word of progress."""
        self._heard, self._last = True, now
        step = progress.step
        self._phase = progress.phase or ("train" if step is not None else self._phase)
        if step is None:
            return
        if self._step is not None and step > self._step:
            took = (now - self._stepped) / (step - self._step)
            self._pace = took if self._pace is None else 0.8 * self._pace + 0.2 * took
        self._step, self._stepped = step, now

    def sign_of_life(self, now: float) -> None:
        """Take in that it printed or saved something: enough for a trainer that says nothing else."""
        self._last = now

    def limit(self) -> float:
        """Return how long it may be silent now."""
        if not self._heard:
            return self._limits.mute
        if self._phase == "train" and self._pace is not None:
            return max(self._limits.floor, self._limits.paces * self._pace)
        return self._limits.phases[self._phase]

    def silent(self, now: float) -> str | None:
        """Return why it is taken to hang, or None while it is not."""
        passed, limit = now - self._last, self.limit()
        if passed <= limit:
            return None
        where = f"phase {self._phase}" if self._heard else "its start"
        return f"silent for {passed:.0f} s in {where}, where {limit:.0f} s are allowed"
