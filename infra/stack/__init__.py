"""The local stack: a Prefect server, one object store and one worker per region, and what watches over them.

Processes of this machine, each with its own environment built from a whitelist; nothing here needs root or a container.
`LocalStack` starts and stops them, `StackPlan` says what there is to start. Pools and deployments are infra.pools.
"""

from infra.stack.local import LocalStack, Status
from infra.stack.plan import Extra, StackPlan

__all__ = ["Extra", "LocalStack", "StackPlan", "Status"]
