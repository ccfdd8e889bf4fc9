"""What an answer of the provider means for a message. Pure: no I/O, no clock, no SDK."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["succeeded", "rejected", "accepted", "retry", "uncertain", "dead", "park", "cancelled"]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one call, of one look-up, or of a person's request.

    succeeded: final, the money moved · rejected: final, it did not · accepted: the provider has it, not final ·
    retry: provably not executed · uncertain: nobody knows · dead: a person must look · park: the destination refuses
    us, not the message · cancelled: withdrawn before any send.
    """

    kind: Kind
    provider_id: str | None = None
    provider_status: str | None = None
    refusal: str | None = None  # the provider's code, such as insufficient_funds
    http_status: int | None = None
    request_id: str | None = None
    replayed: bool = False  # the provider repeated the stored answer to an earlier call with the same key
    error: str | None = None  # a class and a code, never text that holds customer data
    retry_after: float | None = None  # seconds
    verify: bool = False  # ask the provider how things stand before believing this
