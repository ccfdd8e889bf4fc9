"""A customer with credit, in a transaction of the agent about them: once statement by statement, once in pipeline mode."""

from typing import Any

import pytest

from outbox.messages import Cause
from tests.billing import makers

CAUSE = Cause(ai_message_id="ai-1", call_index=0)


@pytest.fixture(params=[False, True], ids=["plain", "pipeline"])
def pipeline(request: Any) -> bool:
    """Say whether the verbs run in pipeline mode; a test that asks for it runs both ways."""
    return bool(request.param)


@pytest.fixture
def customer(owner: Any) -> int:
    """Return a customer in euros with €120.00 of credit and a card."""
    return makers.make_customer(owner, credit_minor=12_000)
