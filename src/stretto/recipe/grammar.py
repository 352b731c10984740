"""Every key a recipe may have: one table for reading, for `stretto schema` and for the docs."""

from collections.abc import Mapping

from msgspec import structs

from stretto.documents.kinds import (
    Amount,
    AnyMap,
    Anything,
    Choice,
    Count,
    DurationOrTemplate,
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

# --- words that authors bring along from other tools, and keys that they put one level too high.
# …_WORDS name the key that a word stands for, …_INNER the key that it belongs under.


def _words(**meant: str) -> Mapping[str, str]:
    return {word: key for key, words in meant.items() for word in words.split()}


_BODY_WORDS = _words(
    steps="tasks nodes jobs",
    name="title",
    inputs="variables vars args arguments",
    max_concurrency="concurrency max_parallel parallelism",
    output="result outputs returns",
)
_STEP_WORDS = _words(
    id="step_id",
    depends_on="needs after requires dependencies depends upstream wait_for runs_after",
    when="if run_if only_if",
    run="command cmd script bash exec",
    prompt="instructions instruction message query content",
    agent="assignee worker executor actor template",
    on_failure="on_error onerror",
    parallel="branches fan_out agents",
    timeout="timeout_seconds active_deadline_seconds",
    workflow="recipe subworkflow sub_workflow call uses",
    inputs="with params args arguments",
)
_AGENT_WORDS = _words(
    prompt="instructions system_prompt system backstory",
    role="goal",
    model="llm",
    tools="allowed_tools allowedTools",
    max_turns="max_iter max_iterations max_steps",
    max_output_tokens="max_tokens max_completion_tokens",
)
_MAP_WORDS = _words(
    over="items list foreach for_each each in array source",
    batch_size="concurrency parallelism max_concurrency",
    reduce="reducer collect aggregate combine",
    agent="worker do",
)
_LOOP_WORDS = _words(
    until="stop_when exit_when condition",
    max_iterations="max max_loops max_rounds rounds limit times",
    validator="judge reviewer critic evaluator checker check",
    agent="worker producer do",
    feedback_path="feedback",
)
_CONDITION_WORDS = {
    **_words(eval="if expr expression when test"),
    **dict.fromkeys(("then", "yes", "on_true", "if_true"), "true"),
    **dict.fromkeys(("else", "no", "otherwise", "on_false", "if_false"), "false"),
}
_SWITCH_WORDS = _words(
    value="on expr expression field key", cases="options routes", default="else otherwise"
)
_RETRY_WORDS = _words(
    max_attempts="attempts count times max max_retries", backoff="strategy delay wait"
)
_OUTPUT_WORDS = _words(
    store_as="name save_as as variable var key", format="type", schema="json_schema"
)
_VALIDATION_WORDS = _words(rules="rule checks criteria", schema="json_schema")
_INPUT_WORDS = _words(
    enum="options choices values",
    name="id key",
    description="help about label title",
    default="value",
)
_BRANCH_WORDS = _words(output_key="key name id as")
_BUDGET_WORDS = _words(
    tokens="max_tokens token_limit", usd="max_usd cost max_cost dollars", agents="max_agents"
)

# Values of other tools → what to write instead.
_FORMATS = {"md": "markdown", "plain": "text", "string": "text", "object": "json"}
_INPUT_NEAR = {
    **dict.fromkeys(("int", "integer", "float"), "number"),
    **dict.fromkeys(("text", "str", "date", "enum", "choice", "textarea"), "string"),
    **dict.fromkeys(("list", "dict", "map"), "json"),
    **dict.fromkeys(("bool", "flag", "checkbox"), "boolean"),
    **dict.fromkeys(("file", "path", "filepath"), "file_path"),
}
_TYPES_NEAR = {
    **dict.fromkeys(("agent", "task", "llm", "prompt", "step"), "sequential"),
    **dict.fromkeys(("script", "shell", "bash"), "command"),
    **dict.fromkeys(("for_each", "foreach", "fan_out"), "map"),
    **dict.fromkeys(("branch", "router", "if", "switch"), "conditional"),
    **dict.fromkeys(("sub_workflow", "subworkflow", "dag"), "workflow"),
    **dict.fromkeys(("human_gate", "approval", "human"), "gate: human, beside an agent"),
}

_STEP_INNER = _words(
    loop="validator until max_iterations feedback_path",
    map="over reduce batch_size max_items on_item_failure stages",
    condition="eval true false then else",
    switch="value cases default",
    retry="max_attempts backoff",
    output="store_as format schema",
)
_AGENT_INNER = _words(validation="rules schema", retry="max_attempts backoff on_failure")
_GOES_ON = "write on_failure: inline, so that the run goes on"
_RETRIES = "write retry: {max_attempts: …}, which counts the first attempt too"
_EACH = "write map: {over: …, agent: …}"
_STEP_FOREIGN = {
    "uses": "write workflow: for another recipe, or agent: for who does it",
    **dict.fromkeys(("with", "params", "args", "arguments"),
        "write {{inputs.NAME}} in the text; a step with workflow: has inputs:"),
    **dict.fromkeys(("continue_on_error", "continue_on", "continue_on_fail", "allow_failure",
        "ignore_errors"), _GOES_ON),
    "fail_fast": "write on_failure: abort, so that the run ends",
    "timeout_minutes": "write timeout: with its unit, such as 5m",
    **dict.fromkeys(("strategy", "matrix", "with_param", "with_sequence"), _EACH),
    **dict.fromkeys(("retry_strategy", "retry_policy", "retry_config"), _RETRIES),
    **dict.fromkeys(("repeat_policy", "repeat"), "write loop: {agent: …, until: …}"),
    **dict.fromkeys(("precondition", "preconditions"), "write when: with an expression"),
    "context": "write depends_on, and {{steps.ID.output}} in the text for the agent",
    **dict.fromkeys(("async", "async_execution"),
        "remove it: steps that do not wait for each other run at once"),
    **dict.fromkeys(("output_file", "save_to"),
        "remove it: an agent with the tool Write makes files, stretto run -o writes the answer"),
    "trigger_rule": "remove it: a step runs once all that it waits for have ended; when: says more",
    **dict.fromkeys(("routes", "next", "goto", "edges", "transitions"),
        "write depends_on in what follows; condition: or switch: choose between steps"),
    **dict.fromkeys(("working_directory", "working_dir", "workdir", "cwd", "dir"),
        "remove it, and begin the command under run: with cd DIR &&"),
    "shell": "remove it: sh runs a command; write run: bash FILE for another shell",
    "steps": "a step has none of its own: list them beside it, with depends_on",
    "source": _EACH,
    "prompt_file": "remove it, and write the text itself under prompt:",
    "name": "a step is named by its 'id'",
    "title": "a step is named by its 'id'",
    "description": "a step has none: write it as a comment, or in the text for the agent",
    "tags": "not read here: remove it",
    "metadata": "not read here: remove it",
    "role": "write agent: the role is the agent's id",
    "sandbox_mode": "write posture: read_only or writer",
    "tools": "tools belong to an agent: write them under agents:",
    "rules": "rules belong to an agent: write them under agents:, in its validation",
    "validation": "it belongs to an agent: write it under agents:",
    "attachments": "not read here: name the files in read_set and the text",
    **dict.fromkeys(("fallback", "fallback_agent"), "write on_failure: fallback:AGENT"),
    "isolation": "write workspace_mode: isolated",
    **dict.fromkeys(("config", "settings", "options"), "remove it, and write its keys in the step itself"),
    "action": "write prompt: for an agent, or run: for a command",
    "tool": "tools belong to an agent: write them under agents:",
    "pipe_output": "write depends_on, and {{steps.ID.output}} in the text for the agent",
    "apply_from": "not needed: isolated changes are merged back before dependents start",
    "retries": _RETRIES,
    "max_retries": _RETRIES,
    "approval": "write gate: human",
    "requires_approval": "write gate: human",
    "human_input": "write gate: human",
    "output_schema": "write output: {schema: …}",
    "response_format": "write output: {format: json}",
    "expected_output": "say it in the text for the agent, or write output: {schema: …}",
    "foreach": _EACH,
    "for_each": _EACH,
    "items": _EACH,
    "with_items": _EACH,
    "while": "write loop: {agent: …, until: …}, with the opposite condition",
}  # fmt: skip
_NOT_READ = "not read here: remove it"
_AGENT_FOREIGN = {
    **dict.fromkeys(("verbose", "memory", "cache", "color", "temperature", "top_p"), _NOT_READ),
    "allow_delegation": "remove it: the agent of a step never delegates",
}
_LOOP_FOREIGN = {
    "while": "write until: with the opposite condition",
    "prompt": "write it beside loop:, in the step",
    "run": "a loop repeats an agent; a command may judge: validator: {run: …}",
    "workflow": "a loop repeats an agent: put the loop into the other recipe",
}
_INPUT_FOREIGN = {"optional": "write required: false"}
_BODY_FOREIGN = {
    "limits": "only the user's own stretto.yaml may set limits",
    "edges": "write depends_on in each step",
    "on": "remove it: stretto schedule add starts a recipe by itself",
    **dict.fromkeys(("triggers", "schedule", "cron"),
        "remove it: stretto schedule add starts a recipe by itself"),
    "env": "write env: in the steps with run:",
    "params": "write inputs: {NAME: {default: …}}",
    "process": "remove it: depends_on says the order",
    "model": "write it in the agents or the steps, or as model: of stretto.yaml",
    **dict.fromkeys(("defaults", "default_agent"), "write it in each of the steps"),
    **dict.fromkeys(("handler_on", "hooks", "finally", "on_exit"),
        "remove it: on_failure and when of a step say what follows"),
    **dict.fromkeys(("entrypoint", "entry_point", "start"),
        "remove it: the steps that wait for none start first"),
    "tags": "not read here: remove it",
    "author": "not read here: remove it",
    "metadata": "not read here: remove it",
    "contract_version": "not read here: remove it",
    "strategy": "not read here: remove it",
}  # fmt: skip

_ID = Identifier()
_DURATION_OR_TEMPLATE = DurationOrTemplate()
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
), may_be_empty=True, words=_RETRY_WORDS, bare=("max_attempts",))  # fmt: skip
VALIDATION = Shape("'validation'", "What an agent's output must satisfy.", (
    Key("schema", AnyMap(), "a JSON schema for the output"),
    Key("rules", ListOf(_SENTENCE, or_one=True), "rules in plain English"),
), may_be_empty=True, words=_VALIDATION_WORDS, bare=("rules",))  # fmt: skip
OUTPUT = Shape("'output'", "What a step's output is, and the name it is kept under.", (
    Key("store_as", Text("a name", may_be_blank=False, one_line=True),
        "a name that templates may use for this output"),
    Key("format", Choice("json", "text", "markdown", near=_FORMATS), "what the output must be"),
    Key("schema", AnyMap(), "a JSON schema for the output"),
), may_be_empty=True, words=_OUTPUT_WORDS, bare=("format", "store_as"))  # fmt: skip
BUDGET = Shape("'budget'", "What a run may cost; it stops before the call that would exceed it.", (
    Key("tokens", Count(1, 10**12), "tokens of all calls together"),
    Key("usd", Amount(), "US dollars of all calls together"),
    Key("agents", Count(1, 10**6), "subagents deployed"),
), may_be_empty=True, words=_BUDGET_WORDS, bare=("usd",))  # fmt: skip
INPUT = Shape("an input", "A named parameter of the recipe.", (
    Key("name", _ID, "the name templates use: {{inputs.NAME}}"),
    Key("type", Choice(*parts.INPUT_TYPES, same={"object": "object", "array": "array"}, near=_INPUT_NEAR),
        "what its values are; string by default"),
    Key("required", Flag(), "must it be given?"),
    Key("default", Anything(), "the value when it is not given"),
    Key("description", Text(), "what it is for"),
    Key("enum", ListOf(Anything()), "the values it may have"),
), may_be_empty=True, words=_INPUT_WORDS, foreign=_INPUT_FOREIGN, bare=("name",))  # fmt: skip
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
    Key("timeout", _DURATION_OR_TEMPLATE, "how long one attempt may take"),
    Key("timeout_ms", _MILLISECONDS, "the same in milliseconds"),
    Key("retry", ShapeOf(RETRY, parts.make_retry), "retries of a failed attempt"),
    Key("validation", ShapeOf(VALIDATION, parts.make_validation), "what its output must satisfy"),
    Key("posture", Choice("read_only", "writer"), "may it change files?"),
), may_be_empty=True, words=_AGENT_WORDS, foreign=_AGENT_FOREIGN, inner=_AGENT_INNER,
    bare=("prompt",))  # fmt: skip

# --- steps ---------------------------------------------------------------------------------

_INSTRUCTION = (
    Key("input", Text(), "what it gets: a template"),
    Key("prompt", Text(), "what it is told: a template"),
    Key("task", Text(), "what it is told: a template"),
)
_TARGET = Identifier(fix="name one; others may wait for it, by depends_on")
_AGENT_ID = Identifier(fix="name one agent, and define it under agents:")
_AGENT_KEYS = (
    Key("agent", _AGENT_ID, "the agent that does it"),
    Key("subagent", _AGENT_ID, "the same as agent"),
)
# Where only agents work: what an author may mean who writes another kind of work there.
_BRANCH_FOREIGN = {
    "run": "branches are agents: write a step with run: beside this one, with the same depends_on",
    "workflow": "branches are agents: write a step with workflow: beside this one, with the same depends_on",
}
_MAP_FOREIGN = {
    **dict.fromkeys(("as", "var", "item_name", "item_var"), "remove it: an element is {{item}}"),
    "run": "elements are given to agents: one command may take the whole list, by stdin",
    "workflow": "elements are given to agents: put a map over the list into the other recipe",
}
BRANCH = Shape("a branch", "One of several delegations that start together.", (
    *_AGENT_KEYS,
    *_INSTRUCTION,
    Key("output_key", _ID, "its name in steps.ID.outputs; the agent's id by default"),
), may_be_empty=True, words=_BRANCH_WORDS, foreign=_BRANCH_FOREIGN, bare=("agent",))  # fmt: skip
CONDITION = Shape("'condition'", "Which of two ways to go.", (
    Key("eval", _SENTENCE, "an expression", is_required=True),
    Key("true", _TARGET, "a step to run, or an agent to run here, when it holds"),
    Key("false", _TARGET, "the same for when it does not"),
), may_be_empty=True, words=_CONDITION_WORDS)  # fmt: skip
SWITCH = Shape("'switch'", "Which of several ways to go.", (
    Key("value", _SENTENCE, "an expression", is_required=True),
    Key("cases", MapOf(_TARGET, keys_are_ids=False, fix="write VALUE: STEP, as in {hot: call}"), "value → step or agent", is_required=True),
    Key("default", _ID, "where to go when no case fits"),
), may_be_empty=True, words=_SWITCH_WORDS)  # fmt: skip
_COMMAND_KEYS = (
    Key("run", parts.CommandText(),
        "a command: one line or a script; values reach it by env and stdin", may_be_empty=False),
    Key("env", MapOf(Text(), keys_are_ids=False), "environment variables: NAME → template"),
    Key("stdin", Text(), "what it reads on standard input: a template"),
    Key("effect", Choice("idempotent", "in_doubt"),
        "idempotent: after a crash it may run again unasked; in_doubt by default"),
)  # fmt: skip
COMMAND = Shape("a command", "A command that judges: exit code 0 passes.", (
    structs.replace(_COMMAND_KEYS[0], is_required=True),
    *_COMMAND_KEYS[1:],
), foreign={"workflow": "a validator is an agent, or a command with run:"})  # fmt: skip
LOOP = Shape("'loop'", "Run an agent again until its output is good.", (
    Key("agent", _ID, "the agent that produces", is_required=True),
    Key("validator", NameOr(_ID, ShapeOf(COMMAND, parts.make_command)),
        "the agent that judges, or a command; `passed: true` or exit code 0 ends the loop"),
    Key("until", _SENTENCE, "an expression that ends the loop"),
    Key("max_iterations", Count(1, 1000), "how often at the most; 3 by default"),
    Key("feedback_path", _SENTENCE, "where the judge's feedback stands"),
), may_be_empty=True, bare=("agent",), words=_LOOP_WORDS, foreign=_LOOP_FOREIGN)  # fmt: skip
STAGE = Shape("a stage", "One stage of a pipeline that every element goes through.", (
    *_AGENT_KEYS,
    *_INSTRUCTION,
), may_be_empty=True, foreign=_MAP_FOREIGN)  # fmt: skip
MAP = Shape("'map'", "One delegation per element of a list.", (
    Key("over", parts.OverKind(), "the list: a template", is_required=True),
    Key("agent", _ID, "the agent for each element"),
    Key("reduce", _ID, "the agent that gets the collected results"),
    *_INSTRUCTION,
    Key("batch_size", Count(1, 1000), "how many at once; 20 by default"),
    Key("max_items", Count(1, 10_000_000), "how many elements are allowed"),
    Key("on_item_failure", Choice("inline", "skip", "abort"),
        "an element that failed: its error text, null, or the whole step fails"),
    Key("stages", ListOf(ShapeOf(STAGE, parts.make_stage)), "a pipeline for each element"),
), may_be_empty=True, words=_MAP_WORDS, foreign=_MAP_FOREIGN)  # fmt: skip
STEP = Shape("a step", "One piece of work, and what it waits for.", (
    Key("id", _ID, "its name, unique in the recipe", is_required=True),
    Key("type", Choice(*parts.STEP_TYPES, near=_TYPES_NEAR), "optional: the keys below already tell"),
    *_AGENT_KEYS,
    *_INSTRUCTION,
    Key("depends_on", ListOf(_ID, or_one=True, fix="write a list of ids: [a, b]"), "the steps it waits for"),
    Key("when", _SENTENCE, "an expression: the step is skipped unless it holds"),
    Key("parallel", ListOf(ShapeOf(BRANCH, parts.make_branch)), "branches that start together", may_be_empty=False),
    Key("wait", parts.WaitKind(), "how many branches must succeed; all by default"),
    Key("condition", ShapeOf(CONDITION, parts.make_condition), "which of two ways to go", may_be_empty=False),
    Key("switch", ShapeOf(SWITCH, parts.make_switch), "which of several ways to go", may_be_empty=False),
    Key("loop", ShapeOf(LOOP, parts.make_loop), "run an agent until its output is good", may_be_empty=False),
    Key("map", ShapeOf(MAP, parts.make_map), "one delegation per element of a list", may_be_empty=False),
    *_COMMAND_KEYS,
    Key("workflow", _LINE, "another recipe: its name, or its file relative to this one", may_be_empty=False),
    Key("inputs", MapOf(Anything()), "what that recipe is given: input → template or value"),
    Key("output", ShapeOf(OUTPUT, parts.make_output), "its format, schema and stored name"),
    Key("model", _LINE, "the model for this step: provider:name"),
    Key("max_output_tokens", _OUTPUT_TOKENS, "tokens of one answer, before the agent's own limit"),
    Key("timeout", _DURATION_OR_TEMPLATE, "how long all its attempts, branches and waits may take"),
    Key("timeout_ms", _MILLISECONDS, "the same in milliseconds"),
    Key("retry", ShapeOf(RETRY, parts.make_retry), "retries of a failed attempt"),
    Key("on_failure", _POLICY, "what happens once every attempt has failed"),
    Key("gate", Choice("human", near={"true": "human", "manual": "human", "approval": "human"}), "a person must allow it before it starts"),
    Key("posture", Choice("read_only", "writer"), "may it change files?"),
    Key("permission_mode", Choice("read_only", "auto", "ask", same={"read-only": "read_only"}),
        "another word for posture: read_only, or else a writer"),
    Key("read_set", _GLOBS, "globs of the files it may read; {{inputs.NAME}} is filled in before the run"),
    Key("write_set", _GLOBS, "globs of the files it may write; {{inputs.NAME}} is filled in before the run"),
    Key("workspace_mode", Choice("shared", "isolated"), "the workspace itself, or its own copy"),
    Key("merge_back", parts.MergeBackKind(), "when an isolated change is merged; auto by default"),
    Key("merge_when", _SENTENCE, "with merge_back: after STEP, an expression: is it applied?"),
    Key("recovery", Choice("rerun", "ask", "skip"), "what to do with an attempt a crash cut off"),
    Key("cache", Flag(), "reuse the output of an equal step of an earlier run"),
    Key("ui", AnyMap(), "where an editor drew it; it means nothing to a run"),
), may_be_empty=True, words=_STEP_WORDS, foreign=_STEP_FOREIGN, inner=_STEP_INNER)  # fmt: skip

# --- the recipe ----------------------------------------------------------------------------

_HEAD = (
    Key("name", _LINE, "the recipe's name; its title, if it has an id"),
    Key("id", _LINE, "the recipe's name, if `name` is a title"),
    Key("description", Text(), "what it does, in a line"),
    Key("version", Version(), "for people: plan and explain show it"),
    Key("inputs", INPUTS, "its parameters"),
    Key("parameters", INPUTS, "the same as inputs"),
)
BODY = Shape("a recipe", "A saved, checked graph of steps.", (
    *_HEAD,
    Key("agents", MapOf(ShapeOf(AGENT, parts.make_agent), fix="write each under its id: {NAME: {prompt: …}}"),
        "agents of this recipe; they shadow registered ones"),
    Key("steps", ListOf(ShapeOf(STEP, parts.make_step), fix="write a list, each step beginning with - id: NAME"), "the work: a list of steps",
        is_required=True),
    Key("output", Text("text that is not empty", may_be_blank=False, fix="write one text, such as '{{steps.ID.output}}'"), "a template for the result"),
    Key("timeout", _DURATION_OR_TEMPLATE, "how long the whole run may take"),
    Key("timeout_ms", _MILLISECONDS, "the same in milliseconds"),
    Key("max_concurrency", Count(1, 1000), "how many subagents may work at once, of steps, branches and elements together"),
    Key("budget", ShapeOf(BUDGET, parts.make_budget), "what a run may cost"),
    Key("$schema", Text(), "the JSON Schema that editors use"),
), may_be_empty=True, words=_BODY_WORDS, foreign=_BODY_FOREIGN)  # fmt: skip
INDENTED = {"agents", "budget", "max_concurrency", "output", "steps", "timeout", "timeout_ms"}
ENVELOPE = Shape("the root", "A recipe under `workflow:`.", (
    Key("workflow", Anything(), "the recipe", is_required=True),
    *_HEAD,
    Key("$schema", Text(), "the JSON Schema that editors use"),
), may_be_empty=True, foreign=dict.fromkeys(
    sorted(INDENTED - {"steps"}), "indent it, to stand under workflow:",
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
