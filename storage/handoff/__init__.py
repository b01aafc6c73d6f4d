"""Handoff: bringing a set of objects to another store, verified, resumable, documents last.

Not here: what the objects mean, where to go next, and what it costs beyond the fare given. Runs where the target is
(pull), so that what is read back to verify never crosses a border.
"""

from storage.handoff.engine import handoff
from storage.handoff.ledger import sweep
from storage.handoff.model import Document, Fare, Item, Progress, Receipt, Survey
from storage.handoff.slices import handoff_slice, slice_of
from storage.handoff.survey import survey

__all__ = [
    "Document",
    "Fare",
    "Item",
    "Progress",
    "Receipt",
    "Survey",
    "handoff",
    "handoff_slice",
    "slice_of",
    "survey",
    "sweep",
]
