"""One question to a local model. In: a body and schemas. Out: Heard; faults as pydantic-ai's own."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from pydantic_ai.exceptions import (
    ModelContextWindowExceededError,
    ModelRequestRejectedError,
    ModelServerError,
)

from stretto.adapters.models.local.process import Died, Heard, LlamaProcess, Refused
from stretto.vocabulary.values import Json


@dataclass(frozen=True, slots=True)
class Answering:
    process: LlamaProcess
    model_name: str
    body: dict[str, Json]

    async def heard(self, schemas: Sequence[dict[str, Json]]) -> AsyncGenerator[Heard]:
        """Tries one schema after the other until llama.cpp takes one: it refuses before a word."""
        bodies = [{**self.body, "response_format": _format(schema)} for schema in schemas]
        for n, body in enumerate(bodies or [self.body], 1):
            try:
                async with aclosing(self.process.ask(body)) as heard:
                    async for each in heard:
                        yield each
                return
            except Refused as refused:
                if refused.is_too_long:
                    raise self._too_long(refused) from refused
                if n >= len(bodies):
                    message = f"llama.cpp refuses the request: {refused.message}"
                    raise ModelRequestRejectedError(self.model_name, message) from refused
            except Died as died:
                raise ModelServerError(self.model_name, str(died)) from died

    def _too_long(self, refused: Refused) -> ModelContextWindowExceededError:
        message = f"the prompt is too long for {self.model_name}: {refused.message}"
        return ModelContextWindowExceededError(self.model_name, message)


def _format(schema: dict[str, Json]) -> Json:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
