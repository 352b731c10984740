"""What a check looks at: a value, where it stands, and its text."""

from dataclasses import dataclass

from stretto.validation.answer import NoJson, read_json
from stretto.vocabulary.values import Json


@dataclass(frozen=True, slots=True)
class Subject:
    value: Json  # of a text that holds JSON, that JSON
    text: str | None  # as it was written, if it was text
    place: str = ""  # 'findings[2].title'; '' is the answer itself

    @property
    def is_root(self) -> bool:
        return not self.place

    @property
    def is_prose(self) -> bool:
        return isinstance(self.value, str)

    @property
    def called(self) -> str:
        return f"`{self.place}`" if self.place else "the answer"

    def field(self, key: str) -> "Subject":
        assert isinstance(self.value, dict)
        place = f"{self.place}.{key}" if self.place else key
        return _subject(self.value[key], place[:200])

    def element(self, index: int, value: Json) -> "Subject":
        return _subject(value, f"{self.place}[{index}]"[:200])


def _subject(value: Json, place: str) -> Subject:
    return Subject(value, value if isinstance(value, str) else None, place)


def subject_of(output: Json) -> Subject:
    if not isinstance(output, str):
        return Subject(output, None)
    found = read_json(output)
    # A JSON text is still text: only what has a structure, or is a number, is more than that.
    if isinstance(found, NoJson | str | None):
        return Subject(output, output)
    return Subject(found, output)
