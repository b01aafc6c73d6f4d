"""Pools, queues and deployments: the wish, the difference, and what an operator paused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import yaml
from hypothesis import given
from hypothesis import strategies as st

from flows.commands.apply import chosen, flow_specs, wish_for
from infra.pools import (
    QUEUES,
    TAG,
    Deployment,
    FlowSpec,
    Found,
    FoundDeployment,
    FoundPool,
    FoundQueue,
    Pool,
    Wanted,
    difference,
)
from infra.prefect_yaml import render
from infra.project import PROJECT
from regions.load import load

TRAIN = FlowSpec("train", "flows/train.py:train", "Train.", {"type": "object"})
LEG = FlowSpec("leg", "flows/leg.py:leg", "A leg.", {"type": "object"})
NOTHING = Found({}, {})


def wish(*regions: str, limit: int = 2) -> Wanted:
    legs = tuple(Deployment(LEG, name, name, (TAG, f"region:{name}")) for name in regions)
    pools = (Pool("control"), *(Pool(name, limit) for name in regions))
    return Wanted(pools, (Deployment(TRAIN, "relay", "control", (TAG,)), *legs))


def standing(wanted: Wanted, *, paused: bool = False) -> Found:
    """Return a server at which a wish has come true."""
    pools = {
        pool.name: FoundPool(
            pool.limit, {name: FoundQueue(name, priority, paused) for name, priority in pool.queues.items()}, paused
        )
        for pool in wanted.pools
    }
    deployments = {
        deployment.full_name: FoundDeployment("00", deployment.fields(), paused) for deployment in wanted.deployments
    }
    return Found(pools, deployments)


def test_an_empty_server_gets_all_in_an_order_that_works() -> None:
    changes = difference(wish("a"), NOTHING, prune=True)
    names = [(change.kind, change.name) for change in changes]
    assert names == [
        ("pool", "control"),
        *(("queue", f"control/{queue}") for queue in QUEUES),
        ("pool", "a"),
        *(("queue", f"a/{queue}") for queue in QUEUES),
        ("deployment", "train/relay"),
        ("deployment", "leg/a"),
    ]
    assert {change.verb for change in changes} == {"create"}


@given(st.sets(st.sampled_from("abcdef"), max_size=4), st.sets(st.sampled_from("abcdef"), max_size=4))
def test_what_is_carried_out_leaves_no_difference(before: set[str], after: set[str]) -> None:
    old, new = wish(*before), wish(*after, limit=3)
    changes = difference(new, standing(old), prune=True)
    assert difference(new, standing(new), prune=True) == ()
    removed = {change.name for change in changes if change.verb == "delete"}
    assert removed == {f"leg/{name}" for name in before - after}
    assert not any(change.kind == "pool" and change.verb == "delete" for change in changes)


def test_without_prune_nothing_is_removed_and_strangers_never_are() -> None:
    found = standing(wish("a", "b"))
    stranger = replace(found.deployments["leg/b"], fields={**found.deployments["leg/b"].fields, "tags": []})
    assert difference(wish("a"), found, prune=False) == ()
    mixed = Found(found.pools, {**found.deployments, "other/b": stranger})
    assert [change.name for change in difference(wish("a"), mixed, prune=True)] == ["leg/b"]


def test_what_an_operator_paused_stays_paused() -> None:
    paused = standing(wish("a"), paused=True)
    assert difference(wish("a"), paused, prune=True) == ()
    changes = difference(wish("a", limit=5), paused, prune=True)
    assert [(change.kind, change.paused) for change in changes] == [("pool", True)]
    assert not any("paused" in name or "schedule" in name for change in changes for name in change.fields)
    fields = wish("a").deployments[0].fields()
    assert not any("paused" in name or "schedule" in name for name in fields)


def test_an_edited_queue_or_command_is_put_right() -> None:
    found = standing(wish("a"))
    queues = {**found.pools["a"].queues, "core": FoundQueue("id", 4)}
    edited = replace(found.deployments["leg/a"], fields={**found.deployments["leg/a"].fields, "job_variables": {}})
    here = Found({**found.pools, "a": FoundPool(2, queues)}, {**found.deployments, "leg/a": edited})
    changes = difference(wish("a"), here, prune=True)
    assert [(change.verb, change.name, set(change.fields)) for change in changes] == [
        ("update", "a/core", {"priority"}),
        ("update", "leg/a", {"job_variables"}),
    ]


def test_the_committed_file_is_what_would_be_generated() -> None:
    catalog = PROJECT / "regions" / "catalog"
    local = [name for name, region in load(catalog).regions.items() if region.provider == "local"]
    assert (PROJECT / "prefect.yaml").read_text() == render(wish_for(catalog, local)), (
        "regenerate: nightrelay apply --write prefect.yaml " + " ".join(f"--region {name}" for name in local)
    )


def test_the_committed_file_names_no_machine_and_can_be_followed() -> None:
    text = (PROJECT / "prefect.yaml").read_text()
    document = yaml.safe_load(text)
    assert str(Path.home()) not in text and str(PROJECT) not in text
    assert document["deployments"][0]["name"] == "relay"
    for entry in document["deployments"]:
        file, _, function = entry["entrypoint"].partition(":")
        assert f"def {function}(" in (PROJECT / file).read_text()
        assert entry["work_pool"]["job_variables"] == {"command": "python -m prefect.engine"}


def test_flow_specs_hold_the_parameters_people_pass() -> None:
    train, leg = flow_specs()
    assert set(train.schema["properties"]) == {"run", "resume"}
    assert {"run", "number", "region"} <= set(leg.schema["properties"])
    assert train.description and leg.description


def test_a_region_that_is_not_there_is_refused() -> None:
    catalog = PROJECT / "regions" / "catalog"
    known = load(catalog).regions
    try:
        chosen(known, ["local-berlin", "atlantis"], catalog)
    except ValueError as error:
        assert "atlantis" in str(error) and "local-berlin" in str(error)
    else:
        raise AssertionError("it was not refused")
