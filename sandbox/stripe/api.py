"""One call to the API: who asks, is the key known, what is done, what is answered; effect and saved answer are one commit."""

import hmac
import json
import logging
import re
import sqlite3
import threading

from sandbox.stripe import faults, keys, objects, params, refusals, routes
from sandbox.stripe.exchange import Answer, Call, Json, as_json, bearer
from sandbox.stripe.refusals import Refused
from sandbox.stripe.routes import Route
from sandbox.stripe.store import ACCOUNT, Cause, Store, Transaction

log = logging.getLogger(__name__)


class Api:
    """Stripe's v1 API over a store."""

    def __init__(self, *, store: Store, api_key: str, rules: faults.Faults) -> None:
        self._store = store
        self._api_key = api_key
        self._rules = rules
        self._claims = keys.Claims()

    def answer(self, call: Call) -> Answer:
        """Return the answer to one call, errors included."""
        try:
            account = self._account(call)
            key = keys.of(call)
            text = call.body.decode() if call.method == "POST" else call.query
            given = params.decode(text)
            if key is None:
                return self._execute(call, account=account, key=None, given=given)
            with self._claims.hold(account, key):
                return self._replay(call, account=account, key=key, given=given) or self._execute(
                    call, account=account, key=key, given=given
                )
        except UnicodeDecodeError:
            return refusals.invalid("The body is not UTF-8.").answer()
        except Refused as refused:
            return refused.answer()
        except sqlite3.Error:  # a full disk: nothing was committed, nothing is saved
            log.exception("the state cannot be written; the caller reads a 500")
            return refusals.internal().answer()

    def authentic(self, call: Call) -> bool:
        """Return whether the call carries our key."""
        return hmac.compare_digest((bearer(call) or "").encode(), self._api_key.encode())

    def _account(self, call: Call) -> str:
        if not self.authentic(call):
            raise refusals.unauthorized(bearer(call))
        account = call.headers.get("stripe-account", ACCOUNT)
        if not re.fullmatch(r"acct_[A-Za-z0-9_]{1,64}", account):
            raise refusals.invalid(f"No such account: '{account}'")
        return account

    def _replay(self, call: Call, *, account: str, key: str, given: Json) -> Answer | None:
        with self._store.transaction(account=account) as tx:
            return keys.replay(tx, call=call, key=key, given=given)

    def _execute(self, call: Call, *, account: str, key: str | None, given: Json) -> Answer:
        """Do a new call: parameters first, outside the transaction; what they fail on is not saved."""
        route, ids = routes.find(call.method, call.path)
        wanted = params.read(route.schema, given)
        cause = Cause(request_id=call.request_id, idempotency_key=key)
        rule = self._rules.strike("during", call)

        def later(seconds: float, operation: faults.Operation) -> None:
            timer = threading.Timer(seconds, self._catch_up, (operation, account, cause))
            timer.daemon = True
            timer.start()

        operation = faults.during(rule, call=call, operate=lambda tx: operate(tx, route, ids, wanted), later=later)
        with self._store.transaction(account=account, cause=cause) as tx:
            answer, saved = run(tx, operation)
            if key and saved:
                keys.save(tx, call=call, key=key, given=given, answer=answer)
        return answer

    def _catch_up(self, operation: faults.Operation, account: str, cause: Cause) -> None:
        """Carry out what was answered by a 500 that never changes: Stripe may do so, and only its events tell."""
        with self._store.transaction(account=account, cause=cause) as tx:
            run(tx, operation)


def operate(tx: Transaction, route: Route, ids: tuple[str, ...], wanted: Json) -> Json:
    """Run a route's operation and expand its answer."""
    paths = wanted["expand"]
    body = route.operate(tx, {name: value for name, value in wanted.items() if name != "expand"}, *ids)
    return objects.expand(tx, json.loads(json.dumps(body)), paths) if paths else body


def run(tx: Transaction, operation: faults.Operation) -> tuple[Answer, bool]:
    """Return an operation's answer and whether it is saved; an error takes its effect back unless it says otherwise."""
    tx.mark()
    try:
        return as_json(200, operation(tx)), True
    except Refused as refused:
        refusal = refused
    except Exception:
        log.exception("the sandbox itself failed; its caller reads a 500")
        refusal = refusals.internal()
    if not refusal.effect_stays:
        tx.undo()
    return refusal.answer(), refusal.saved
