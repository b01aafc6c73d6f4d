"""Where Alibaba Cloud's own tools keep credentials: variables, two files, the role of the machine. Read anew, not kept.

Order: OSS_ACCESS_KEY_ID and its kin, ALIBABA_CLOUD_ACCESS_KEY_ID and its kin, ALIBABA_CLOUD_CREDENTIALS_FILE (or
~/.alibabacloud/credentials), ~/.ossutilconfig (or OSS_CONFIG_FILE), and last the role named in
ALIBABA_CLOUD_ECS_METADATA. A file is read again when it changes, a role's key renewed before it ends.
"""

from __future__ import annotations

import configparser
import json
import os
import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

from regions.clock import Clock
from regions.errors import OutsideError
from storage.objects.credentials import Credential
from storage.objects.http import HttpPool

_RENEWED_BEFORE = timedelta(minutes=5)
_METADATA = "http://100.100.100.200"
_VARIABLES = (
    ("OSS_ACCESS_KEY_ID", "OSS_ACCESS_KEY_SECRET", "OSS_SESSION_TOKEN"),
    ("ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET", "ALIBABA_CLOUD_SECURITY_TOKEN"),
)
_FIELDS = (
    ("access_key_id", "access_key_secret", "security_token"),
    ("accesskeyid", "accesskeysecret", "ststoken"),
)


class OssCredentials:
    """The credentials that Alibaba Cloud's tools would find now. A CredentialSource; safe for threads."""

    def __init__(
        self,
        clock: Clock,
        profile: str | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        metadata: str = _METADATA,
    ) -> None:
        self._clock, self._metadata = clock, metadata
        self._environ = os.environ if environ is None else environ
        self._profile = profile or self._environ.get("ALIBABA_CLOUD_PROFILE", "default")
        self._lock = threading.Lock()
        self._files: dict[Path, tuple[int, Mapping[str, str]]] = {}
        self._role: Credential | None = None

    def __call__(self) -> Credential:
        """Return the credentials of this moment; OutsideError (credentials) where there are none."""
        for access, secret, token in _VARIABLES:
            if self._environ.get(access) and self._environ.get(secret):
                return Credential(self._environ[access], self._environ[secret], self._environ.get(token) or None)
        for section in self._sections():
            for access, secret, token in _FIELDS:
                if section.get(access) and section.get(secret):
                    return Credential(section[access], section[secret], section.get(token) or None)
        if role := self._environ.get("ALIBABA_CLOUD_ECS_METADATA"):
            return self._of_role(role)
        raise OutsideError(
            "no credentials for OSS: set OSS_ACCESS_KEY_ID and OSS_ACCESS_KEY_SECRET, or write them into "
            f"{self._paths()[0]} under [{self._profile}], or name the machine's role in ALIBABA_CLOUD_ECS_METADATA",
            kind="credentials",
        )

    def setting(self, name: str) -> str | None:
        """Return `region` or `endpoint` as the same variables and files give it."""
        variables = {"region": ("OSS_REGION", "ALIBABA_CLOUD_REGION_ID"), "endpoint": ("OSS_ENDPOINT",)}[name]
        for variable in variables:
            if self._environ.get(variable):
                return self._environ[variable]
        return next((section[name] for section in self._sections() if section.get(name)), None)

    def _paths(self) -> tuple[Path, Path]:
        home = Path(self._environ.get("HOME", "~")).expanduser()
        credentials = self._environ.get("ALIBABA_CLOUD_CREDENTIALS_FILE")
        config = self._environ.get("OSS_CONFIG_FILE")
        return (
            Path(credentials) if credentials else home / ".alibabacloud" / "credentials",
            Path(config) if config else home / ".ossutilconfig",
        )

    def _sections(self) -> list[Mapping[str, str]]:
        return [section for path in self._paths() if (section := self._section(path))]

    def _section(self, path: Path) -> Mapping[str, str]:
        try:
            changed = path.stat().st_mtime_ns
        except OSError:
            return {}
        with self._lock:
            kept = self._files.get(path)
        if kept is not None and kept[0] == changed:
            return kept[1]
        parser = configparser.ConfigParser(interpolation=None)
        try:
            parser.read_string(path.read_text())
        except (OSError, configparser.Error, UnicodeDecodeError) as error:
            raise OutsideError(f"cannot read {path}: {type(error).__name__}; mend it", kind="credentials") from None
        # ossutil's first version named its only section [Credentials].
        name = next((name for name in (self._profile, "Credentials") if parser.has_section(name)), None)
        section = dict(parser[name]) if name else {}
        with self._lock:
            self._files[path] = (changed, section)
        return section

    def _of_role(self, role: str) -> Credential:
        with self._lock:
            kept = self._role
            if kept is not None and kept.expires and self._clock.real() < kept.expires - _RENEWED_BEFORE:
                return kept
            pool = HttpPool(self._metadata, timeout=5.0, connect_timeout=2.0)
            try:
                reply = pool.request("GET", f"/latest/meta-data/ram/security-credentials/{role}", {})
            finally:
                pool.close()
            if reply.status != 200:
                raise OutsideError(
                    f"this machine has no role {role!r} (HTTP {reply.status}); mend ALIBABA_CLOUD_ECS_METADATA",
                    kind="credentials",
                )
            document = json.loads(reply.body)
            expires = datetime.fromisoformat(document["Expiration"].replace("Z", "+00:00"))
            self._role = Credential(
                document["AccessKeyId"], document["AccessKeySecret"], document["SecurityToken"], expires
            )
            return self._role
