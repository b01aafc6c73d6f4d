"""The pull step of every deployment: enter the folder that holds the product, wherever it is on this machine.

So no deployment names a path of the machine it was made on, and a worker needs nothing but an installed Nightrelay.
"""

from __future__ import annotations

import os
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
"""The folder that holds flows, infra and the rest: a checkout, or site-packages."""


def enter() -> dict[str, str]:
    """Make the project's folder the current one; Prefect loads the flow's entry point from there."""
    os.chdir(PROJECT)
    return {"directory": str(PROJECT)}
