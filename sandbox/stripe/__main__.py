"""Start the sandbox: STRIPE_SANDBOX_API_KEY=sk_test_… python -m sandbox.stripe --data DIR --port N"""

import argparse
import logging
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

from sandbox.stripe import api, control, faults, limits, server, settlements, store, webhooks

KEY = "STRIPE_SANDBOX_API_KEY"
SECRET = "STRIPE_SANDBOX_WEBHOOK_SECRET"  # noqa: S105 - the name of one; several are separated by commas


def options(arguments: list[str]) -> argparse.Namespace:
    """Read the command line, and from the environment the key and the secrets, which `ps` must not show."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.stripe", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the state")
    parser.add_argument("--port", type=int, required=True, help="0 takes a free one; the first line of output names it")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--webhook-url", default="")
    secret = {"api_key": os.environ.get(KEY, ""), "webhook_secret": os.environ.get(SECRET, "")}
    return parser.parse_args(arguments, argparse.Namespace(**secret))


def problem(given: argparse.Namespace) -> str | None:
    """Return what is wrong with the options, in one sentence."""
    if given.api_key.startswith(("sk_live_", "rk_live_")):
        return "The Stripe sandbox refuses live keys: give it one that begins with sk_test_."
    if not given.api_key.startswith(("sk_test_", "rk_test_")):
        return f"The Stripe sandbox needs a {KEY} that begins with sk_test_ or rk_test_."
    if given.webhook_url and urlsplit(given.webhook_url).scheme not in ("http", "https"):
        return f"--webhook-url {given.webhook_url} is not an http or https address."
    if given.webhook_url and not given.webhook_secret:
        return f"--webhook-url needs a {SECRET} to sign with."
    return None


def assemble(given: argparse.Namespace) -> tuple[server.Server, list[settlements.Ticker | webhooks.Sender]]:
    """Return the server and its background threads, not started; raises OSError or store.Unusable."""
    bell = threading.Event()
    state = store.Store(given.data, ring=bell.set if given.webhook_url else None)
    rules = faults.Faults()
    address = webhooks.Address(url=given.webhook_url, secrets=given.webhook_secret.split(","))
    sender = webhooks.Sender(state, address, bell=bell) if given.webhook_url else None
    the_api = api.Api(store=state, api_key=given.api_key, rules=rules)
    limiter = limits.Limiter()
    controls = control.Control(store=state, api=the_api, rules=rules, limiter=limiter, sender=sender)
    listening = server.Server((given.host, given.port), api=the_api, control=controls, rules=rules, limiter=limiter)
    return listening, [settlements.Ticker(state), *([sender] if sender else [])]


def main() -> None:
    """Serve until SIGTERM or SIGINT; calls under way lose their connection, which every client must survive anyway."""
    given = options(sys.argv[1:])
    if sentence := problem(given):
        sys.exit(sentence)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    try:
        listening, threads = assemble(given)
    except (OSError, store.Unusable) as error:
        sys.exit(f"The Stripe sandbox cannot start on {given.host}:{given.port}, {given.data}: {error}")
    serve(listening, threads)


def serve(listening: server.Server, threads: list[settlements.Ticker | webhooks.Sender]) -> None:
    """Answer calls until a signal ends it."""

    def end(number: int, frame: FrameType | None) -> None:
        threading.Thread(target=listening.shutdown).start()  # shutdown waits for the loop that this handler interrupts

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    for thread in threads:
        thread.start()
    print(f"listening on http://{listening.server_name}:{listening.server_port}", flush=True)  # noqa: T201 - for whoever started us
    listening.serve_forever(poll_interval=0.1)
    for thread in threads:
        thread.stop()


if __name__ == "__main__":
    main()
