"""What a part of an instance is told, and what is kept from it."""

from pathlib import Path

import pytest

from sandbox.supervisor import environments

GIVEN = {"STRIPE_API_KEY": "sk_live_1", "STRIPE_MODE": "test", "STRIPE_WEBHOOK_SECRETS": "whsec_1"}


@pytest.mark.parametrize("name", ["web", "agent", "outbox", "keeper", "beat"])
def test_everybody_is_told_the_mode_of_the_key_and_one_part_the_key(name: str, tmp_path: Path) -> None:
    told = environments.for_child(name=name, data=tmp_path, login=name, given=GIVEN)

    assert (told["STRIPE_MODE"], "STRIPE_API_KEY" in told) == ("live", name == "outbox")


def test_the_mode_that_a_person_set_is_not_that_of_the_sandbox(tmp_path: Path) -> None:
    told = environments.for_child(name="web", data=tmp_path, login="web", given={"STRIPE_MODE": "live"})

    assert "STRIPE_MODE" not in told
