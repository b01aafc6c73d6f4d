from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from regions.load import SHIPPED, load
from regions.policy import Policy, relative_rate


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load(SHIPPED).policy


def test_the_size_class_is_by_parameters_and_unknown_is_large(policy: Policy) -> None:
    assert [policy.model_class(n) for n in (1, 999_999_999, 1_000_000_000, None)] == [
        "small",
        "small",
        "large",
        "large",
    ]


def test_every_kind_has_a_template_for_both_sizes(policy: Policy) -> None:
    assert set(policy.templates) == {"preprocess", "pretrain", "finetune", "tune", "validate", "export"}
    for kind in policy.templates:
        for parameters in (10**6, 10**10):
            assert policy.template(kind, parameters) is not None
    prepare, tune = policy.template("preprocess", 10**6), policy.template("tune", 10**6)
    assert prepare is not None
    assert list(prepare.accelerators) == ["CPU"]
    assert tune is not None
    assert tune.fraction is not None
    assert tune.fraction < 1


def test_rates_are_relative_to_one_that_is_known(policy: Policy) -> None:
    template = policy.template("pretrain", 10**10)
    assert template is not None
    assert relative_rate(template, "H100", "A100-80GB", Decimal(120)) == Decimal(120) * Decimal("3.17")
    assert relative_rate(template, "H100", "TPU", Decimal(120)) is None


def test_shipped_defaults_are_pinned(policy: Policy) -> None:
    elastic = policy.elasticity
    assert (elastic.out_above, elastic.in_below, elastic.cooldown) == (
        Decimal("0.80"), Decimal("0.30"), timedelta(minutes=15),
    )  # fmt: skip
    assert policy.release_delay == timedelta(minutes=10)
    assert sorted(policy.priorities, key=lambda name: policy.priorities[name].rank) == ["core", "important", "normal"]
    assert policy.priorities["normal"].may_preempt == ()
    assert (policy.retention.last, policy.stale_after) == (3, timedelta(days=365))
