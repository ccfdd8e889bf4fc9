"""The story in a real instance, told by the command: the brief's opening, to the provider and back."""

import json
import urllib.request
from typing import Any

from tests.stack import Stack, manage


def provider_refunds(stack: Stack) -> list[dict[str, Any]]:
    """Return what the Stripe sandbox gave back, as its money log has it."""
    request = urllib.request.Request(  # noqa: S310  # a sandbox of ours
        f"{stack.provider}/_sandbox/money", headers={"Authorization": f"Bearer {stack.content['stripe']['api_key']}"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
        log = json.load(answer)
    return [line for line in log["movements"] if line["kind"] == "refund"]


def test_the_story_ends_with_one_of_everything_at_the_provider_too(stack: Stack) -> None:
    before = provider_refunds(stack)
    done = manage("story", "--json", BACKSTOP_DATA=str(stack.data))
    assert done.returncode == 0, done.stderr
    telling = json.loads(done.stdout)
    assert telling["counts"] == {"memos": 1, "deductions": 1, "refunds": 1}
    assert len(provider_refunds(stack)) == len(before) + 1


def test_the_naive_story_leaves_two_memos_and_two_deductions(stack: Stack) -> None:
    done = manage("story", "--naive", BACKSTOP_DATA=str(stack.data))
    assert done.returncode == 0, done.stderr
    assert "credit memos 2 · deductions 2 · refunds 1" in done.stdout
    assert (stack.data / "story-naive.json").exists()
