"""The Prefect server's SQLite file: a migrated empty one is kept, so that later stacks need not migrate.

Migrating takes some 3 s, copying 20 ms; looking whether migration is needed takes 1 s. A file beside the database says
which Prefect version has migrated it: only another version looks again (docs/decisions/0502).
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from importlib.metadata import version
from pathlib import Path


class ServerDatabase:
    """One stack's database and the shared template for new ones."""

    def __init__(self, side: Path, templates: Path) -> None:
        self.path = side / "prefect.db"
        self._version = version("prefect")
        self._stamp = side / "prefect.db.version"
        self._template = templates / f"prefect-{self._version}.db"

    def prepare(self) -> bool:
        """Put a template in place of a missing database; say whether the server must migrate at its start."""
        if not self.path.exists() and self._template.exists():
            shutil.copyfile(self._template, self.path)
            self._stamp.write_text(self._version, encoding="utf-8")
        return not (self.path.exists() and self._stamp.exists() and self._stamp.read_text("utf-8") == self._version)

    def keep(self) -> None:
        """Note that the running server has migrated its database, and keep a template if there is none.

        To be called before anything is written through the server: a template must be empty.
        """
        fresh = not self._stamp.exists()
        self._stamp.write_text(self._version, encoding="utf-8")
        if not fresh or self._template.exists():
            return
        self._template.parent.mkdir(parents=True, exist_ok=True)
        copy = self._template.with_suffix(".new")
        copy.unlink(missing_ok=True)
        with closing(sqlite3.connect(self.path)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        copy.replace(self._template)
