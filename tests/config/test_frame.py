"""The tags that every page may use."""

from config.templatetags import frame


def test_it_shows_people_an_amount_once() -> None:
    told = "The credit balance is €120.00 (12000 minor units), so €150.00 cannot be used."
    assert frame.strong_amounts(told) == "The credit balance is <b>€120.00</b>, so <b>€150.00</b> cannot be used."


def test_it_escapes_whatever_a_sentence_says() -> None:
    assert frame.strong_amounts("<i>€1.00</i>") == "&lt;i&gt;<b>€1.00</b>&lt;/i&gt;"
