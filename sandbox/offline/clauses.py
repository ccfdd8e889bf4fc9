"""A message cut into the shortest clauses that each are an act; whatever is left over makes the whole message not understood."""

import re
from collections.abc import Sequence

from sandbox.offline import patterns, tokens, vocabulary
from sandbox.offline.tokens import END, Token

BARE = {"create": ("charge", "apply"), "void": ("reissue",)}  # "void and reissue the October invoice": what may share a target
REPEATED = frozenset({"AMT", "PER"})  # "… and €120 for November"


class NotUnderstood(Exception):
    """The message is not carried out; the text says why, to the person who typed it; `unknown` are the words at fault."""

    def __init__(self, text: str, *, unknown: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.unknown = tuple(unknown)


def _sentences(found: Sequence[Token]) -> list[list[Token]]:
    sentences: list[list[Token]] = [[]]
    for token in found:
        if token.tag == END:
            sentences.append([])
        else:
            sentences[-1].append(token)
    return [sentence for sentence in sentences if tags_of(sentence)]


def tags_of(clause: Sequence[Token]) -> tuple[str, ...]:
    """Return the tags that count, separators at the ends left out."""
    tags = [token.tag for token in clause if token.tag not in vocabulary.SILENT]
    while tags and tags[0] in tokens.SEPARATORS:
        tags.pop(0)
    while tags and tags[-1] in tokens.SEPARATORS:
        tags.pop()
    return tuple(tags)


Clause = tuple[str, tuple[Token, ...]]


def of_message(found: Sequence[Token]) -> list[Clause]:
    """Return the clauses of a message with the act that each is, the shortest that are one; raises NotUnderstood."""
    clauses: list[Clause] = []
    for sentence in _completed(_sentences(found)):
        split = _split(tuple(sentence), tuple(clauses)) or _split(tuple(sentence), ())
        if split is None:
            words = re.sub(r" (?=[,.:'])", "", " ".join(token.text for token in sentence))
            raise NotUnderstood(f"I did not understand “{words}”, so I did nothing.")
        clauses = split if split[: len(clauses)] == clauses else [*clauses, *split]
    return clauses


def _completed(sentences: Sequence[list[Token]]) -> list[list[Token]]:
    """Join a sentence that only says how much with the one before that does not: "Invoice November. The amount is €480." """
    result: list[list[Token]] = []
    for sentence in sentences:
        amount_alone = set(tags_of(sentence)) <= {"AMT", "EACH", "IT"} and "AMT" in tags_of(sentence)
        if result and amount_alone and "AMT" not in tags_of(result[-1]):
            result[-1] = [*result[-1], Token(tag="COMMA", text=","), *sentence]
        else:
            result.append(list(sentence))
    return result


def _split(rest: tuple[Token, ...], before: tuple[Clause, ...]) -> list[Clause] | None:
    if not tags_of(rest):
        return list(before)
    for end in range(1, len(rest) + 1):
        if end < len(rest) and rest[end].tag not in tokens.SEPARATORS:
            continue
        clause, after = rest[:end], rest[end:]
        if before and not _may_begin(clause, before):
            return None
        name = recognise(tags_of(clause), before) if _has_one_verb_side(clause) else None
        if name and not (is_bare(clause) and not _may_be_bare(name, after)):
            found = _split(after, (*before, (name, clause)))
            if found is not None:
                return found
    return None


def recognise(tags: tuple[str, ...], before: Sequence[Clause]) -> str | None:
    """Return the act of a clause; an amount and a month alone repeat the act before them."""
    if not tags:
        return None
    if before and REPEATED <= set(tags) <= REPEATED | {"EACH", "TO", "WITH", "NEW"}:
        name, clause = before[-1]
        repeats = set(tags_of(clause)) >= REPEATED and ("NEW" not in tags or name == "create") and not patterns.is_limit(tags)
        return name if repeats else None
    if before and set(tags) <= {"REASON", "CAUSE"}:
        return "because"
    names = [name for name, _ in before]
    found = next((pattern.act for pattern in patterns.PATTERNS if pattern.fits(tags, before=names)), None)
    return None if found not in patterns.READ and patterns.is_limit(tags) else found


def _may_begin(clause: Sequence[Token], before: Sequence[Clause]) -> bool:
    """Say whether a clause after another may begin so: what has no verb and says nothing alone belongs to the clause before.

    Without a verb, "the rest by card" and "€50 from their credit" say enough after what they belong to.
    """
    first: list[Token] = []
    for token in clause:
        if token.tag in tokens.SEPARATORS and tags_of(first):
            break
        first.append(token)
    if not is_fragment(first):
        return True
    name, names = recognise(tags_of(first), before), [name for name, _ in before]
    short = any(pattern.after and pattern.fits(tags_of(first), before=names) for pattern in patterns.PATTERNS)
    return short or name == before[-1][0]


def is_fragment(clause: Sequence[Token]) -> bool:
    """Say whether these words only name months, amounts, invoices and the like."""
    return not any(token.tag in patterns.BEGINNINGS for token in clause)


def _has_one_verb_side(clause: Sequence[Token]) -> bool:
    """Say whether all verbs stand between the same separators: "create and charge" is two acts, never one."""
    sides = [False]
    for token in clause:
        if token.tag in tokens.SEPARATORS:
            sides.append(False)
        sides[-1] = sides[-1] or token.tag in patterns.VERBS
    return sum(sides) <= 1


def is_bare(clause: Sequence[Token]) -> bool:
    return len(tags_of(clause)) == 1 and tags_of(clause)[0] in ("CREATE", "BILL", "VOID")


def _may_be_bare(name: str, after: Sequence[Token]) -> bool:
    following = _split(tuple(after), ())
    return bool(after and after[0].tag == "AND" and following and following[0][0] in BARE.get(name, ()))
