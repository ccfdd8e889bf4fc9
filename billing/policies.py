"""The rules that a call of billing must pass, in this order. Currency and caps need none: the database judges them."""

from agent.gate import Rule, kill_switch, per_call

RULES: tuple[Rule, ...] = (kill_switch, per_call)
