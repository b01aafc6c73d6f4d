"""Small runs for tests of prices: one stage on one GPU, whose work is counted in hours."""

from __future__ import annotations

from regions.model import Catalog
from regions.planning.problem import Plan, Situation
from regions.planning.request import parse_run
from regions.planning.single import plan
from tests.regions.files import at

RUN = """\
id: case
margin: 0 s
within: {within}
regions: {{home: {home}}}
checkpoint: {{size: 0 B}}
stages:
  - id: train
    kind: pretrain
    command: [python, train.py]
    work: {{amount: {minutes}, unit: minutes}}
    accelerators: {{GPU: {{rate: 60}}}}
    {only}
"""


def planned(
    catalog: Catalog, now: str, minutes: int, *, only: str | None = None, within: str = "10 d", home: str
) -> Plan:
    """Return the plan of a stage of so many minutes; `only` names the one window it may run in."""
    wish = f"windows: [{only}]" if only else ""
    text = RUN.format(within=within, home=home, minutes=minutes, only=wish)
    return plan(parse_run(text, "case.yaml"), catalog, Situation(), at(now))
