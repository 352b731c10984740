"""Every key a recipe may have: one table for reading, for `stretto schema` and for the docs."""

from dataclasses import replace

from stretto.documents.kinds import (
    Amount,
    AnyMap,
    Anything,
    Choice,
    Count,
    Duration,
    Either,
    Flag,
    Identifier,
    ListOf,
    MapOf,
    Milliseconds,
    NameOr,
    ShapeOf,
    Text,
    Version,
)
from stretto.documents.shapes import JsonSchema, Key, Shape
from stretto.recipe import parts

_ID = Identifier()
_DURATION = Duration()
_MILLISECONDS = Milliseconds()
_SENTENCE = Text("text that is not empty", may_be_blank=False)
_LINE = Text("one line of text", may_be_blank=False, one_line=True)
_TOOLS = ListOf(_LINE, or_commas=True)
_GLOBS = ListOf(Text("a glob"), or_one=True)
_POLICY = parts.OnFailureKind()
_ATTEMPTS = Count(1, 100)
_OUTPUT_TOKENS = Count(1, 10_000_000)

# --- small parts ---------------------------------------------------------------------------

RETRY = Shape("'retry'", "How often, and how patiently, a failed attempt is tried again.", (
    Key("max_attempts", _ATTEMPTS, "attempts in all; 1 means no retry"),
    Key("backoff", Choice("none", "linear", "exponential"),
        "none, linear (5 s × n) or exponential (2ⁿ s), with jitter, at most 60 s"),
    Key("on_failure", _POLICY, "what happens once every attempt has failed"),
), may_be_empty=True)  # fmt: skip
VALIDATION = Shape("'validation'", "What an agent's output must satisfy.", (
    Key("schema", AnyMap(), "a JSON schema for the output"),
    Key("rules", ListOf(_SENTENCE, or_one=True), "rules in plain English"),
), may_be_empty=True)  # fmt: skip
OUTPUT = Shape("'output'", "What a step's output is, and the name it is kept under.", (
    Key("store_as", Text("a name", may_be_blank=False, one_line=True),
        "a name that templates may use for this output"),
    Key("format", Choice("json", "text", "markdown"), "what the output must be"),
    Key("schema", AnyMap(), "a JSON schema for the output"),
), may_be_empty=True)  # fmt: skip
BUDGET = Shape("'budget'", "What a run may cost; it stops before the call that would exceed it.", (
    Key("tokens", Count(1, 10**12), "tokens of all calls together"),
    Key("usd", Amount(), "US dollars of all calls together"),
    Key("agents", Count(1, 10**6), "subagents deployed"),
), may_be_empty=True)  # fmt: skip
INPUT = Shape("an input", "A named parameter of the recipe.", (
    Key("name", _ID, "the name templates use: {{inputs.NAME}}"),
    Key("type", Choice(*parts.INPUT_TYPES, same={"object": "object", "array": "array"}),
        "what its values are; string by default"),
    Key("required", Flag(), "must it be given?"),
    Key("default", Anything(), "the value when it is not given"),
    Key("description", Text(), "what it is for"),
    Key("enum", ListOf(Anything()), "the values it may have"),
), may_be_empty=True)  # fmt: skip
INPUTS = Either(
    ListOf(parts.NamedInput(INPUT, parts.make_input)),
    parts.InputsByName(ShapeOf(INPUT, parts.make_input)),
    "a list of inputs, or a mapping of name to input",
)

# --- agents --------------------------------------------------------------------------------

AGENT = Shape("an agent", "Who does the work: a role, a prompt, tools and limits.", (
    Key("name", Text(), "what people call it"),
    Key("role", Text(), "what it is for, in a line"),
    Key("description", Text(), "the same as role, as agent files write it"),
    Key("prompt", Text(), "what it is told before anything else"),
    Key("tools", _TOOLS, "the tools it may use; none when not written"),
    Key("disallowed_tools", _TOOLS, "tools it may not use, whatever `tools` says"),
    Key("model", _LINE, "provider:name"),
    Key("fallback_models", ListOf(_LINE, or_one=True), "models to turn to when that one fails"),
    Key("max_turns", Count(1, 1000), "model turns of one attempt"),
    Key("max_output_tokens", _OUTPUT_TOKENS, "tokens of one answer; an answer that is cut fails"),
    Key("timeout", _DURATION, "how long one attempt may take"),
    Key("timeout_ms", _MILLISECONDS, "the same in milliseconds"),
    Key("retry", ShapeOf(RETRY, parts.make_retry), "retries of a failed attempt"),
    Key("validation", ShapeOf(VALIDATION, parts.make_validation), "what its output must satisfy"),
    Key("posture", Choice("read_only", "writer"), "may it change files?"),
), may_be_empty=True)  # fmt: skip

# --- steps ---------------------------------------------------------------------------------

_INSTRUCTION = (
    Key("input", Text(), "what it gets: a template"),
    Key("prompt", Text(), "what it is told: a template"),
    Key("task", Text(), "what it is told: a template"),
)
_AGENT_KEYS = (
    Key("agent", _ID, "the agent that does it"),
    Key("subagent", _ID, "the same as agent"),
)
BRANCH = Shape("a branch", "One of several delegations that start together.", (
    *_AGENT_KEYS,
    *_INSTRUCTION,
    Key("output_key", _ID, "its name in steps.ID.outputs; the agent's id by default"),
), may_be_empty=True)  # fmt: skip
CONDITION = Shape("'condition'", "Which of two ways to go.", (
    Key("eval", _SENTENCE, "an expression", is_required=True),
    Key("true", _ID, "a step to run, or an agent to run here, when it holds"),
    Key("false", _ID, "the same for when it does not"),
), may_be_empty=True)  # fmt: skip
SWITCH = Shape("'switch'", "Which of several ways to go.", (
    Key("value", _SENTENCE, "an expression", is_required=True),
    Key("cases", MapOf(_ID, keys_are_ids=False), "value → step or agent", is_required=True),
    Key("default", _ID, "where to go when no case fits"),
), may_be_empty=True)  # fmt: skip
_COMMAND_KEYS = (
    Key("run", Text("a command", may_be_blank=False),
        "a command: one line or a script; values reach it by env and stdin", may_be_empty=False),
    Key("env", MapOf(Text(), keys_are_ids=False), "environment variables: NAME → template"),
    Key("stdin", Text(), "what it reads on standard input: a template"),
    Key("effect", Choice("idempotent", "in_doubt"),
        "idempotent: after a crash it may run again unasked; in_doubt by default"),
)  # fmt: skip
COMMAND = Shape("a command", "A command that judges: exit code 0 passes.", (
    replace(_COMMAND_KEYS[0], is_required=True),
    *_COMMAND_KEYS[1:],
))  # fmt: skip
LOOP = Shape("'loop'", "Run an agent again until its output is good.", (
    Key("agent", _ID, "the agent that produces", is_required=True),
    Key("validator", NameOr(_ID, ShapeOf(COMMAND, parts.make_command)),
        "the agent that judges, or a command; `passed: true` or exit code 0 ends the loop"),
    Key("until", _SENTENCE, "an expression that ends the loop"),
    Key("max_iterations", Count(1, 1000), "how often at the most; 3 by default"),
    Key("feedback_path", _SENTENCE, "where the judge's feedback stands"),
), may_be_empty=True)  # fmt: skip
STAGE = Shape("a stage", "One stage of a pipeline that every element goes through.", (
    *_AGENT_KEYS,
    *_INSTRUCTION,
), may_be_empty=True)  # fmt: skip
MAP = Shape("'map'", "One delegation per element of a list.", (
    Key("over", _SENTENCE, "the list: a template", is_required=True),
    Key("agent", _ID, "the agent for each element"),
    Key("reduce", _ID, "the agent that gets the collected results"),
    *_INSTRUCTION,
    Key("batch_size", Count(1, 1000), "how many at once; 20 by default"),
    Key("max_items", Count(1, 10_000_000), "how many elements are allowed"),
    Key("on_item_failure", Choice("inline", "skip", "abort"),
        "an element that failed: its error text, null, or the whole step fails"),
    Key("stages", ListOf(ShapeOf(STAGE, parts.make_stage)), "a pipeline for each element"),
), may_be_empty=True)  # fmt: skip
STEP = Shape("a step", "One piece of work, and what it waits for.", (
    Key("id", _ID, "its name, unique in the recipe", is_required=True),
    Key("type", Choice(*parts.STEP_TYPES), "optional: the keys below already tell"),
    *_AGENT_KEYS,
    *_INSTRUCTION,
    Key("depends_on", ListOf(_ID, or_one=True), "the steps it waits for"),
    Key("when", _SENTENCE, "an expression: the step is skipped unless it holds"),
    Key("parallel", ListOf(ShapeOf(BRANCH, parts.make_branch)), "branches that start together", may_be_empty=False),
    Key("wait", parts.WaitKind(), "all, any, or how many branches must succeed"),
    Key("condition", ShapeOf(CONDITION, parts.make_condition), "which of two ways to go", may_be_empty=False),
    Key("switch", ShapeOf(SWITCH, parts.make_switch), "which of several ways to go", may_be_empty=False),
    Key("loop", ShapeOf(LOOP, parts.make_loop), "run an agent until its output is good", may_be_empty=False),
    Key("map", ShapeOf(MAP, parts.make_map), "one delegation per element of a list", may_be_empty=False),
    *_COMMAND_KEYS,
    Key("output", ShapeOf(OUTPUT, parts.make_output), "its format, schema and stored name"),
    Key("model", _LINE, "the model for this step: provider:name"),
    Key("max_output_tokens", _OUTPUT_TOKENS, "tokens of one answer, before the agent's own limit"),
    Key("timeout", _DURATION, "how long all its attempts, branches and waits may take"),
    Key("timeout_ms", _MILLISECONDS, "the same in milliseconds"),
    Key("retry", ShapeOf(RETRY, parts.make_retry), "retries of a failed attempt"),
    Key("on_failure", _POLICY, "inline, skip, block, abort or fallback:AGENT"),
    Key("gate", Choice("human"), "a person must allow it before it starts"),
    Key("posture", Choice("read_only", "writer"), "may it change files?"),
    Key("permission_mode", Choice("read_only", "auto", "ask", same={"read-only": "read_only"}),
        "another word for posture: read_only, or else a writer"),
    Key("read_set", _GLOBS, "globs of the files it may read"),
    Key("write_set", _GLOBS, "globs of the files it may write"),
    Key("workspace_mode", Choice("shared", "isolated"), "the workspace itself, or its own copy"),
    Key("merge_back", parts.MergeBackKind(), "when an isolated change is applied"),
    Key("merge_when", _SENTENCE, "with merge_back: after STEP, an expression: is it applied?"),
    Key("recovery", Choice("rerun", "ask", "skip"), "what to do with an attempt a crash cut off"),
    Key("cache", Flag(), "reuse the output of an equal step of an earlier run"),
    Key("ui", AnyMap(), "where an editor drew it; it means nothing to a run"),
), may_be_empty=True, foreign={
    "needs": "write depends_on",
    "name": "a step is named by its 'id'",
    "role": "write agent: the role is the agent's id",
    "sandbox_mode": "write posture: read_only or writer",
    "tools": "tools belong to an agent: write them under agents:",
    "attachments": "not read here: name the files in read_set and the text",
    "apply_from": "not needed: isolated changes are merged back before dependents start",
})  # fmt: skip

# --- the recipe ----------------------------------------------------------------------------

_HEAD = (
    Key("name", _LINE, "the recipe's name; its title, if it has an id"),
    Key("id", _LINE, "the recipe's name, if `name` is a title"),
    Key("description", Text(), "what it does, in a line"),
    Key("version", Version(), "a number or a version such as 1.2.0"),
    Key("inputs", INPUTS, "its parameters"),
    Key("parameters", INPUTS, "the same as inputs"),
)
BODY = Shape("a recipe", "A saved, checked graph of steps.", (
    *_HEAD,
    Key("agents", MapOf(ShapeOf(AGENT, parts.make_agent)),
        "agents of this recipe; they shadow registered ones"),
    Key("steps", ListOf(ShapeOf(STEP, parts.make_step)), "the work: a list of steps",
        is_required=True),
    Key("output", _SENTENCE, "a template for the result"),
    Key("timeout", _DURATION, "how long the whole run may take"),
    Key("timeout_ms", _MILLISECONDS, "the same in milliseconds"),
    Key("max_concurrency", Count(1, 1000), "how many subagents may work at once, of steps, branches and elements together"),
    Key("budget", ShapeOf(BUDGET, parts.make_budget), "what a run may cost"),
    Key("$schema", Text(), "the JSON Schema that editors use"),
), may_be_empty=True, foreign={
    "limits": "only the user's own stretto.yaml may set limits",
    "tasks": "write steps:",
    "nodes": "write steps:",
    "jobs": "write steps:",
    "edges": "write depends_on in each step",
    "contract_version": "not read here: remove it",
    "strategy": "not read here: remove it",
})  # fmt: skip
ENVELOPE = Shape("the root", "A recipe under `workflow:`.", (
    Key("workflow", Anything(), "the recipe", is_required=True),
    *_HEAD,
    Key("$schema", Text(), "the JSON Schema that editors use"),
), may_be_empty=True, foreign=dict.fromkeys(
    ("agents", "output", "timeout", "timeout_ms", "max_concurrency", "budget"),
    "indent it, to stand under workflow:",
))  # fmt: skip


def recipe_schema() -> JsonSchema:
    """The JSON Schema of recipes: draft-07, which every editor reads.

    Flat and structural recipes have their steps at the root, wrapped ones under workflow:.
    """
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Stretto recipe",
        "description": BODY.about,
        "definitions": {"recipe": _body_schema(), "wrapped": _envelope_schema()},
        # if/then, not oneOf: an editor then reports the one mistake and not both alternatives.
        "if": {"required": ["workflow"]},
        "then": {"$ref": "#/definitions/wrapped"},
        "else": {"$ref": "#/definitions/recipe"},
    }


def _body_schema() -> JsonSchema:
    schema = BODY.schema()
    properties = schema["properties"]
    assert isinstance(properties, dict)
    properties["steps"] = {
        "type": "array",
        "minItems": 1,
        "items": STEP.schema(),
        "description": "the work: a list of steps",
    }
    return schema


def _envelope_schema() -> JsonSchema:
    schema = ENVELOPE.schema()
    properties = schema["properties"]
    assert isinstance(properties, dict)
    properties["workflow"] = {"$ref": "#/definitions/recipe"}
    return schema
