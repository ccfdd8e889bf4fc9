"""The words that the offline model knows, read from vocabulary.toml."""

import tomllib
from pathlib import Path

# Tags that carry no meaning for a request; everything else must be accounted for by a pattern of intents.py.
SILENT = frozenset({"FILL", "REQUEST", "DEF", "INDEF", "OWN", "PREP"})
# Words that are verbs where a clause begins, and nouns or adjectives elsewhere.
OPENERS = {"INVOICE": "BILL", "CREDIT": "CREDITING", "DRAFT": "CREATE"}

FILE = Path(__file__).with_suffix(".toml")
_words = tomllib.loads(FILE.read_text())
TAGS: dict[str, str] = {phrase: tag for tag, phrases in _words["tags"].items() for phrase in phrases}
# By the tag of the text that follows them.
MARKERS: dict[str, list[str]] = _words["markers"]
ASKING_VERBS: list[str] = _words["asking"]["verbs"]
PEOPLE: list[str] = _words["asking"]["people"]
