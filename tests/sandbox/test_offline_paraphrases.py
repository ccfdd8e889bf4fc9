"""How well the offline model understands people who have not seen its vocabulary, and that it acts on nothing else."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from sandbox.offline import acts, decisions, history, names
from sandbox.offline import patterns as known
from tests import each
from tests.sandbox import offline_talks
from tests.sandbox.offline_talks import Talk

FILE = tomllib.loads(Path(__file__).with_name("offline_paraphrases.toml").read_text())
MONTHS = {42: "2026-11", 41: "2026-10", 40: "2026-09"}  # of the invoices that the talks are about
ENOUGH = 0.9  # of the sentences that were written after the vocabulary, understood exactly


def sentences(kind: str) -> list[tuple[dict[str, Any], str]]:
    return [(group, sentence) for group in FILE["group"] for sentence in group.get(kind, ())]


ORDERS = [
    (group, sentence)
    for group, sentence in [*sentences("tuned")[::3], *sentences("unseen")]
    if "read" not in group and group["calls"] != ["AskHuman"]
]
FREE = re.compile("because|reason:|due to")  # anything may follow


def talk(group: dict[str, Any]) -> Talk:
    if "due" not in group:
        return Talk()
    november = offline_talks.NOVEMBER | {"amount_minor": group["due"], "amount_due_minor": group["due"]}
    invoices = [november, offline_talks.OCTOBER, offline_talks.SEPTEMBER]
    account = offline_talks.ACCOUNT | {"open_invoices": [november, offline_talks.SEPTEMBER], "last_invoices": invoices}
    return Talk(account=account)


def compact(call: Any) -> str:
    """Return a call as the file writes it."""
    arguments = call["args"]
    if call["name"] in ("AskHuman", "LookUpCustomer"):
        return str(call["name"])
    month = str(arguments.get("billing_period") or MONTHS.get(arguments.get("invoice_id"), "-"))[:7]
    return " ".join(str(part) for part in (call["name"], month, arguments.get("amount_minor")) if part is not None)


def check_read(group: dict[str, Any], spoken: Talk, reply: Any) -> None:
    """Raise unless the answer is about what was asked, and calls nothing more."""
    assert not reply.tool_calls
    assert "did not understand" not in reply.text
    found = decisions._acts(names.with_names(history.read(spoken.messages)))
    asked = {act.name for act in found}
    assert asked <= known.TALK if group["read"] == "talk" else asked == {group["read"]}
    about = {month.isoformat()[:7] for act in found for month in act.months} | {
        MONTHS[number] for act in found for number in act.invoices
    }
    assert about == ({group["month"]} if "month" in group else set())


def check_done(group: dict[str, Any], sentence: str) -> None:
    """Raise unless it does exactly what is asked."""
    spoken = talk(group)
    reply = spoken.say(sentence)
    if "read" in group:
        check_read(group, spoken, reply)
    else:
        assert [compact(call) for call in reply.tool_calls] == group["calls"]


def check_left(group: dict[str, Any], sentence: str) -> None:
    """Raise unless it calls nothing."""
    assert not talk(group).say(sentence).tool_calls


@pytest.mark.parametrize("kind", ["tuned", "unseen"])
def test_it_does_exactly_what_is_asked(kind: str) -> None:
    assert each.wrong(check_done, sentences(kind)) == []


def test_it_calls_nothing_for_what_it_misses() -> None:
    assert each.wrong(check_left, [*sentences("tuned_missed"), *sentences("unseen_missed")]) == []


def test_it_understands_nine_of_ten_of_the_sentences_that_it_was_not_made_for() -> None:
    understood, missed = len(sentences("unseen")), len(sentences("unseen_missed"))
    assert understood / (understood + missed) >= ENOUGH


def test_it_calls_nothing_for_a_sentence_that_is_no_order() -> None:
    assert each.wrong(check_left, [({}, sentence) for sentence in FILE["never"]["sentences"]]) == []


def test_it_calls_nothing_when_a_negation_is_put_in() -> None:
    orders = [(group, _negated(sentence)) for group, sentence in ORDERS if not FREE.search(sentence)]
    assert each.wrong(check_left, orders) == []


def _negated(sentence: str) -> str:
    words = sentence.split()
    place = len(sentence) % len(words)  # the same place in every run
    return " ".join([*words[:place], "not", *words[place:]])


def test_its_own_files_contain_none_of_the_sentences_that_it_was_not_made_for() -> None:
    files = [file for file in Path(acts.__file__).parent.glob("*.*") if file.suffix in (".py", ".toml", ".md")]
    own = " ".join(_flat(file.read_text()) for file in files)
    unseen = [sentence for kind in ("unseen", "unseen_missed") for _, sentence in sentences(kind)]
    assert [sentence for sentence in unseen if len(sentence.split()) > 3 and _flat(str(sentence)) in own] == []


def _flat(text: str) -> str:
    return re.sub(r"[\W_]+", " ", f" {text.lower()} ")


def test_it_takes_the_customers_own_name_for_the_customer() -> None:
    spoken = Talk()
    reply = spoken.say("Refund Sample Cycles €25 for October")
    assert [compact(call) for call in reply.tool_calls] == ["QueueRefund 2026-10 2500"]
    assert "“Globex”" in Talk().say("Refund Globex €25 for October").text
    assert names.spellings("Do Not Ltd") == ()
    assert names.spellings("Sample Cycles BV") == ("Sample Cycles BV", "Sample Cycles")


def test_it_shows_the_examples_that_come_closest() -> None:
    text = Talk().say("Please void the purple invoice").text
    assert text.startswith("I did not understand “purple”, so I did nothing.")
    assert "“Void the November invoice”" in text
    assert text.count("”;") <= 2
