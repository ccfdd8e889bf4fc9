"""The words that the offline model knows, read from vocabulary.toml."""

import tomllib
from pathlib import Path

# Tags that carry no meaning for a request; everything else must be accounted for by a pattern of intents.py.
SILENT = frozenset({"FILL", "REQUEST", "PLEA", "WISH", "DEF", "INDEF", "OWN", "PREP"})
# Words that are verbs where a clause begins, and nouns or adjectives elsewhere.
OPENERS = {"INVOICE": "BILL", "CREDIT": "CREDITING", "DRAFT": "CREATE", "CLEAR": "SETTLE"}
ELSEWHERE = {"CLEAR": "THROUGH", "ANY": "ASKING"}

FILE = Path(__file__).with_suffix(".toml")
_words = tomllib.loads(FILE.read_text())
_passive = _words["passive"]
# "should be voided" and the like.
DUTIES: dict[str, str] = {
    f"{obligation} {participle}": tag
    for tag, participles in _passive["verbs"].items()
    for participle in participles
    for obligation in _passive["obligations"]
}
TAGS: dict[str, str] = {phrase: tag for tag, phrases in _words["tags"].items() for phrase in phrases} | DUTIES
# What "I want the invoice …" may end in, by the text.
PARTICIPLES: dict[str, str] = {word: tag for tag, words in _passive["verbs"].items() for word in words}
# What ends a statement: "the charge failed".
ENDINGS = ("failed", "bounced")
WANTS = ("want", "wants", "they want", "they'd like", "they would like", "would like")  # with a participle these are wishes
# By the tag of the text that follows them.
MARKERS: dict[str, list[str]] = _words["markers"]
ASKING_VERBS: list[str] = _words["asking"]["verbs"]
PEOPLE: list[str] = _words["asking"]["people"]
