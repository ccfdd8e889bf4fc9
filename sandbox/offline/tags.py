"""What a token is where it stands: a verb or a noun, an amount or a number, by the tokens around it."""

from dataclasses import replace

from sandbox.offline import amounts, vocabulary
from sandbox.offline.tokens import END, SEPARATORS, UNKNOWN, Setting, Token, scan

COUNTED = frozenset({"PREP", "CHARGE", "REFUND", "USE", "APPLY", "DEDUCT", "TAKE"})  # a number after one of these is an amount


def tagged(text: str, *, setting: Setting) -> list[Token]:
    """Return the tokens of a message, nothing left out, each with the tag that it has in its place."""
    found = _statements(_wishes(_verbs(_ranges(scan(text, setting=setting)))))
    return _amounts_without_currency(found, setting=setting)


def _ranges(tokens: list[Token]) -> list[Token]:
    """Turn a dash between months into a word of its own, and any other dash into a comma."""

    def between(index: int) -> bool:
        return 0 < index < len(tokens) - 1 and tokens[index - 1].tag == tokens[index + 1].tag == "PER"

    return [
        replace(token, tag="UNTIL" if between(index) else "COMMA") if token.tag == "DASH" else token
        for index, token in enumerate(tokens)
    ]


def _verbs(tokens: list[Token]) -> list[Token]:
    """Tell verbs from nouns: "invoice November" asks for an invoice, "void the November invoice" does not."""
    result: list[Token] = []
    for token in tokens:
        verb = vocabulary.OPENERS.get(token.tag)
        tag = verb if verb and _opens_a_clause(result) else vocabulary.ELSEWHERE.get(token.tag, token.tag)
        if result and result[-1].text.lower() == "any" and tag in ("CREDIT", "BALANCE"):
            result[-1] = replace(result[-1], tag="ALL")  # "use any credit that they have"
        result.append(replace(token, tag=tag))
    return result


def _wishes(tokens: list[Token]) -> list[Token]:
    """Read "I want the invoice voided" as the order that it is: a participle after a wish, and not after "was", is a verb."""
    result: list[Token] = []
    wish: int | None = None
    due = False  # "should be" came before
    for index, token in enumerate(tokens):
        verb = vocabulary.PARTICIPLES.get(token.text.lower())
        if verb and wish is not None and wish < index - 1 and result[-1].tag != "ASKING":
            result[wish] = replace(result[wish], tag="WISH")
            token = replace(token, tag=verb)
        elif verb and due and result[-1].tag not in ("ASKING", "INDEF", "DEF"):
            token = replace(token, tag=verb)  # "should be voided and reissued"
        elif token.tag == "WISH" or token.text.lower() in vocabulary.WANTS or _lets(tokens, index):
            wish = index
        elif token.tag == END:
            wish = None
        due = (due and token.tag != END) or token.text.lower() in vocabulary.DUTIES
        result.append(token)
    return result


def _lets(tokens: list[Token], index: int) -> bool:
    """Say whether this is the "have" of "have the card charged"."""
    following = tokens[index + 1].tag if index + 1 < len(tokens) else END
    return tokens[index].text.lower() == "have" and following in ("DEF", "IT", "REST")


def _statements(tokens: list[Token]) -> list[Token]:
    """Read "the charge failed" as a statement, unlike "charge the failed one"; never as an order."""
    last = [index + 1 == len(tokens) or tokens[index + 1].tag in SEPARATORS | {END} for index in range(len(tokens))]
    asked = any(token.tag == "ASKING" for token in tokens)
    return [
        replace(token, tag="WRONG") if ends and not asked and token.text.lower() in vocabulary.ENDINGS else token
        for token, ends in zip(tokens, last, strict=True)
    ]


def _opens_a_clause(before: list[Token]) -> bool:
    """Say whether a clause begins after these tokens, polite words and "for November" aside."""
    rest = list(before)
    while rest and rest[-1].tag in ("FILL", "REQUEST", "PLEA", "HELLO", "THANKS"):
        rest.pop()
    if not rest or rest[-1].tag in SEPARATORS or rest[-1].tag == END:
        return True
    return len(rest) >= 2 and rest[-1].tag == "PER" and rest[-2].tag == "PREP" and _opens_a_clause(rest[:-2])


def _amounts_without_currency(tokens: list[Token], *, setting: Setting) -> list[Token]:
    """Read a bare number after a word such as "for" as an amount in the customer's currency, unless it looks like a year."""
    result: list[Token] = []
    for token in tokens:
        before = result[-1].tag if result else ""
        if (
            token.tag == "NUMBER"
            and before in ("AND", "COMMA")
            and len(result) > 1
            and result[-2].tag == "INV"
            and token.text.isdigit()
        ):
            token = replace(token, tag="INV", value=int(token.text))
        elif token.tag == "NUMBER":
            usable = (
                (before in COUNTED or (before == "THEM" and len(result) > 1 and result[-2].tag in COUNTED | {"BILL", "GIVE"}))
                and setting.currency
                and not _is_year(token.text)
            )
            value = amounts.bare(token.text, currency=setting.currency) if usable else None
            token = replace(token, tag="AMT" if usable else UNKNOWN, value=value)
        result.append(token)
    return result


def _is_year(text: str) -> bool:
    return text.isdigit() and 1900 <= int(text) <= 2100
