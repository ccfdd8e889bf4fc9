"""The guarantees, and what is checked of each, as docs/invariants.md says it."""

from ledger import invariants

GUARANTEES = {
    1: "A batch is applied wholly or not at all, and the books add up.",
    2: "A tool call is applied at most once; its ledger row exists if and only if its effects do.",
    3: "The model sees nothing that it must not, and every tool call gets exactly one answer.",
    4: "Nothing external happens inside a transaction; every external effect has exactly one outbox row.",
    5: "One intent moves money at the provider at most once; where that cannot be known, it waits for a person.",
    6: "Every attempt leaves evidence that outlives its rollback.",
    7: "A conversation acts on its own customer only; the database refuses the rest.",
    8: "Nobody approves their own request; what runs is what was approved.",
    9: "A worker that lost its lease can change nothing.",
    10: "The audit trail is append-only.",
    11: "After any fault ends, every conversation is finished, waiting for a person, or running; none is stuck.",
}
HEAD = """# What must be true, always

`manage.py check_invariants` runs a query for each of these, all in one snapshot that blocks nobody, and exits with 1 if one has
a row. This list is written by `manage.py document_invariants`; a test compares it. Those marked *in time* allow what is under
way its time; with `--quiet` they allow it none, for a moment when nothing is running. `--json` is for machines, `--times` says
how long each took.

The books are also compared with the provider's own log of what moved, where there is one that can be asked: the Stripe
sandbox's. With a real provider the command says that this was not compared.

To add one, write an `Invariant` into your app's `invariants.py`, and how it is broken by hand into `tests/invariants/`.
"""
COMPARED = {
    "sandbox.provider_answers": "The sandbox says what moved.",
    "sandbox.movement_is_ours": "Whatever moved, moved for a message of ours.",
    "sandbox.movement_is_settled": "Money moved only for messages that succeeded, or whose outcome is still being found out.",
    "sandbox.movement_is_as_asked": "What moved has the amount, currency, customer and object of its message.",
    "sandbox.moved_once": "No message moved money twice.",
    "sandbox.success_moved": "Every message that succeeded moved its money.",
    "sandbox.refusal_moved_nothing": "A message that was refused moved nothing, or it came back, or a person has put it right.",
    "sandbox.failed_afterwards": "A refund that succeeded is reversed in the books when it failed afterwards, and only then.",
    "sandbox.sums_agree": "Payments less refunds are, per currency, what moved.",
}


def document() -> str:
    """Return docs/invariants.md for the installed apps."""
    every = invariants.every()
    parts = [HEAD]
    for number, sentence in GUARANTEES.items():
        lines = [f"| `{one.name}` | {one.says}{' *in time*' if one.age else ''} |" for one in every if one.guarantee == number]
        parts.append(f"## {number}. {sentence}\n\n| name | says |\n|---|---|\n" + "\n".join(lines) + "\n")
    compared = "\n".join(f"| `{name}` | {says} |" for name, says in COMPARED.items())
    parts.append(f"## Books and provider\n\n| name | says |\n|---|---|\n{compared}\n")
    return "\n".join(parts)
