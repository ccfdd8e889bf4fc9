"""Every error answer of Stripe's that the sandbox gives, and what becomes of effect and key with it."""

from collections.abc import Mapping

from sandbox.stripe.exchange import Answer, Json, as_json


class Refused(Exception):
    """The API answers with an error.

    `saved`: a repeat with the same key gets this answer again. `effect_stays`: what was written before it is kept,
    as a declined charge is.
    """

    def __init__(
        self,
        status: int,
        error: Mapping[str, object],
        *,
        saved: bool = True,
        effect_stays: bool = False,
        retry: bool | None = None,
        wait: int = 0,
    ) -> None:
        super().__init__(error.get("message"))
        self.status = status
        self.error = {name: value for name, value in error.items() if value is not None}
        self.saved = saved
        self.effect_stays = effect_stays
        self.retry = retry
        self.wait = wait

    def answer(self) -> Answer:
        """Return the HTTP answer; `Stripe-Should-Retry` is absent unless Stripe is sure, `Retry-After` unless it is known."""
        headers = {} if self.retry is None else {"Stripe-Should-Retry": str(self.retry).lower()}
        headers |= {"Retry-After": str(self.wait)} if self.wait else {}
        return as_json(self.status, {"error": self.error}, headers=headers)


def invalid(message: str, *, code: str | None = None, param: str | None = None, saved: bool = False, **more: object) -> Refused:
    """Return the 400 for parameters that cannot be right; Stripe does not save it, since nothing was executed."""
    return Refused(400, {"type": "invalid_request_error", "code": code, "message": message, "param": param, **more}, saved=saved)


def unexpected(message: str, *, code: str | None = None, param: str | None = None, **more: object) -> Refused:
    """Return the saved 400 for a request that was executed and met a state that forbids it."""
    return invalid(message, code=code, param=param, saved=True, **more)


def missing(kind: str, object_id: str, *, param: str, in_path: bool = False) -> Refused:
    """Return the answer for an id that this account does not have: 404 in the path, 400 in a parameter."""
    message = f"No such {kind}: '{object_id}'"
    error = {"type": "invalid_request_error", "code": "resource_missing", "message": message, "param": param}
    return Refused(404 if in_path else 400, error)


def declined(error: Mapping[str, object], *, charge: str | None, intent: Json) -> Refused:
    """Return the 402 of a declined card; the failed charge and the intent's new status stay."""
    return Refused(402, {"type": "card_error", **error, "charge": charge, "payment_intent": intent}, effect_stays=True)


def unknown_url(method: str, path: str) -> Refused:
    """Return the 404 for a URL that the sandbox does not speak."""
    message = f"Unrecognized request URL ({method}: {path})."
    return Refused(404, {"type": "invalid_request_error", "message": message}, saved=False)


def unauthorized(given: str | None) -> Refused:
    """Return the 401 for a wrong or absent key; the message shows its last four characters at most."""
    message = "You did not provide an API key." if given is None else f"Invalid API Key provided: ****{given[-4:]}"
    return Refused(401, {"type": "invalid_request_error", "message": message}, saved=False)


def key_in_use(key: str | None) -> Refused:
    """Return the 409 for a key whose first request is still running."""
    message = f"There is currently another in-progress request using this Idempotent Key ({key})."
    return Refused(409, {"type": "invalid_request_error", "code": "idempotency_key_in_use", "message": message}, saved=False)


def key_mismatch(message: str) -> Refused:
    """Return the 400 for a key that named another request."""
    return Refused(400, {"type": "idempotency_error", "message": message}, saved=False)


def conflict() -> Refused:
    """Return the 409 that is about no key: another change of the object was first, and nothing was executed."""
    message = "The request conflicts with another request that is changing the same object."
    return Refused(409, {"type": "invalid_request_error", "code": "conflict", "message": message}, saved=False)


def rate_limited(*, status: int = 429, wait: int = 0) -> Refused:
    """Return the limiter's answer: it stands in front of everything, so nothing is saved; `wait` is in seconds."""
    error = {"type": "invalid_request_error", "code": "rate_limit", "message": "Request rate limit exceeded."}
    return Refused(status, error, saved=False, wait=wait)


def key_expired() -> Refused:
    """Return the 401 of an API key that is no longer valid."""
    error = {"type": "invalid_request_error", "code": "api_key_expired", "message": "Expired API Key provided."}
    return Refused(401, error, saved=False)


def forbidden() -> Refused:
    """Return the 403 of an API key that may not do this."""
    message = "The provided key does not have the required permissions for this endpoint."
    return Refused(403, {"type": "invalid_request_error", "message": message}, saved=False)


def dependency_failed() -> Refused:
    """Return the 424 of something behind Stripe that failed; nothing was executed, though the answer does not say so."""
    return Refused(424, {"type": "api_error", "message": "An external dependency failed."}, saved=False)


def lock_timeout() -> Refused:
    """Return the 429 of an object that another request holds; not executed, and Stripe asks for a retry."""
    message = "This object cannot be accessed right now because another API request or Stripe process is currently accessing it."
    return Refused(429, {"type": "invalid_request_error", "code": "lock_timeout", "message": message}, saved=False, retry=True)


def internal(*, saved: bool = True, effect_stays: bool = False) -> Refused:
    """Return the 500 that says nothing about what happened."""
    error = {"type": "api_error", "message": "An unknown error occurred"}
    return Refused(500, error, saved=saved, effect_stays=effect_stays)
