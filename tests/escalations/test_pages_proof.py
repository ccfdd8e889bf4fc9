"""The preview on a case's page: each state of it, what it shows, and what it lets a reviewer do."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from tests.escalations.scenes import Scene, person

Begin = Callable[..., Scene]
Browse = Callable[[Any], Client]


def read(client: Client, escalation: int, query: str = "") -> str:
    response = client.get(f"/escalations/{escalation}/{query}")
    assert response.status_code == 200
    return response.content.decode()


def test_a_clean_preview_shows_rows_before_and_after_and_what_it_will_do(scene: Begin, browse: Browse, reviewer: Any) -> None:
    made = scene()
    escalation = made.approval()
    made.previews()
    page = read(browse(reviewer), escalation)
    for words in ("What would change", "run for real at", "then rolled back", "no errors", "Would apply", "Trips a rule"):
        assert words in page, words
