"""The nodes of the graph: state in, `Command` out. No transaction is open while the model is asked."""

import hashlib
from dataclasses import dataclass
from time import monotonic
from typing import Any, Literal
from uuid import uuid4

import structlog
from langchain_core.messages import AIMessage, SystemMessage, ToolMessage
from langgraph.errors import GraphDrained, NodeError
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt

from agent import batch, budgets, failures, llm, prompt, questions, replies, resumption, steps
from agent.answers import No
from agent.batch import Batch, BatchResult
from agent.drafts import Draft
from agent.runs import Run
from agent.state import State, call_ids, last_step, staff_text
from ledger.fingerprints import fingerprint

log = structlog.get_logger()

ROLLBACKS = 3  # failed steps in a row, then a person looks
Update = dict[str, Any]


# -- agent -------------------------------------------------------------------------------------


def agent(state: State, runtime: Runtime[Run]) -> Command[Literal["tools", "escalate", "__end__"]]:
    """Ask the model, and go where its answer points."""
    run = runtime.context
    if name := run.stopped_by():
        return Command(update={"messages": [_stopped(name)]}, goto="__end__")
    if reason := budgets.exceeded(state["turn"], limits=run.limits):
        return _escalate(state, run, "budget", reason=reason)
    began = monotonic()
    reply = _ask_model(state, run)
    if name := run.stopped_by():
        return Command(update={"messages": [_stopped(name, said=reply.text)]}, goto="__end__")
    message = reply.message(known_ids=call_ids(state), model=run.model.name, prompt_version=prompt.system().version)
    turn = budgets.after_model(state["turn"], tokens=reply.usage["total_tokens"], seconds=monotonic() - began)
    update: Update = {"messages": [message], "turn": turn}
    if not message.tool_calls and reply.given_up:
        question = _question(state, run, "budget", phase="after_answers", reason=questions.ENDLESS)
        return Command(update=update | {"question": question}, goto="escalate")
    if not message.tool_calls:
        return Command(update=update, goto="__end__")
    return Command(update=update | {"generation": 0, "approvals": [], "decision": {}}, goto="tools")


def _ask_model(state: State, run: Run) -> replies.Reply:
    """Stream the answer and show it as it grows. A shutdown, a stop or a limit ends it between two chunks: nothing is lost."""
    reply, draft = replies.Reply(), Draft(pool=run.pool, lease=run.lease)
    ends_at = monotonic() + budgets.seconds_left(state["turn"], limits=run.limits)
    messages = [SystemMessage(run.system_prompt()), *state["messages"]]
    try:
        for chunk in llm.stream(run.model, messages, tools=run.tools):
            if run.control.drain_requested:
                raise GraphDrained(run.control.drain_reason or "shutdown")
            if draft.add(reply.add(chunk)):
                run.stop.set()
            reply.given_up = reply.given_up or monotonic() >= ends_at
            if reply.given_up or run.stopped_by():
                break
    except Exception:
        draft.drop()
        raise
    return reply


def agent_failed(state: State, error: NodeError, runtime: Runtime[Run]) -> Command[Literal["escalate"]]:
    """Ask a person: the model stayed unreachable, or something unexpected failed."""
    _log_failure(error, runtime.context)
    reason = questions.UNREACHABLE_MODEL if _is(error, llm.Unavailable) else questions.UNEXPECTED
    if _is(error, llm.Unusable):
        reason = questions.UNUSABLE_MODEL
    return _escalate(state, runtime.context, "infrastructure", reason=reason)


# -- tools -------------------------------------------------------------------------------------


def tools(state: State, runtime: Runtime[Run]) -> Command[Literal["agent", "escalate", "__end__"]]:
    """Bring the newest step to its one outcome, and go where that points."""
    run, step, began = runtime.context, last_step(state), monotonic()
    stopped_by = run.stopped_by()
    rejected: tuple[No, str] | None = ("REJECTED", f"Stopped by {stopped_by}.") if stopped_by else resumption.rejection(state)
    given = steps.to_run(state, run, step=step, rejection=rejected)
    result = batch.run_batch(run.pool, batch=given, tools=run.tools)
    outcome = _Outcome(state=state, run=run, step=step, given=given, result=result, seconds=monotonic() - began)
    if result.kind in ("held", "drifted"):
        return outcome.held()
    if stopped_by and result.kind != "asked":
        return outcome.goto("__end__", {"messages": [*outcome.answers(), _stopped(stopped_by)]})
    return outcome.answered()


@dataclass(frozen=True, kw_only=True)
class _Outcome:
    """A batch's result on its way back into the state."""

    state: State
    run: Run
    step: AIMessage
    given: Batch
    result: BatchResult
    seconds: float

    def answered(self) -> Command[Any]:
        """Go on with the model, unless the step asked a person or too many failed."""
        if self.result.kind == "asked":
            asked = str(self.step.tool_calls[0]["args"].get("question", ""))
            return self.goto("escalate", {"question": self.question("asked", reason=f"The agent asks: {asked}", question=asked)})
        if self.rollbacks >= ROLLBACKS:
            return self.goto("escalate", {"question": self.question("rollbacks", reason=self.why_rolled_back())})
        return self.goto("agent", {})

    def held(self) -> Command[Any]:
        """Ask a person before anything runs, or again when what was approved is not what would happen now.

        The calls get their answers afterwards. What was approved stays in the state: it is what the next question follows.
        """
        drifted_from = self.given.permission.decision if self.result.kind == "drifted" and self.given.permission else None
        verdicts = [verdict.row() for verdict in self.result.verdicts]
        said = [questions.DRIFTED] if drifted_from else []
        reason = " ".join(dict.fromkeys([*said, *(verdict["sentence"] for verdict in verdicts)]))
        about: Update = {"reason": reason, "verdicts": verdicts, "drifted_from": drifted_from}
        question = self.question("approval", phase="before_answers", **about)
        return Command(update={"question": question, "decision": {}}, goto="escalate")

    def goto(self, node: str, more: Update) -> Command[Any]:
        """Return the command that stores the answers and what they count for."""
        turn = budgets.after_tools(self.state["turn"], seconds=self.seconds, failure=self.failure())
        messages = [*self.answers(), *(resumption.answer(self.state) if self.result.kind == "rejected" else [])]
        fresh: Update = {"messages": messages, "rollbacks": self.rollbacks, "turn": turn, "decision": {}, "approvals": []}
        return Command(update=fresh | more, goto=node)

    def answers(self) -> list[ToolMessage]:
        """Return the answer of each call, under an id that a repeated run gives again."""
        calls = self.step.tool_calls
        return [
            ToolMessage(
                id=f"{self.step.id}:{answer.call_index}",
                tool_call_id=str(calls[answer.call_index]["id"]),
                name=calls[answer.call_index]["name"],
                content=answer.text,
                status="success" if answer.status in ("applied", "asked") else "error",
                additional_kwargs={"outcome": answer.status},
            )
            for answer in self.result.answers
        ]

    @property
    def rollbacks(self) -> int:
        """Return the failed steps in a row, this one included; a step that applied or was decided about ends the row."""
        return self.state["rollbacks"] + 1 if self.result.kind in ("failed", "refused") else 0

    def failure(self) -> str | None:
        """Return what makes this failing step the same as another one."""
        if self.result.kind not in ("failed", "refused"):
            return None
        calls = {str(index): [call["name"], call["args"]] for index, call in enumerate(self.step.tool_calls)}
        return hashlib.sha256(fingerprint(tool="", arguments=calls)).hexdigest()[:16]

    def why_rolled_back(self) -> str:
        """Return the reason of a series of failures, in the words that the model read."""
        said = next((a.text.removeprefix("FAILED: ") for a in self.result.answers if a.status == "failed"), "")
        return f"{ROLLBACKS} attempts failed and nothing of them was saved. The last one: {said}"

    def question(self, kind: questions.Kind, *, phase: questions.Phase = "after_answers", **details: Any) -> questions.Question:
        """Return the question about this step, naming the attempt that holds its evidence."""
        about = {"step": self.step, "attempt_id": str(self.result.attempt_id)}
        return _question(self.state, self.run, kind, phase=phase, **about, **details)


def tools_failed(state: State, error: NodeError, runtime: Runtime[Run]) -> Command[Literal["escalate"]]:
    """Ask a person before the calls get answers: the database stayed away, or something unexpected failed."""
    run = runtime.context
    _log_failure(error, run)
    reason = questions.DATABASE if _is(error, failures.Infrastructure) else questions.UNEXPECTED
    question = _question(state, run, "infrastructure", phase="before_answers", reason=reason, step=last_step(state))
    return Command(update={"question": question, "decision": {}}, goto="escalate")


# -- escalate ----------------------------------------------------------------------------------


def escalate(state: State) -> Command[Literal["agent", "tools", "__end__"]]:
    """Wait for a person. The first statement is the only interrupt, because a resumed node runs from its beginning."""
    decision = interrupt(state["question"])
    update, goto = resumption.after(decision, state=state)
    return Command(update=update, goto=goto)


# -- shared ------------------------------------------------------------------------------------


def _escalate(state: State, run: Run, kind: questions.Kind, *, reason: str) -> Command[Any]:
    """Ask a person about a conversation in which every call has its answer."""
    return Command(update={"question": _question(state, run, kind, phase="after_answers", reason=reason)}, goto="escalate")


def _question(state: State, run: Run, kind: questions.Kind, **details: Any) -> questions.Question:
    return questions.ask(
        kind,
        generation=state.get("generation", 0),
        tools=run.tools,
        subject=run.subject,
        staff_message=staff_text(state),
        **details,
    )


def _stopped(name: str, *, said: str = "") -> AIMessage:
    return AIMessage(id=f"stop:{uuid4()}", content=f"{said}\n\nStopped by {name}.".strip())


def _is(error: NodeError, kind: type[Exception]) -> bool:
    """Return whether the failure is of a kind; after a crash only its text is left."""
    return isinstance(error.error, kind) or str(error.error).startswith(kind.__name__)


def _log_failure(error: NodeError, run: Run) -> None:
    unexpected = isinstance(error.error, BaseException) and not isinstance(error.error, llm.Unavailable | failures.Infrastructure)
    details = {"thread": str(run.thread), "node": error.node, "error": type(error.error).__name__}
    log.error("agent.node.failed", **details, exc_info=error.error if unexpected else None)
