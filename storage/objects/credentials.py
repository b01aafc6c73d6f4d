"""Credentials as drivers see them: asked for at each request, so that one that is renewed is used at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Credential:
    """A key pair with its optional session token. The secret parts never appear in repr, messages or records."""

    access: str
    secret: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    expires: datetime | None = None


CredentialSource = Callable[[], Credential]
"""Called before each request, from any thread; MUST be cheap when nothing changed and renew what runs out."""
