"""JSON values: what inputs, outputs and the journal hold."""

from typing import NewType, TypeAlias

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
JsonText = NewType("JsonText", str)  # a value as its text: compact, in ASCII
