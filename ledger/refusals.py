"""The one error that a domain verb raises for an expected failure."""


class Refusal(Exception):
    """A rule said no. The sentence is safe for the model and for staff: no SQL, no table, no other customer's data."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence
