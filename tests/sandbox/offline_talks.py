"""A conversation with the offline model alone: what staff say, what it sends, and answers as the tools node gives them."""

import json
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from agent import llm
from agent.answers import NEVER_RAN, UNDONE
from agent.tools import registry
from sandbox.offline.model import OfflineModel

PROMPT = "You help the billing support staff.\n\nFacts\ncustomer_id: {customer}\ncurrency: {currency}\ntoday: {today}"
NOVEMBER = {"invoice_id": 42, "billing_period": "2026-11-01", "status": "draft", "amount_minor": 48000, "amount_due_minor": 48000}
OCTOBER = {"invoice_id": 41, "billing_period": "2026-10-01", "status": "paid", "amount_minor": 64000, "amount_due_minor": 0}
SEPTEMBER = {
    "invoice_id": 40,
    "billing_period": "2026-09-01",
    "status": "charge_failed",
    "amount_minor": 7500,
    "amount_due_minor": 7500,
}
PAYMENT = {
    "invoice_id": 41,
    "billing_period": "2026-10-01",
    "amount_minor": 64000,
    "refunded_minor": 0,
    "refundable_minor": 64000,
    "refund_under_way": False,
}
ACCOUNT = {
    "customer_id": 42,
    "name": "Sample Cycles BV",
    "currency": "EUR",
    "card_last4": "4242",
    "credit_balance_minor": 12000,
    "open_invoices": [NOVEMBER, SEPTEMBER],
    "last_invoices": [NOVEMBER, OCTOBER, SEPTEMBER],
    "refundable_payments": [PAYMENT],
}


@cache
def model() -> Any:
    """Return the model with every tool bound."""
    return OfflineModel().bind_tools(llm.schemas(registry()))


@dataclass
class Talk:
    """One conversation about customer 42, who is billed in euros and whose day is 30 November 2026."""

    customer: int = 42
    currency: str = "EUR"
    today: str = "2026-11-30"
    account: dict[str, Any] = field(default_factory=lambda: dict(ACCOUNT))
    messages: list[BaseMessage] = field(default_factory=list)

    def __post_init__(self) -> None:
        prompt = PROMPT.format(customer=self.customer, currency=self.currency, today=self.today)
        self.messages = [SystemMessage(prompt)]
        self.model = model()

    def say(self, text: str) -> AIMessage:
        """Send a message and return the answer; what the model looks up first is answered."""
        self.messages.append(HumanMessage(text))
        return self.goes_on()

    def goes_on(self) -> AIMessage:
        """Return the next answer, past a look-up."""
        reply = self.step()
        if [call["name"] for call in reply.tool_calls] == ["LookUpCustomer"]:
            self._answer([json.dumps(self.account)])
            return self.step()
        return reply

    def step(self) -> AIMessage:
        """Return exactly the next answer."""
        reply = self.model.invoke(self.messages)
        assert isinstance(reply, AIMessage)
        self.messages.append(reply)
        return reply

    def apply(self, *results: dict[str, Any]) -> AIMessage:
        """Answer every call as applied."""
        given = [*results, *[{} for _ in range(len(self._calls()) - len(results))]]
        self._answer([json.dumps(result) for result in given])
        return self.goes_on()

    def fail(self, index: int, sentence: str, *, look_up: bool = True) -> AIMessage:
        """Answer one call as failed and the others as not applied."""
        texts = [UNDONE if position < index else NEVER_RAN for position in range(len(self._calls()))]
        texts[index] = f"FAILED: {sentence}"
        self._answer(texts)
        return self.goes_on() if look_up else self.step()

    def told(self, *texts: str) -> AIMessage:
        """Answer every call with these very words."""
        self._answer(list(texts))
        return self.step()

    def reject(self, reason: str) -> AIMessage:
        """Answer every call as rejected by a person."""
        text = f"REJECTED: {reason} Nothing of this step was saved. Do not send it again."
        self._answer([text] * len(self._calls()))
        return self.step()

    def reviewer(self, answer: str) -> AIMessage:
        """Let a reviewer answer."""
        return self.say(f"A reviewer answers: {answer}")

    def _calls(self) -> list[Any]:
        last = self.messages[-1]
        assert isinstance(last, AIMessage)
        return [*last.tool_calls, *last.invalid_tool_calls]

    def _answer(self, texts: list[str]) -> None:
        for call, text in zip(self._calls(), texts, strict=True):
            error = text.startswith(("FAILED", "NOT APPLIED", "REJECTED", "WITHDRAWN", "EXPIRED", "ANSWERED"))
            self.messages.append(ToolMessage(text, tool_call_id=call["id"], status="error" if error else "success"))


def sent(
    reply: AIMessage, *, without: tuple[str, ...] = ("customer_id", "currency", "reason")
) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls of an answer, without the arguments that every call has."""
    return [
        (call["name"], {name: value for name, value in call["args"].items() if name not in without}) for call in reply.tool_calls
    ]
