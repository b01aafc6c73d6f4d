"""From what a leg did to what it costs: pure, exact, split where the price changes, billed once.

Rent runs from the leg's first sign of life to its last (a report, or where it fell silent its last heartbeat, marked as
estimated). Prices are those of the catalog the run was submitted with, whatever the files say later.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from flows.messages import Report
from flows.rows import LegRow, RunRow
from regions.load import Catalog
from regions.money import Money
from regions.offers import charge_lines, price_of_transfer

HOUR = timedelta(hours=1)
