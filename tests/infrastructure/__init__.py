"""Databases, brokers and networks that fail under the agent and the outbox."""
