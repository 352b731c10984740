"""A model behind OpenAI's chat completions. In: an Endpoint and a name. Out: pydantic-ai's Model.

It speaks HTTP itself, because the SDK takes 0.8 s to import and five times the CPU of this for a
call. One instance serves any number of calls at once, in any event loop.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpcore2
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import (
    CompletedStreamedResponse,
    Model,
    ModelRequestParameters,
    StreamedResponse,
    check_allow_model_requests,
)
from pydantic_ai.profiles import DEFAULT_THINKING_TAGS, ModelProfile
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext
from pydantic_ai.usage import RequestUsage

from stretto.adapters.models import openai_errors as errors
from stretto.adapters.models.http_client import Headers, client_of
from stretto.adapters.models.openai_answers import (
    Object,
    finish_reason_of,
    object_in,
    objects_in,
    parsed_object,
    parts_of,
    text_in,
    usage_of,
)
from stretto.adapters.models.openai_endpoint import Endpoint
from stretto.adapters.models.openai_messages import request_body
from stretto.adapters.models.openai_stream import OpenAIStream, body_parts

_PATH = "chat/completions"
# What all of them can, or say clearly that they cannot.
PROFILE = ModelProfile(
    supports_json_schema_output=True,
    supports_json_object_output=True,
    supports_inline_system_prompts=True,
)


class OpenAICompatibleModel(Model[None]):
    def __init__(
        self,
        model_name: str,
        endpoint: Endpoint,
        *,
        settings: ModelSettings | None = None,
        profile: ModelProfile | None = None,
    ) -> None:
        super().__init__(settings=settings, profile=profile or PROFILE)
        self._model_name = model_name
        self._endpoint = endpoint

    @property
    def model_name(self) -> str:
        return self._model_name

    @property
    def system(self) -> str:
        return self._endpoint.provider

    @property
    def base_url(self) -> str:
        return self._endpoint.base_url

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        settings, parameters = self._prepared(model_settings, model_request_parameters)
        async with self._answer(messages, settings, parameters, is_stream=False) as response:
            body = await self._whole(response)
        return self._response(body)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        settings, parameters = self._prepared(model_settings, model_request_parameters)
        async with self._answer(messages, settings, parameters, is_stream=True) as response:
            if _content_type(response) == "application/json":
                # Who cannot stream answers in one piece.
                whole = self._response(await self._whole(response))
                yield CompletedStreamedResponse(
                    whole, model_request_parameters=parameters, replay_events=True
                )
                return
            yield OpenAIStream(
                model_request_parameters=parameters,
                response=response,
                endpoint=self._endpoint,
                asked_model=self._model_name,
                thinking_tags=self._thinking_tags,
            )

    def _prepared(
        self, settings: ModelSettings | None, parameters: ModelRequestParameters
    ) -> tuple[ModelSettings, ModelRequestParameters]:
        check_allow_model_requests()
        merged, parameters = self.prepare_request(settings, parameters)
        return merged or ModelSettings(), parameters

    @property
    def _thinking_tags(self) -> tuple[str, str]:
        return self.profile.get("thinking_tags", DEFAULT_THINKING_TAGS)

    @asynccontextmanager
    async def _answer(
        self,
        messages: list[ModelMessage],
        settings: ModelSettings,
        parameters: ModelRequestParameters,
        *,
        is_stream: bool,
    ) -> AsyncGenerator[httpcore2.Response]:
        """An answer with status 200 and of a kind that we read."""
        endpoint = self._endpoint
        body = request_body(
            self._model_name, messages, settings, parameters,
            is_stream=is_stream,
            provider=endpoint.provider,
            max_tokens_key=endpoint.max_tokens_key,
            is_reasoning=bool(self.profile.get("openai_supports_reasoning")),
        )  # fmt: skip
        idle_seconds = _seconds(settings, endpoint.idle_seconds)
        async with errors.transport_errors(self._model_name, endpoint):
            client = await client_of(endpoint.base_url)
            async with client.send(
                "POST",
                endpoint.target(_PATH),
                _headers(endpoint, settings, len(body)),
                body,
                idle_seconds=idle_seconds,
                connect_seconds=min(idle_seconds, endpoint.connect_seconds),
            ) as response:
                if response.status != 200:
                    raise await self._refusal(response)
                if _content_type(response) not in ("application/json", "text/event-stream"):
                    what = f"answered with {_content_type(response) or 'no content type'}"
                    raise errors.unexpected(what, await self._whole(response), endpoint)
                yield response

    async def _refusal(self, response: httpcore2.Response) -> Exception:
        body = await self._whole(response)
        headers = {
            name.decode("latin-1").lower(): text.decode("latin-1")
            for name, text in response.headers
        }
        return errors.status_error(response.status, headers, body, self._model_name, self._endpoint)

    async def _whole(self, response: httpcore2.Response) -> bytes:
        return b"".join([part async for part in body_parts(response, self._endpoint)])

    def _response(self, body: bytes) -> ModelResponse:
        endpoint = self._endpoint
        answer = parsed_object(body)
        if answer is None:
            raise errors.unexpected("sent what is not JSON", body, endpoint)
        if error := answer.get("error"):
            raise errors.stream_error(error, self._model_name, endpoint)
        choices = objects_in(answer, "choices")
        if not choices:
            raise errors.unexpected("sent no choices", body, endpoint)
        message, reason = object_in(choices[0], "message"), choices[0].get("finish_reason")
        details = _details(message, reason)
        return ModelResponse(
            parts_of(message, endpoint.provider, self._thinking_tags),
            usage=usage_of(answer) or RequestUsage(unmeasured_requests=1),
            model_name=text_in(answer, "model") or self._model_name,
            provider_name=endpoint.provider,
            provider_url=endpoint.base_url,
            provider_details=details,
            provider_response_id=text_in(answer, "id") or None,
            finish_reason="content_filter" if "refusal" in details else finish_reason_of(reason),
        )


def _details(message: Object, reason: object) -> dict[str, Any]:
    details: dict[str, Any] = {"finish_reason": reason} if reason else {}
    if refusal := text_in(message, "refusal"):
        details["refusal"] = refusal
    return details


def _content_type(response: httpcore2.Response) -> str:
    kinds = (text for name, text in response.headers if name.lower() == b"content-type")
    return next(kinds, b"").decode("latin-1").partition(";")[0].strip().lower()


def _seconds(settings: ModelSettings, default: float) -> float:
    seconds = settings.get("timeout", default)
    if not isinstance(seconds, int | float) or not seconds > 0:
        raise UserError("the setting `timeout` must be a number of seconds above 0")
    return float(seconds)


def _headers(endpoint: Endpoint, settings: ModelSettings, length: int) -> Headers:
    headers = [*endpoint.headers, (b"Content-Length", b"%d" % length)]
    more: Mapping[str, str] = settings.get("extra_headers") or {}
    return [
        *headers,
        *((name.encode("ascii"), text.encode("latin-1")) for name, text in more.items()),
    ]
