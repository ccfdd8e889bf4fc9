"""Effects on the outside world: messages committed with their cause, delivered once."""
