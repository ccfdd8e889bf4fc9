"""What the answer to a notification means. Pure. A notification that comes twice is harmless, one that is lost is not."""

from outbox.outcomes import Answer, Outcome

LATER = (408, 425, 429)  # refused now, not for good


def classify(answer: Answer) -> Outcome:
    """Return the outcome of one notification: anything but a yes or a definitive no is tried again."""
    status = answer.status
    if status is None:
        return Outcome(kind="uncertain" if answer.sent else "retry", error=answer.failure)
    if 200 <= status < 300:
        return Outcome(kind="succeeded", http_status=status)
    named = f"{status} {answer.failure or ''}".strip()
    if status in LATER or status >= 500:
        return Outcome(kind="retry", http_status=status, error=named, retry_after=answer.retry_after)
    return Outcome(kind="rejected", http_status=status, refusal="refused", error=named)
