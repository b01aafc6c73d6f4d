"""The parts of a local stack that need no server: environments, ports, state, database, the store's guard."""

from __future__ import annotations

import os
import socket
import sqlite3
import stat
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from infra.keeping import MARK
from infra.objectstore import guarded
from infra.stack.database import ServerDatabase
from infra.stack.environment import base_environment, write_side
from infra.stack.plan import Extra, StackPlan
from infra.stack.ports import HOST, claim_port, free_port, listening
from infra.stack.programs import programs_of, sites_of
from infra.stack.state import Running, StackState, read_state, running, write_state
from regions.errors import IntegrityError, OutsideError

STATE = StackState("mark", "secret", True, 4200, {"a": 5001, "b": 5002}, "s3")
ENVIRON = {
    "PATH": "/usr/bin",
    "HOME": "/home/somebody",
    "LANG": "C.UTF-8",
    "AWS_SECRET_ACCESS_KEY": "mine",
    "NIGHTRELAY_DATABASE_URL": "postgresql://mine",
    "PREFECT_API_KEY": "mine",
    "NO_PROXY": "corp",
    "GITHUB_TOKEN": "mine",
}


def plan(home: Path, **changes: Any) -> StackPlan:
    given: dict[str, Any] = {
        "limits": {"b": 2, "a": 1},
        "stores": "s3",
        "extras": (Extra("sweep", "flows.sweep"),),
        "control": {"NIGHTRELAY_DATABASE_URL": "sqlite:///j.db"},
        **changes,
    }
    return StackPlan(home, **given)


def test_only_the_whitelist_is_passed_on() -> None:
    passed = base_environment(ENVIRON)
    assert "mine" not in " ".join(passed.values()) and "HOME" not in passed
    assert passed["LANG"] == "C.UTF-8"
    assert passed["NO_PROXY"] == f"corp,{HOST},localhost" and passed["no_proxy"] == f"{HOST},localhost"
    assert passed["PATH"].endswith(":/usr/bin")


def test_each_side_sees_its_own(tmp_path: Path) -> None:
    wanted = plan(tmp_path)
    programs = {program.name: program for program in programs_of(wanted, STATE, ENVIRON, migrate=False)}
    assert list(programs) == [
        "server", "store-a", "store-b", "worker-control", "worker-a", "worker-b", "sweep",
    ]  # fmt: skip
    region, control = programs["worker-a"].env, programs["sweep"].env
    assert "NIGHTRELAY_DATABASE_URL" not in region and "NIGHTRELAY_SITES" not in region
    assert control["NIGHTRELAY_DATABASE_URL"] == "sqlite:///j.db"
    homes = {program.env.get("HOME") for program in programs.values()}
    assert "/home/somebody" not in homes
    assert len({programs[name].env["HOME"] for name in ("server", "worker-control", "worker-a", "worker-b")}) == 4
    assert region["AWS_SHARED_CREDENTIALS_FILE"] != programs["worker-b"].env["AWS_SHARED_CREDENTIALS_FILE"]
    assert region["NIGHTRELAY_WORK"].startswith(str(tmp_path / "sides" / "a"))
    assert programs["worker-a"].argv[-2:] == ("--limit", "1")
    assert all(program.env[MARK] == "mark" for program in programs.values())
    keys = sites_of(wanted, STATE)["a"]
    assert not any(keys.owner in part or keys.reader in part for program in programs.values() for part in program.argv)


def test_keys_differ_by_region_and_role(tmp_path: Path) -> None:
    sites = sites_of(plan(tmp_path), STATE)
    keys = [key for site in sites.values() for key in (site.owner, site.reader)]
    assert len(set(keys)) == 4
    assert sites["a"].document() == {"url": "s3://nightrelay-a", "endpoint": f"http://{HOST}:5001"}


def test_folders_as_stores_need_no_keys(tmp_path: Path) -> None:
    site = sites_of(plan(tmp_path, stores="files"), STATE)["a"]
    assert site.url == (tmp_path / "stores" / "a").as_uri() and not site.owner


def test_a_sides_files_are_its_users_alone(tmp_path: Path) -> None:
    side = tmp_path / "side"
    write_side(side, {"a": "key-a", "b": "key-b"})
    assert stat.S_IMODE(side.stat().st_mode) == 0o700
    assert stat.S_IMODE((side / "credentials").stat().st_mode) == 0o600
    assert (side / "credentials").read_text().count("aws_access_key_id") == 2


def test_a_port_in_use_is_one_clear_line() -> None:
    with closing(socket.socket()) as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert listening(port)
        with pytest.raises(OutsideError, match=f"port {port} of {HOST} is in use") as caught:
            claim_port(port)
        assert caught.value.kind == "port-in-use" and "\n" not in caught.value.message
    port = free_port()
    assert claim_port(port) == port and not listening(port)


def test_state_is_written_whole_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "stack.json"
    assert read_state(path) is None
    state = STATE.with_program(Running("server", 1, "boot/2")).with_program(Running("server", 3, "boot/4"))
    write_state(path, state)
    assert read_state(path) == state and state.programs == (Running("server", 3, "boot/4"),)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and "secret" not in repr(state)
    path.write_text("{")
    with pytest.raises(IntegrityError, match=r"stack\.json"):
        read_state(path)


def test_a_pid_that_was_given_out_again_is_not_ours() -> None:
    mine = running("test", os.getpid())
    assert mine.process is not None
    assert Running("test", os.getpid(), mine.began + "0").process is None
    assert Running("test", 2**22 - 1, "").process is None
    assert psutil.pid_exists(os.getpid())


def test_a_database_is_migrated_once_for_all_stacks(tmp_path: Path) -> None:
    templates = tmp_path / "templates"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    first = ServerDatabase(tmp_path / "one", templates)
    assert first.prepare() is True
    with closing(sqlite3.connect(first.path)) as migrated:
        migrated.execute("create table migrated (x)")
    first.keep()
    assert first.prepare() is False
    second = ServerDatabase(tmp_path / "two", templates)
    assert second.prepare() is False
    with closing(sqlite3.connect(second.path)) as copied:
        assert copied.execute("select name from sqlite_master").fetchall() == [("migrated",)]


def test_a_database_of_another_version_is_looked_at(tmp_path: Path) -> None:
    database = ServerDatabase(tmp_path, tmp_path / "templates")
    database.path.touch()
    assert database.prepare() is True
    database.keep()
    (tmp_path / "prefect.db.version").write_text("2.0")
    assert database.prepare() is True


@pytest.mark.parametrize(
    ("key", "method", "status"),
    [
        ("owner", "PUT", "200"),
        ("owner", "GET", "200"),
        ("reader", "GET", "200"),
        ("reader", "HEAD", "200"),
        ("reader", "PUT", "403"),
        ("reader", "DELETE", "403"),
        ("reader", "POST", "403"),
        ("stranger", "GET", "403"),
        (None, "GET", "403"),
    ],
)
def test_a_store_opens_to_its_keys_only(key: str | None, method: str, status: str) -> None:
    answered: list[str] = []

    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        start_response("200 OK", [])
        return [b"x"]

    environ = {"REQUEST_METHOD": method, "QUERY_STRING": ""}
    if key is not None:
        environ["HTTP_AUTHORIZATION"] = f"AWS4-HMAC-SHA256 Credential={key}/20261201/us-east-1/s3/aws4_request, Signed"
    guarded(app, "owner", "reader")(environ, lambda line, headers: answered.append(line))
    assert answered[0].startswith(status)


def test_a_presigned_request_carries_its_key_in_the_query() -> None:
    answered: list[str] = []
    environ = {"REQUEST_METHOD": "GET", "QUERY_STRING": "X-Amz-Credential=reader%2F20261201%2Fus-east-1%2Fs3"}

    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        start_response("200 OK", [])
        return []

    guarded(app, "owner", "reader")(environ, lambda line, headers: answered.append(line))
    assert answered == ["200 OK"]
