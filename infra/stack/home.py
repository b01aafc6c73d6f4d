"""A stack's home folder: made, checked for room, and locked while somebody starts the stack."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from infra.stack.plan import StackPlan
from regions.errors import OutsideError

_LEAST_FREE = 200 << 20
"""Bytes that must be free where the stack's files lie."""


def make_home(plan: StackPlan) -> None:
    """Make the folder; OutsideError where it cannot be, or where the disk is full."""
    try:
        plan.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        free = shutil.disk_usage(plan.home).free
    except OSError as error:
        raise OutsideError(f"{plan.home} cannot be made or used: {error.strerror}; set NIGHTRELAY_HOME") from error
    if free < _LEAST_FREE:
        raise OutsideError(
            f"only {free >> 20} MiB are free at {plan.home}, {_LEAST_FREE >> 20} MiB are needed: "
            "make room, or set NIGHTRELAY_HOME",
            kind="disk-full",
        )


@contextmanager
def locked(plan: StackPlan) -> Iterator[None]:
    """Keep other commands from starting the same stack meanwhile; OutsideError where one does."""
    with plan.layout.lock.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutsideError(f"another command starts or stops the stack in {plan.home}: wait for it") from None
        yield
