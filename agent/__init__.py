"""Conversations, the graph that runs them, and the transactional tools node."""
