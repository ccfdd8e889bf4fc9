"""Conversations, the graph that runs them, and the transactional tools node."""

import os

# Read by LangGraph when it is first imported: a checkpoint may only hold messages and JSON-like values, and loading one
# never imports or calls what a row names.
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"
