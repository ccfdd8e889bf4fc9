"""The language model behind one door: which one, what it is shown, and what its failures mean."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from agent.tools import Tool
from ledger import wiring

TIMEOUT = 60.0  # seconds without a byte from the provider
OFFLINE = "offline"


class Unavailable(Exception):
    """The model could not answer now; the same request may succeed later."""


class Unusable(Exception):
    """The model refused the request as it is; sending it again cannot help."""


@dataclass(frozen=True)
class Model:
    """A chat model and the name that evidence knows it by."""

    chat: BaseChatModel
    name: str


@cache
def installed() -> Model:
    """Return the model that settings name, else the offline stand-in."""
    if not settings.BACKSTOP_MODEL:
        return Model(wiring.plugged("BACKSTOP_OFFLINE_MODEL")(), OFFLINE)
    from langchain.chat_models import init_chat_model

    # retries are the graph's: a client that retries by itself hides how long a call takes
    options: dict[str, Any] = {"max_retries": 0, "timeout": TIMEOUT}
    if settings.BACKSTOP_MODEL_BASE_URL:
        options["base_url"] = settings.BACKSTOP_MODEL_BASE_URL
    if settings.BACKSTOP_MODEL.startswith("openai:"):
        options["stream_usage"] = True  # left out of streams otherwise when the base URL is not the default
    return Model(init_chat_model(settings.BACKSTOP_MODEL, **options), settings.BACKSTOP_MODEL)


def stream(model: Model, messages: Sequence[BaseMessage], *, tools: Mapping[str, Tool]) -> Iterator[AIMessage]:
    """Yield the model's chunks (or one whole message). Raises Unavailable and Unusable, without any text of the provider's."""
    try:
        for chunk in model.chat.bind_tools(schemas(tools)).stream(list(messages)):
            if isinstance(chunk, AIMessage):
                yield chunk
    except Exception as error:
        raise _meaning(error) from error


def schemas(tools: Mapping[str, Tool]) -> list[dict[str, Any]]:
    """Return what the model is told about the tools."""
    return [_schema(tool) for tool in tools.values()]


@cache
def _schema(tool: Tool) -> dict[str, Any]:
    parameters = tool.arguments.model_json_schema()
    parameters.pop("title", None)
    parameters.pop("description", None)
    return {"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": parameters}}


def _meaning(error: Exception) -> Exception:
    """Return what an exception of any provider's client means; the clients share no base class, only habits."""
    status = getattr(error, "status_code", None)
    name = type(error).__name__
    if isinstance(status, int):
        kind: type[Exception] = Unavailable if status in (408, 409, 429) or status >= 500 else Unusable
        return kind(f"the provider answered {status}")
    if isinstance(error, OSError) or any(word in name for word in ("Timeout", "Connect", "Protocol", "ReadError", "Overloaded")):
        return Unavailable(name)
    return Unusable(name)
