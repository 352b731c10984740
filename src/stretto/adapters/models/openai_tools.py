"""Offer tools and ask for a format. In: what an agent wants. Out: the fields that say so."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings, ToolOrOutput
from pydantic_ai.tools import ToolDefinition

from stretto.vocabulary.values import Json

_Offer: TypeAlias = tuple[Sequence[ToolDefinition], Json]


def tools_of(settings: ModelSettings, parameters: ModelRequestParameters) -> Mapping[str, Json]:
    tools, choice = _offer(settings, parameters)
    if not tools:
        return {}
    fields: dict[str, Json] = {"tools": [_tool(tool) for tool in tools]}
    if choice is not None:
        fields["tool_choice"] = choice
    if "parallel_tool_calls" in settings:
        fields["parallel_tool_calls"] = settings["parallel_tool_calls"]
    return fields


def _offer(settings: ModelSettings, parameters: ModelRequestParameters) -> _Offer:
    functions, outputs = parameters.declared_function_tools, parameters.output_tools
    every = [*functions, *outputs]
    # An agent that may not end in text must call something: its output is a tool, too.
    default = None if parameters.allow_text_output else "required"
    match settings.get("tool_choice"):
        case "none":
            return (outputs, default) if outputs else (functions, "none")
        case "required":
            return functions, "required"
        case ToolOrOutput(function_tools=names):
            return [*_named(functions, names), *outputs], default
        case list() as names:
            chosen = _named(every, names)
            return chosen, _only(chosen[0]) if len(chosen) == 1 else "required"
        case _:
            return every, default


def _named(tools: Sequence[ToolDefinition], names: Sequence[str]) -> list[ToolDefinition]:
    return [tool for tool in tools if tool.name in names]


def _only(tool: ToolDefinition) -> Json:
    return {"type": "function", "function": {"name": tool.name}}


def _tool(tool: ToolDefinition) -> Json:
    function: dict[str, Json] = {
        "name": tool.name,
        "description": tool.description or "",
        "parameters": tool.parameters_json_schema,
    }
    if tool.strict:
        function["strict"] = True
    return {"type": "function", "function": function}


def response_format_of(parameters: ModelRequestParameters) -> Mapping[str, Json]:
    if parameters.output_mode == "prompted":
        return {"response_format": {"type": "json_object"}}
    if parameters.output_mode != "native" or parameters.output_object is None:
        return {}
    output = parameters.output_object
    schema: dict[str, Json] = {"name": output.name or "final_result", "schema": output.json_schema}
    if output.description:
        schema["description"] = output.description
    if output.strict is not None:
        schema["strict"] = output.strict
    return {"response_format": {"type": "json_schema", "json_schema": schema}}
