"""Sending one e-mail through Django's configured way."""

import smtplib
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage

from outbox.outcomes import Answer


def post(params: Mapping[str, Any], *, key: str) -> Answer:
    """Send an e-mail and return the server's answer as an HTTP one would be.

    `params` has "to" (addresses), "subject" and "text". The message's id is its key, so that a repeat is recognisable.
    """
    name = f"<{key.replace(':', '.')}@{settings.BACKSTOP_MAIL_DOMAIN}>"
    mail = EmailMessage(params["subject"], params["text"], to=[], bcc=params["to"], headers={"Message-ID": name})
    try:
        mail.send()
    except smtplib.SMTPRecipientsRefused as error:
        return _answer(max(code for code, _ in error.recipients.values()), error)
    except smtplib.SMTPResponseException as error:
        return _answer(error.smtp_code, error)
    except ConnectionRefusedError as error:
        return Answer(sent=False, failure=type(error).__name__)
    except (smtplib.SMTPException, OSError) as error:
        return Answer(failure=type(error).__name__)
    return Answer(status=200)


def _answer(code: int, error: Exception) -> Answer:
    """Return SMTP's 4yz (try later) and 5yz (never) as what they would be called in HTTP."""
    return Answer(status=503 if code < 500 else 422, failure=f"{type(error).__name__} {code}")
