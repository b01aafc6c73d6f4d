"""Every error of Nightrelay, grouped by what the catcher does next.

    NightrelayError(message, kind, context)
    ├── InputError (ValueError)           mend the file or parameter; never retried; lists all faults
    │   ├── RegionFileError
    │   ├── RequestError
    │   └── SettingsError
    ├── PlanError                         nothing fits; retried only with new facts
    ├── TransientError(retry_after)       try again, by policy
    │   ├── StoreUnavailable
    │   ├── NoCapacity
    │   └── LaunchTimeout
    ├── NotReadyError(ready_at)           wait until then; do not retry before
    ├── ConflictError                     somebody else holds or committed it: read again, then decide
    │   └── FencedError                   a newer term stands: this leg must end
    ├── NotFoundError (FileNotFoundError)
    ├── IntegrityError                    a digest, count or size is wrong: quarantine, use the last good one
    ├── CapabilityError                   the store cannot keep a promise that is needed: refused by name
    ├── OutsideError                      a tool, port, disk or service outside failed; a person must act
    └── InternalError                     our own bug

`kind` is a stable kebab-case code, append-only: alerts and tests may rely on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong in one place: what was got, what was expected, what to do."""

    file: str
    line: int | None
    field: str
    got: str
    expected: str
    hint: str = ""

    def __str__(self) -> str:
        """Render as `file:line: field: got X, expected Y (hint)`."""
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        hint = f" ({self.hint})" if self.hint else ""
        return f"{where}: {self.field}: got {self.got}, expected {self.expected}{hint}"

    def document(self) -> dict[str, object]:
        """Return the fault as `regions check --json` prints it."""
        return asdict(self)


class NightrelayError(Exception):
    """Base of all errors raised on purpose. `context` holds what a log line or report needs, never a secret."""

    kind = "nightrelay"

    def __init__(self, message: str, *, kind: str | None = None, **context: object) -> None:
        super().__init__(message)
        self.message = message
        if kind is not None:
            self.kind = kind
        self.context: Mapping[str, object] = context


class InputError(NightrelayError, ValueError):
    """A file or parameter is wrong. Carries every fault found, not the first."""

    kind = "input"

    def __init__(self, message: str, faults: Iterable[Fault] = (), *, kind: str | None = None, **context: object):
        self.faults = tuple(faults)
        lines = "".join(f"\n  {fault}" for fault in self.faults)
        super().__init__(message + lines, kind=kind, **context)


class RegionFileError(InputError):
    """A file of the catalog (region, links, fx, policy) is wrong."""

    kind = "region-file"


class RequestError(InputError):
    """A run file or a submission's parameters are wrong."""

    kind = "request"


class SettingsError(InputError):
    """An environment setting is wrong."""

    kind = "settings"


class PlanError(NightrelayError):
    """Nothing fits the request as it stands."""

    kind = "plan"


class TransientError(NightrelayError):
    """Worth trying again. `retry_after` (seconds) is the other side's wish, if it gave one."""

    kind = "transient"

    def __init__(self, message: str, *, retry_after: float | None = None, kind: str | None = None, **context: object):
        super().__init__(message, kind=kind, **context)
        self.retry_after = retry_after


class StoreUnavailable(TransientError):
    """An object store did not answer, or answered that it is busy."""

    kind = "store-unavailable"


class NoCapacity(TransientError):
    """A region has no machine of the asked kind now."""

    kind = "no-capacity"


class LaunchTimeout(TransientError):
    """A leg was asked for and did not start in time."""

    kind = "launch-timeout"


class NotReadyError(NightrelayError):
    """Not yet; waiting is right, retrying is not. `ready_at` is an aware instant, or None where unknown."""

    kind = "not-ready"

    def __init__(
        self, message: str, *, ready_at: datetime | None = None, kind: str | None = None, **context: object
    ) -> None:
        super().__init__(message, kind=kind, **context)
        self.ready_at = ready_at


class ConflictError(NightrelayError):
    """Somebody else holds it or committed it first."""

    kind = "conflict"


class FencedError(ConflictError):
    """A newer term stands; what this leg wanted to write no longer counts."""

    kind = "fenced"


class NotFoundError(NightrelayError, FileNotFoundError):
    """The named thing does not exist."""

    kind = "not-found"


class IntegrityError(NightrelayError):
    """Bytes are not what their record says."""

    kind = "integrity"


class CapabilityError(NightrelayError):
    """A store or platform cannot keep a promise that this step needs."""

    kind = "capability"


class OutsideError(NightrelayError):
    """Something outside failed: a port in use, a missing tool, a full disk, a server that will not start."""

    kind = "outside"


class InternalError(NightrelayError):
    """Our own mistake."""

    kind = "internal"
