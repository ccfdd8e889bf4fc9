"""The matrix: every fault point, each time that a conversation comes by it, and a real process killed right there."""
