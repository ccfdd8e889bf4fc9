"""Names for ids, many at once: staff, and the subjects of conversations. A page asks once, whatever its number of rows."""

from collections.abc import Iterable

from django.contrib.auth import get_user_model

from ledger import wiring


def names(ids: Iterable[int | None]) -> dict[int, str]:
    """Return the user names of those ids that exist."""
    wanted = {user for user in ids if user is not None}
    return dict(get_user_model().objects.filter(id__in=wanted).values_list("id", "username")) if wanted else {}


def ids_like(text: str) -> list[int]:
    """Return the ids of at most 50 users whose name holds the text."""
    return list(get_user_model().objects.filter(username__icontains=text).values_list("id", flat=True)[:50])


def subject_names(ids: Iterable[int | None]) -> dict[int, str]:
    """Return the names of those subjects that exist."""
    wanted = {subject for subject in ids if subject is not None}
    found: dict[int, str] = wiring.plugged("BACKSTOP_SUBJECTS").names(wanted) if wanted else {}
    return found


def subjects_like(text: str) -> list[int]:
    """Return the ids of at most 200 subjects that the text finds; a number is exactly the subject of that number."""
    if text.isascii() and text.isdigit() and len(text) <= 18:
        return [int(text)]
    return [subject.id for subject in wiring.plugged("BACKSTOP_SUBJECTS").search(text, limit=200)]
