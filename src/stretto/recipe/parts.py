"""Make the parts of a recipe (the classes of `model`) from the fields that were read."""

import json
import re
import shlex
import sys
from collections.abc import Mapping
from typing import Any, cast

from msgspec import Struct

from stretto.documents.kinds import Identifier, ShapeOf, Text
from stretto.documents.node import (
    ListNode,
    MapNode,
    Node,
    Path,
    RefusedNode,
    ScalarNode,
    describe,
    plain,
)
from stretto.documents.shapes import Fields, JsonSchema, Kind, Reading
from stretto.recipe.model import (
    Agent,
    Backoff,
    Branch,
    Budget,
    Condition,
    Delegation,
    Effect,
    Format,
    Input,
    InputType,
    Loop,
    Map,
    MergeBack,
    OnFailure,
    Output,
    Parallel,
    Policy,
    Posture,
    RecipeUse,
    Retry,
    ShellCommand,
    Stage,
    Step,
    Switch,
    Validation,
    Wait,
    Work,
)
from stretto.text.short import closest
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import AgentId, InputName, StepId

INPUT_TYPES = ("string", "number", "boolean", "json", "file_path")
STEP_TYPES = ("sequential", "parallel", "conditional", "loop", "map", "command", "workflow")
POLICIES = ("inline", "skip", "block", "abort")
_POLICY_WORDS = {
    **dict.fromkeys(
        ("continue", "ignore", "pass", "warn"), "write inline, so that the run goes on"
    ),
    **dict.fromkeys(("fail", "stop", "raise", "error", "halt"), "write abort, which ends the run"),
    "retry": "write retry: {max_attempts: …} in its place",
}
# Which key makes a step which type; a step with none of them is sequential.
_TYPE_OF_KEY = {
    "parallel": "parallel",
    "condition": "conditional",
    "switch": "conditional",
    "loop": "loop",
    "map": "map",
    "run": "command",
    "workflow": "workflow",
}
# Keys of a step that only an agent obeys, and keys that only a command has.
_AGENT_ONLY = ("prompt", "input", "task", "model", "max_output_tokens")
_COMMAND_ONLY = ("env", "stdin", "effect")
_INSTRUCTIONS = ("prompt", "input", "task")
# What the steps of another recipe say for themselves, and the step that uses it cannot.
_INNER_ONLY = (
    "agent", "subagent", *_AGENT_ONLY, "retry", "posture", "permission_mode", "read_set",
    "write_set", "workspace_mode", "merge_back", "merge_when", "recovery", "cache",
)  # fmt: skip


class OnFailureKind(Kind[OnFailure]):
    called = "inline, skip, block, abort or fallback:AGENT"

    def read(self, node: Node, at: Path, reading: Reading) -> OnFailure | None:
        if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
            meant = node.entries.get("fallback") if isinstance(node, MapNode) else None
            hint = f"write fallback:{meant.written[:60]}" if isinstance(meant, ScalarNode) else ""
            return self.report_mistyped(node, at, reading, hint)
        if node.value in POLICIES:
            return OnFailure(policy=cast(Policy, sys.intern(node.written)))
        if node.value.startswith("fallback:"):
            agent = node.value.removeprefix("fallback:").strip()
            if agent:
                return OnFailure(fallback=AgentId(agent))
        guess = closest(node.value, (*POLICIES, "fallback:AGENT"))
        hint = f"did you mean '{guess}'?" if guess else f"write {self.called}"
        hint = _POLICY_WORDS.get(node.value.lower(), hint)
        if spelt := re.fullmatch(r"fallback(?:\(|[ =_-]+(?:to )?)([\w-]+)\)?", node.value):
            hint = f"write fallback:{spelt[1]}"
        reading.problem_at("RCP109", node, at, f"'{node.value[:60]}' is not a failure policy", hint)
        return None

    def schema(self) -> JsonSchema:
        return {"anyOf": [{"enum": list(POLICIES)}, {"type": "string", "pattern": "^fallback:.+$"}]}


class MergeChoice(Struct, frozen=True):
    how: MergeBack
    after: StepId | None = None


class MergeBackKind(Kind[MergeChoice]):
    called = "auto, manual, never, or 'after STEP'"

    def read(self, node: Node, at: Path, reading: Reading) -> MergeChoice | None:
        if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
            return self.report_mistyped(node, at, reading)
        if node.value in ("auto", "manual", "never"):
            return MergeChoice(cast(MergeBack, sys.intern(node.value)))
        word, _, after = node.value.strip().partition(" ")
        if word == "after" and after.strip():
            return MergeChoice("after", StepId(after.strip()))
        guess = closest(node.value, ("auto", "manual", "never"))
        hint = f"did you mean '{guess}'?" if guess else f"write {self.called}"
        reading.problem_at(
            "RCP109", node, at, f"'{node.value[:60]}' is not a value of 'merge_back'", hint
        )
        return None

    def schema(self) -> JsonSchema:
        named = {"type": "string", "pattern": "^after .+$"}
        return {"anyOf": [{"enum": ["auto", "manual", "never"]}, named]}


class WaitKind(Kind[Any]):
    called = "all, any, or a number of branches"

    def read(self, node: Node, at: Path, reading: Reading) -> Wait | None:
        if isinstance(node, ScalarNode):
            if node.value in ("all", "any"):
                return cast(Wait, node.value)
            if type(node.value) is int and node.value >= 1:
                return node.value
        if isinstance(node, RefusedNode):
            return None
        shown = f"'{node.written[:40]}'" if isinstance(node, ScalarNode) else "this"
        hint = f"write {self.called}"
        if isinstance(node, ScalarNode) and isinstance(node.value, str) and node.value.isdecimal():
            hint = f"write {int(node.value)}, without quotes"
        reading.problem_at("RCP112", node, at, f"{shown} is not something to wait for", hint)
        return None

    def schema(self) -> JsonSchema:
        return {"anyOf": [{"enum": ["all", "any"]}, {"type": "integer", "minimum": 1}]}


class OverKind(Text):
    """The list of a map. A list that is written out is written as JSON, in quotes."""

    def __init__(self) -> None:
        super().__init__("text that is not empty", may_be_blank=False)

    def read(self, node: Node, at: Path, reading: Reading) -> str | None:
        if isinstance(node, ListNode):
            written = json.dumps(plain(node), ensure_ascii=False)
            hint = f"write it as JSON, in quotes: '{written}'"
            return self.report_mistyped(node, at, reading, hint)
        return super().read(node, at, reading)


class CommandText(Text):
    """One text for the shell; other tools also take a list of words."""

    def __init__(self) -> None:
        super().__init__("a command", may_be_blank=False)

    def read(self, node: Node, at: Path, reading: Reading) -> str | None:
        if isinstance(node, ListNode) and all(isinstance(each, ScalarNode) for each in node.items):
            words = [each.written for each in node.items if isinstance(each, ScalarNode)]
            return self.report_mistyped(node, at, reading, f"write {shlex.join(words)[:200]}")
        return super().read(node, at, reading)


class NamedInput(ShapeOf[Input]):
    """An input in a list, which needs a name; make_input sees to that."""

    def schema(self) -> JsonSchema:
        return {**super().schema(), "required": ["name"]}


class InputsByName(Kind[tuple[Input, ...]]):
    """`inputs: {topic: {required: true}, tone: }`"""

    called = "a mapping of name to input"

    def __init__(self, one: Kind[Input]) -> None:
        self.one = one

    def read(self, node: Node, at: Path, reading: Reading) -> tuple[Input, ...]:
        assert isinstance(node, MapNode)
        inputs = []
        for name, entry in node.entries.items():
            if Identifier().read(node.keys[name], (*at, name), reading) is None:
                continue
            body = entry
            if isinstance(entry, ScalarNode):
                body = MapNode(entry.start, entry.end)
                if entry.value is not None:
                    # The value is most likely meant as the default.
                    message = f"'{name}' must be a mapping, not {describe(entry)}"
                    hint = f"write {name}: {{default: {entry.written[:60]}}}"
                    reading.problem_at("RCP103", entry, (*at, name), message, hint)
            read = self.one.read(body, (*at, name), reading)
            if read is not None:
                inputs.append(read)
        return tuple(inputs)

    def schema(self) -> JsonSchema:
        value = {"anyOf": [self.one.schema(), {"type": "null"}]}
        return {"type": "object", "additionalProperties": value}


def make_input(fields: Fields, reading: Reading) -> Input | None:
    # In a mapping the name is the key the fields stand under; in a list it is a field.
    is_named_by_key = isinstance(fields.at[-1], str)
    name = fields.get("name", str)
    if is_named_by_key:
        if fields.written("name") and name != fields.at[-1]:
            reading.problem_at(
                "RCP114",
                fields.key("name"),
                fields.path("name"),
                "this input is named by its key already",
                "remove 'name'",
            )
        name = str(fields.at[-1])
    elif not fields.written("name") and not fields.has_unknown:
        reading.problem_at(
            "RCP102",
            fields.node,
            fields.at,
            "an input needs 'name'",
            "name: what templates call it",
        )
    if name is None:
        return None
    # Beside a type that cannot be read, which is told already, any default will do.
    written_type = fields.get("type", str) or ("json" if fields.written("type") else "string")
    is_shaped = written_type in ("object", "array")
    default = fields.node.entries.get("default")
    return Input(
        name=InputName(name),
        at=fields.at,
        type=cast(InputType, "json" if is_shaped else written_type),
        shape=cast(Any, written_type) if is_shaped else None,
        is_required=fields.get("required", bool) or False,
        # `default:` with nothing behind it is the default null, which says the same as none.
        has_default=default is not None and plain(default) is not None,
        default=plain(default) if default is not None else None,
        description=fields.get("description", str) or "",
        enum=tuple(_plain_items(fields.node.entries.get("enum"))),
    )


def _plain_items(node: Node | None) -> list[Json]:
    value = plain(node) if node is not None else []
    return value if isinstance(value, list) else []


def make_retry(fields: Fields, reading: Reading) -> Retry:
    return Retry(
        fields.get("max_attempts", int),
        cast("Backoff | None", fields.get("backoff", str)),
        fields.get("on_failure", OnFailure),
    )


def make_validation(fields: Fields, reading: Reading) -> Validation:
    return Validation(fields.get("schema", dict), fields.many("rules") or ())


def make_output(fields: Fields, reading: Reading) -> Output:
    return Output(
        fields.get("store_as", str),
        cast("Format | None", fields.get("format", str)),
        fields.get("schema", dict),
    )


def make_budget(fields: Fields, reading: Reading) -> Budget:
    return Budget(fields.get("tokens", int), fields.get("usd", float), fields.get("agents", int))


def make_agent(fields: Fields, reading: Reading) -> Agent:
    role = fields.get("role", str) or fields.get("description", str) or ""
    return Agent(
        id=AgentId(str(fields.at[-1])),
        at=fields.at,
        name=fields.get("name", str) or "",
        role=role,
        prompt=fields.get("prompt", str) or "",
        tools=fields.many("tools") or (),
        disallowed_tools=fields.many("disallowed_tools") or (),
        model=fields.get("model", str),
        fallback_models=fields.many("fallback_models") or (),
        max_turns=fields.get("max_turns", int),
        max_output_tokens=fields.get("max_output_tokens", int),
        timeout_seconds=timeout_of(fields, reading),
        timeout_template=fields.get("timeout", str),
        retry=fields.get("retry", Retry) or Retry(),
        validation=fields.get("validation", Validation) or Validation(),
        posture=cast("Posture | None", fields.get("posture", str)),
        is_local=True,
    )


def make_branch(fields: Fields, reading: Reading) -> Branch:
    instruction, instruction_at = _instruction(fields, reading)
    agent = _agent(fields, reading)
    return Branch(fields.at, agent, instruction, instruction_at, fields.get("output_key", str))


def make_condition(fields: Fields, reading: Reading) -> Condition:
    return Condition(fields.get("eval", str), fields.get("true", str), fields.get("false", str))


def make_switch(fields: Fields, reading: Reading) -> Switch:
    cases: Mapping[str, str] = fields.get("cases", dict) or {}
    return Switch(fields.get("value", str), cases, fields.get("default", str))


def make_loop(fields: Fields, reading: Reading) -> Loop:
    ends = fields.written("validator", "until")
    if not ends and not fields.has_unknown:
        reading.problem_at(
            "RCP102",
            fields.node,
            fields.at,
            "'loop' needs 'validator' or 'until'",
            "validator: who judges the output, or until: an expression that ends it",
        )
    elif len(ends) == 2:
        reading.problem_at(
            "RCP114",
            fields.key("until"),
            fields.path("until"),
            "'loop' has both 'validator' and 'until'",
            "keep one of them",
        )
    agent, validator = fields.get("agent", str), fields.get("validator", str)
    return Loop(
        AgentId(agent) if agent else None,
        AgentId(validator) if validator else None,
        fields.get("until", str),
        fields.get("max_iterations", int),
        fields.get("feedback_path", str),
        fields.get("validator", ShellCommand),
    )


def make_command(fields: Fields, reading: Reading) -> ShellCommand:
    return ShellCommand(
        fields.at,
        fields.get("run", str),
        fields.get("env", dict) or {},
        fields.get("stdin", str),
        cast("Effect | None", fields.get("effect", str)),
    )


def make_stage(fields: Fields, reading: Reading) -> Stage:
    instruction, instruction_at = _instruction(fields, reading)
    return Stage(fields.at, _agent(fields, reading), instruction, instruction_at)


def make_map(fields: Fields, reading: Reading) -> Map:
    doers = fields.written("agent", "stages")
    if not doers and not fields.has_unknown:
        reading.problem_at(
            "RCP102",
            fields.node,
            fields.at,
            "'map' needs 'agent' or 'stages'",
            "agent: who does it for each element",
        )
    elif len(doers) == 2:
        reading.problem_at(
            "RCP114",
            fields.key("stages"),
            fields.path("stages"),
            "'map' has both 'agent' and 'stages'",
            "make the agent the first stage",
        )
    instruction, instruction_at = _instruction(fields, reading)
    agent, reduce = fields.get("agent", str), fields.get("reduce", str)
    return Map(
        over=fields.get("over", str),
        agent=AgentId(agent) if agent else None,
        reduce=AgentId(reduce) if reduce else None,
        instruction=instruction,
        instruction_at=instruction_at,
        batch_size=fields.get("batch_size", int),
        max_items=fields.get("max_items", int),
        on_item_failure=cast(Any, fields.get("on_item_failure", str)),
        stages=fields.many("stages") or (),
    )


# Keys of a step whose value is taken as it was read, and what the model calls them.
_TAKEN = {
    "when": "when",
    "model": "model",
    "retry": "retry",
    "on_failure": "on_failure",
    "read_set": "read_set",
    "write_set": "write_set",
    "workspace_mode": "workspace_mode",
    "merge_when": "merge_when",
    "recovery": "recovery",
    "output": "output",
    "cache": "is_cached",
    "max_output_tokens": "max_output_tokens",
}


def make_step(fields: Fields, reading: Reading) -> Step:
    instruction, instruction_at = _instruction(fields, reading)
    depends_on = fields.many("depends_on")
    if depends_on is None and "depends_on" in fields.node.entries:
        depends_on = ()  # `depends_on:` with nothing behind it: no edges, not "not written"
    merge = fields.get("merge_back", MergeChoice)
    # Most steps write few of the keys, so only those that are written are looked at.
    taken: dict[str, Any] = {
        _TAKEN[name]: value
        for name, value in fields.values.items()
        if name in _TAKEN and value is not None
    }
    return Step(
        # A step without a readable id is still checked; its place stands in for the name.
        id=StepId(fields.get("id", str) or f"#{fields.at[-1]}"),
        at=fields.at,
        work=_work(fields, reading),
        instruction=instruction,
        instruction_at=instruction_at,
        depends_on=depends_on,
        timeout_seconds=timeout_of(fields, reading),
        timeout_template=fields.get("timeout", str),
        is_gated=fields.get("gate", str) == "human",
        posture=_posture(fields, reading),
        merge_back=merge.how if merge else None,
        merge_after=merge.after if merge else None,
        **taken,
    )


def _work(fields: Fields, reading: Reading) -> Work:
    made_by = tuple(key for key in _TYPE_OF_KEY if key in fields.node.entries)
    kind = _TYPE_OF_KEY[made_by[0]] if made_by else "sequential"
    _check_type(fields, reading, made_by, kind)
    agent = _agent(fields, reading)
    match made_by[0] if made_by else "agent":
        case "parallel":
            return Parallel(fields.many("parallel") or (), fields.values.get("wait") or "all")  # type: ignore[arg-type]
        case "condition":
            return fields.get("condition", Condition) or Condition(None)
        case "switch":
            return fields.get("switch", Switch) or Switch(None)
        case "loop":
            return fields.get("loop", Loop) or Loop(None)
        case "map":
            return fields.get("map", Map) or Map(None)
        case "run":
            return make_command(fields, reading)
        case "workflow":
            return RecipeUse(fields.get("workflow", str), fields.get("inputs", dict) or {})
        case _:
            return Delegation(agent)


def _check_type(fields: Fields, reading: Reading, made_by: tuple[str, ...], kind: str) -> None:
    for other in made_by[1:]:
        reading.problem_at(
            "RCP113",
            fields.key(other),
            fields.path(other),
            f"a step cannot have both '{made_by[0]}' and '{other}'",
            "make two steps of it",
        )
    written = fields.get("type", str)
    # A key that belongs under the one that is missing, such as `validator`, says what was meant.
    is_told = not made_by and fields.has_unknown
    if written is not None and written != kind and not is_told:
        wanted = next((key for key, made in _TYPE_OF_KEY.items() if made == written), "agent")
        has = f"'{made_by[0]}:'" if made_by else f"no '{wanted}:'"
        reading.problem_at(
            "RCP113",
            fields.node.entries["type"],
            fields.path("type"),
            f"the type is '{written}', but the step has {has}",
            f"write type: {kind}, or leave it out",
        )
    if made_by and fields.path(made_by[0]) in reading.guessed:
        return  # another key may have been meant
    _check_keys_of_kinds(fields, reading, kind)
    is_agent_apart = kind not in ("command", "workflow") and fields.written(*made_by)
    for name in fields.written("agent", "subagent") if is_agent_apart else ():
        where = "in each branch" if kind == "parallel" else f"under '{made_by[0]}:'"
        reading.problem_at(
            "RCP113",
            fields.key(name),
            fields.path(name),
            f"a {kind} step has no agent of its own",
            f"write agents {where}",
        )


def _check_keys_of_kinds(fields: Fields, reading: Reading, kind: str) -> None:
    _check_command_keys(fields, reading, kind)
    _check_workflow_keys(fields, reading, kind)
    if kind != "parallel" and fields.written("wait"):
        reading.problem_at(
            "RCP113",
            fields.key("wait"),
            fields.path("wait"),
            "'wait' belongs to a parallel step",
            "remove it, or list branches under parallel:",
        )


def _check_command_keys(fields: Fields, reading: Reading, kind: str) -> None:
    is_command = kind == "command"
    names = ("agent", "subagent", *_AGENT_ONLY) if is_command else _COMMAND_ONLY
    for name in fields.written(*names):
        message = f"'{name}' belongs to a step with 'run:'"
        hint = "remove it, or write the command that it is for under run:"
        if is_command:
            message = f"a command step has no '{name}': no model is asked"
            hint = "remove it; values reach a command by env: and stdin:"
        reading.problem_at("RCP113", fields.key(name), fields.path(name), message, hint)


def _check_workflow_keys(fields: Fields, reading: Reading, kind: str) -> None:
    if kind != "workflow":
        for name in fields.written("inputs"):
            if fields.path(name) in reading.guessed:
                continue
            message = "'inputs' belongs to a step with 'workflow:'"
            hint = "remove it, or name the recipe that it is for under workflow:"
            reading.problem_at("RCP113", fields.key(name), fields.path(name), message, hint)
        return
    for name in fields.written(*_INNER_ONLY):
        message = f"a workflow step has no '{name}': the steps of that recipe say it"
        hint = "remove it, or write it in the steps of that recipe"
        if name in _INSTRUCTIONS:
            hint = "give it values by inputs:"
        reading.problem_at("RCP113", fields.key(name), fields.path(name), message, hint)


def _agent(fields: Fields, reading: Reading) -> AgentId | None:
    written = fields.written("agent", "subagent")
    if len(written) == 2:
        reading.problem_at(
            "RCP114",
            fields.key("subagent"),
            fields.path("subagent"),
            "'agent' and 'subagent' are the same word",
            "keep one of them",
        )
    agent = fields.get("agent", str) or fields.get("subagent", str)
    return AgentId(agent) if agent else None


def _instruction(fields: Fields, reading: Reading) -> tuple[str | None, Path]:
    written = fields.written(*_INSTRUCTIONS)
    for other in written[1:]:
        reading.problem_at(
            "RCP114",
            fields.key(other),
            fields.path(other),
            f"'{written[0]}' and '{other}' both say what the agent is told",
            "keep one of them",
        )
    if not written:
        return None, fields.at
    return fields.get(written[0], str), fields.path(written[0])


def timeout_of(fields: Fields, reading: Reading) -> float | None:
    written = fields.written("timeout", "timeout_ms")
    if len(written) == 2:
        reading.problem_at(
            "RCP114",
            fields.key("timeout_ms"),
            fields.path("timeout_ms"),
            "'timeout' and 'timeout_ms' are both written",
            "keep one of them",
        )
    return fields.get("timeout", float) or fields.get("timeout_ms", float)


def _posture(fields: Fields, reading: Reading) -> Posture | None:
    if len(fields.written("posture", "permission_mode")) == 2:
        reading.problem_at(
            "RCP114",
            fields.key("permission_mode"),
            fields.path("permission_mode"),
            "'posture' and 'permission_mode' say the same",
            "keep one of them",
        )
    mode = fields.get("permission_mode", str)
    from_mode = None if mode is None else "read_only" if mode == "read_only" else "writer"
    return cast("Posture | None", fields.get("posture", str) or from_mode)
