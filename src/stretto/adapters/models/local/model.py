"""A local model as pydantic-ai sees one. In: messages and what is wanted. Out: a response.

Native output and tools are held to a grammar while they are written, so that what comes is JSON
even from a tiny model. Nothing here uses a network.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings

from stretto.adapters.models.local.actions import action_schema, tool_words
from stretto.adapters.models.local.answering import Answering
from stretto.adapters.models.local.catalog import PREFIX, TINY_NOTICE, Loadable
from stretto.adapters.models.local.process import process_for
from stretto.adapters.models.local.prompting import chat
from stretto.adapters.models.local.schemas import any_object, ladder
from stretto.adapters.models.local.streaming import LocalStream
from stretto.vocabulary.values import Json

# Low, and with a fixed seed: the same question to the same weights gets the same answer.
_TEMPERATURE = 0.2
_TOP_P = 0.9
_SEED = 7
# A tiny model falls into saying one thing for ever. This makes the next word of a phrase that was
# said before less likely; a penalty on single words would hit the signs that JSON repeats.
_AGAINST_LOOPS: dict[str, Json] = {
    "dry_multiplier": 0.8,
    "dry_base": 1.75,
    "dry_allowed_length": 3,
    "dry_penalty_last_n": 512,
    # By default a new line ends a sequence, and so a line could be said over and over.
    "dry_sequence_breakers": ['"', ":"],
}
# In plain text a colon ends nothing either: lines that end with one were said over and over.
_AGAINST_LOOPS_OF_TEXT: dict[str, Json] = {**_AGAINST_LOOPS, "dry_sequence_breakers": ['"']}


class LocalModel(Model[None]):
    def __init__(self, loadable: Loadable, settings: ModelSettings | None = None) -> None:
        profile = ModelProfile(
            # One that is tiny takes a tool for the answer, and calls it until its turns are up.
            supports_tools=not loadable.traits.is_tiny,
            supports_json_schema_output=True,
            supports_json_object_output=True,
            default_structured_output_mode="native",
            supports_image_input=False,
            supports_document_input=False,
            supports_audio_file_input=False,
            supports_video_input=False,
            context_window=loadable.traits.context_tokens,
        )
        super().__init__(settings=settings, profile=profile)
        self._loadable = loadable

    @property
    def model_name(self) -> str:
        return self._loadable.model.removeprefix(PREFIX)

    @property
    def system(self) -> str:
        return PREFIX.rstrip(":")

    @property
    def provider(self) -> None:
        return None

    @property
    def notice(self) -> str:
        """What a user should know before reading its answers; empty for a model of some use."""
        return TINY_NOTICE if self._loadable.traits.is_tiny else ""

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        asked = self.request_stream(messages, model_settings, model_request_parameters)
        async with asked as stream:
            async for _ in stream:
                pass
            return stream.get()

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        settings, parameters = self.prepare_request(model_settings, model_request_parameters)
        tools = [*parameters.declared_function_tools, *parameters.output_tools]
        words = tool_words(tools) if tools else ""
        instructions = self._get_instruction_parts(messages, parameters) or []
        body = {
            **self._sampling(settings or {}, is_text=not self._schemas(parameters)),
            "messages": chat(messages, instructions, words),
        }
        answering = Answering(process_for(self._loadable), self.model_name, body)
        stream = LocalStream(
            model_request_parameters=parameters,
            name=self.model_name,
            heard=answering.heard(self._schemas(parameters)),
            has_actions=bool(tools),
        )
        try:
            yield stream
        finally:
            await stream.close_stream()

    def _schemas(self, parameters: ModelRequestParameters) -> tuple[dict[str, Json], ...]:
        """What the answer is held to, best first; none for plain text."""
        traits = self._loadable.traits
        wanted = parameters.output_object
        schema = cast(Mapping[str, Json], wanted.json_schema) if wanted is not None else None
        tools = [*parameters.declared_function_tools, *parameters.output_tools]
        if tools:
            may_answer = parameters.output_mode != "tool" or parameters.allow_text_output
            return ladder(action_schema(tools, schema, may_answer), traits)
        if schema is not None:
            return ladder(schema, traits)
        return (any_object(traits),) if parameters.output_mode == "prompted" else ()

    def _sampling(self, settings: Mapping[str, Any], is_text: bool) -> dict[str, Json]:
        traits = self._loadable.traits
        against_loops = _AGAINST_LOOPS_OF_TEXT if is_text else _AGAINST_LOOPS
        most = settings.get("max_tokens") or traits.output_tokens
        return {
            "max_tokens": min(most, traits.context_tokens),
            "temperature": settings.get("temperature", _TEMPERATURE),
            "top_p": settings.get("top_p", _TOP_P),
            "seed": settings.get("seed", _SEED),
            "stop": list(settings.get("stop_sequences") or ()),
            "cache_prompt": True,
            **(against_loops if traits.is_tiny else {}),
        }
