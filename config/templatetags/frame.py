"""Tags of every page's frame: icons of the sprite, amounts, initials. Built in, so no page loads them."""

import re
from datetime import datetime
from functools import lru_cache
from typing import Any

from django import template
from django.templatetags.static import static
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString

from ledger import spans, wiring

register = template.Library()
FOR_THE_MODEL = re.compile(r" \(\d+ minor units\)")
AMOUNT = re.compile(r"((?:[€$£¥₹₩]|\b[A-Z]{3} )\d[\d,]*(?:\.\d+)?)")


@register.simple_tag
@lru_cache(maxsize=256)  # a long conversation has a thousand of them, and an icon's address never changes
def icon(name: str, size: str = "") -> SafeString:
    """Return an icon of static/icons.svg; `size` is "" or "s"."""
    css = f"i {size}".strip()
    return format_html('<svg class="{}" aria-hidden="true"><use href="{}#{}"></use></svg>', css, static("icons.svg"), name)


@register.filter
def money(minor: int | None, currency: str) -> str:
    """Return an amount in minor units as people read it, such as "€480.00"; nothing for no amount."""
    return "" if minor is None else str(wiring.plugged("BACKSTOP_MONEY")(minor, currency))


@register.filter
def grouped(number: int | None) -> str:
    """Return a whole number with its thousands apart: 25000 gives "25,000"."""
    return "" if number is None else f"{number:,}"


@register.filter
def moment(at: datetime | None) -> str:
    """Return a time of today as "09:41", any other with its day; nothing for no time."""
    return spans.moment(at) if at else ""


@register.filter
def initials(name: Any) -> str:
    """Return at most two characters that stand for a person's name: "support3" gives "S3", "robin" gives "RO"."""
    text = "".join(character for character in str(name) if character.isalnum())
    return (text[:1] + text[-1:] if text[-1:].isdigit() else text[:2]).upper()


@register.filter
def for_people(sentence: Any) -> str:
    """Return a sentence that a model was told, without the repetition that only the model needs."""
    return FOR_THE_MODEL.sub("", str(sentence))


@register.filter
def strong_amounts(sentence: Any) -> SafeString:
    """Return a sentence, escaped, as people read it and with its amounts in bold type."""
    return SafeString(AMOUNT.sub(r"<b>\1</b>", escape(for_people(sentence))))
