"""Checkpoints: folders of files made real by one small record, stored as content-addressed chunks.

Not here: which checkpoint counts (the journal accepts commits), and what a trainer writes into its files.
"""

from storage.checkpoints.folder import content_of
from storage.checkpoints.reading import restore, verify
from storage.checkpoints.record import FileEntry, Record
from storage.checkpoints.store import Passed, Survey, commit, newest, records, survey

__all__ = [
    "FileEntry",
    "Passed",
    "Record",
    "Survey",
    "commit",
    "content_of",
    "newest",
    "records",
    "restore",
    "survey",
    "verify",
]
