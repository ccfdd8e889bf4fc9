"""Messages whose end nobody knows: each is asked about once, and not while it is under way. Exits: see `reconciled` here."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from psycopg import errors

from escalations import facts
from escalations.reconciling import scanning
from outbox import gateway, requests
from outbox.outcomes import Answer
from tests.escalations import scanned
from tests.escalations.questions import row
from tests.escalations.scanned import CLEAN, choose, scan, state
from tests.escalations.scenes import person
from tests.outbox.desk import Desk

OLDER = "UPDATE public.outbox_message SET first_sent_at = first_sent_at - interval '1 hour' WHERE id = %s"


CONFIRM = "/v1/payment_intents/[^/]+/confirm"
DIE = "UPDATE public.outbox_message SET state = 'dead', first_sent_at = first_sent_at - interval '1 hour' WHERE id = %s"


@pytest.fixture
def lost(desk: Desk) -> Callable[..., dict[str, Any]]:
    """Return a function that sends a charge whose answer is lost, before or after it took effect, and lets it be given up."""

    def send(when: str = "after", *, path: str = CONFIRM, query: str = DIE) -> dict[str, Any]:
        message = desk.charge()
        desk.provider.fault(when, "drop", path=path)
        desk.deliver_once()
        assert desk.read(message)["state"] == "uncertain"
        desk.owner.execute(query, (message["id"],))
        return desk.read(message)

    return send


def carry_out(desk: Desk) -> None:
    """Do what was asked for, as the outbox worker does."""
    with desk.pool.connection() as conn:
        assert requests.carry_out(conn) == 1


def ours(*messages: dict[str, Any]) -> Any:
    """Return what asks the provider, and sees nothing of what other tests left there."""
    uids = {str(message["uid"]) for message in messages}

    def get(path: str, params: Any) -> Answer:
        answer = gateway.get(path, params)
        kept = [one for one in (answer.body or {}).get("data", ()) if (one.get("metadata") or {}).get("backstop_uid") in uids]
        return replace(answer, body={"data": kept, "has_more": False}) if "data" in (answer.body or {}) else answer

    return get


def test_it_is_not_asked_again_while_an_exit_is_under_way(desk: Desk, outbox: Any, web: Any, lost: Any) -> None:
    case = scanned.found_once(outbox, object_=f"message:{lost()['id']}")
    assert choose(web, case, "adopt").decision
    assert (state(outbox, case), scan(outbox)[1]) == ("decided", 0)


def test_it_is_the_same_question_while_a_worker_looks_it_up(desk: Desk, outbox: Any, lost: Any) -> None:
    message = lost(query=OLDER)
    scanned.found_once(outbox, object_=f"message:{message['id']}")
    desk.due(message)
    assert desk.claim()
    assert scan(outbox) == (1, 0, 0, "")


def test_an_exit_that_turns_out_impossible_says_so_and_is_asked_about_anew(desk: Desk, outbox: Any, web: Any, lost: Any) -> None:
    message = lost()
    case = scanned.found_once(outbox, object_=f"message:{message['id']}")
    choose(web, case, "settle_rejected")
    carry_out(desk)
    scanning.work(outbox, get=None)
    assert state(outbox, case) == "done"
    [(new, about, _, _)] = scanned.asked(outbox)
    assert (about, new) != (f"message:{message['id']}", case)
    before, follows = row(outbox, new, "payload ->> 'before', follows_id")
    assert before == "not possible: the provider says succeeded"
    assert follows == case


def test_nobody_settles_what_they_asked_for(desk: Desk, outbox: Any, web: Any, lost: Any) -> None:
    case = scanned.found_once(outbox, object_=f"message:{lost()['id']}")
    desk.owner.execute(
        "UPDATE public.escalations_escalation SET requested_by = %s WHERE id = %s", (person("priya", "reviewer").id, case)
    )
    with pytest.raises(facts.OwnEffect):
        choose(web, case, "adopt")
    with pytest.raises(errors.CheckViolation, match="four_eyes"), web.transaction():
        web.execute(
            "INSERT INTO public.escalations_decision (escalation_id, kind, text, waived, decided_by)"
            " VALUES (%s, 'adopt', 'x', '[]', %s)",
            (case, person("priya").id),
        )
    assert choose(web, case, "adopt", name="marco").decision


def test_one_exit_wins(desk: Desk, outbox: Any, web: Any, lost: Any) -> None:
    case = scanned.found_once(outbox, object_=f"message:{lost()['id']}")
    choose(web, case, "adopt")
    with pytest.raises(facts.AlreadyDecided):
        choose(web, case, "compensate", name="marco")


def test_an_exit_that_the_message_does_not_allow_changes_nothing(desk: Desk, outbox: Any, web: Any, lost: Any) -> None:
    message = lost()
    case = scanned.found_once(outbox, object_=f"message:{message['id']}")
    desk.owner.execute("UPDATE public.outbox_message SET key_deadline = now() WHERE id = %s", (message["id"],))
    with pytest.raises(facts.NotPossibleNow):
        choose(web, case, "resend")
    assert state(outbox, case) == "open"


def test_a_large_sum_put_right_by_hand_needs_a_second_person(desk: Desk, outbox: Any, web: Any, lost: Any) -> None:
    message = lost()
    desk.owner.execute(
        "INSERT INTO public.agent_policy (rule, tool, currency, value, reason, set_by) VALUES"
        " ('second_reviewer', 'QueueCharge', 'EUR', 10000, 'Careful.', 1)"
    )
    case = scanned.found_once(outbox, object_=f"message:{message['id']}")
    first = choose(web, case, "compensate")
    assert (first.decision, first.signed, first.needs) == (None, 1, 2)
    with pytest.raises(facts.SignedAlready):
        choose(web, case, "compensate")
    with pytest.raises(errors.CheckViolation, match="compensation_signed"), web.transaction():
        web.execute(
            "INSERT INTO public.escalations_decision (escalation_id, kind, text, waived, decided_by, needs)"
            " VALUES (%s, 'compensate', 'x', '[]', %s, 2)",
            (case, person("priya").id),
        )
    assert choose(web, case, "compensate", name="marco").decision


def test_it_says_nothing_of_what_is_under_way(desk: Desk, outbox: Any) -> None:
    message = desk.charge()
    desk.put(message, "uncertain")
    assert scan(outbox) == CLEAN
    assert scanned.asked(outbox) == []


def test_an_unknown_outcome_is_asked_about_once_and_cleared_when_it_becomes_known(desk: Desk, outbox: Any) -> None:
    message = desk.charge()
    desk.put(message, "uncertain")
    desk.owner.execute(OLDER, (message["id"],))
    case = scanned.found_once(outbox, object_=f"message:{message['id']}")
    desk.put(message, "ready")
    assert scan(outbox) == (0, 0, 1, "")
    assert state(outbox, case) == "done"


# -- the provider's objects ------------------------------------------------------------------------


def test_an_object_that_ended_otherwise_is_adopted(desk: Desk, outbox: Any, web: Any) -> None:
    refund = desk.refund(desk.paid())
    desk.deliver()
    assert desk.read(refund)["state"] == "succeeded"
    desk.provider.settle(str(desk.read(refund)["provider_id"]), "failed")
    case = scanned.found_once(outbox, object_=f"object:{desk.read(refund)['provider_id']}", get=ours(refund))
    assert scan(outbox)[1:] == (0, 0, ""), "a scan that does not ask the provider clears nothing of it"
    choose(web, case, "adopt")
    carry_out(desk)
    scanning.work(outbox, get=ours(refund))
    assert state(outbox, case) == "done"
    assert desk.refund_status(refund) == "reversed"


def test_a_provider_that_does_not_answer_leaves_everything_as_it_was(desk: Desk, outbox: Any) -> None:
    uid = str(uuid4())
    desk.provider.create("/v1/payment_intents", amount=700, currency="eur", **{"metadata[backstop_uid]": uid})
    assert scan(outbox, ours({"uid": uid}))[:2] == (1, 1)
    found = scan(outbox, lambda path, params: Answer(failure="ReadTimeout"))
    assert found[:3] == (0, 0, 0)
    assert found[3].startswith("outbox.provider: /v1/")
    assert found[3].endswith(": ReadTimeout.")
    assert len(scanned.asked(outbox)) == 1
