"""Put streamed tool calls together. In: pieces as servers send them. Out: pieces of named calls.

pydantic-ai wants a call's name first, and fails over a call that never gets one. Servers repeat
the name in every piece, number all calls 0, or, when a model writes nonsense, send no name at all.
"""

from dataclasses import dataclass

from stretto.adapters.models.openai_answers import Object, object_in, text_in


@dataclass(slots=True)
class _Call:
    key: str
    id: str = ""
    name: str = ""
    held: str = ""  # arguments that came before the name


@dataclass(frozen=True, slots=True)
class Piece:
    key: str  # the same for all pieces of one call
    name: str | None
    arguments: str
    id: str | None


class Calls:
    def __init__(self) -> None:
        self._by_index: dict[int, _Call] = {}
        self._begun = 0

    def piece(self, sent: Object, place: int) -> Piece | None:
        """None as long as the call has no name. `place` stands in for an index that is missing."""
        index, function = sent.get("index"), object_in(sent, "function")
        call_id, name = text_in(sent, "id"), text_in(function, "name")
        call = self._call(index if isinstance(index, int) else place, call_id, name)
        call.id = call.id or call_id
        arguments = text_in(function, "arguments")
        if call.name:
            return Piece(call.key, None, arguments, None)
        call.held += arguments
        if not name:
            return None
        call.name = name
        return Piece(call.key, name, call.held, call.id or None)

    def _call(self, index: int, call_id: str, name: str) -> _Call:
        known = self._by_index.get(index)
        is_another = known is not None and name and call_id and known.id not in ("", call_id)
        if known is None or is_another:
            self._begun += 1
            known = self._by_index[index] = _Call(f"call {self._begun}")
        return known
