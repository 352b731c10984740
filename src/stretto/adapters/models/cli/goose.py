"""goose: `cli:goose`, `cli:goose/openai/gpt-4o` (provider, then model). Read from version 1.34.

Its tools are a shell, editing and a listing of files; without a terminal it either may use all of
them (mode `auto`) or none (mode `chat`). So a reader gets none, and one that lists tools is
refused; a writer that lists no Bash is refused too. Over ACP it asks about each call instead.
The user's own extensions are left out.
"""

from collections.abc import Iterator, Mapping

from stretto.adapters.models.cli.cli_spec import (
    Cli,
    CliLaunch,
    LaunchRefused,
    LaunchRequest,
    at,
    count_at,
    list_at,
    object_at,
    size_of,
    text_at,
    words_of,
)
from stretto.adapters.models.cli.transcript import (
    AgentEvent,
    AgentFailed,
    CallEnded,
    CallStarted,
    Finished,
    LimitReached,
    TextDelta,
    UsageTotal,
    failure,
)
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json

_LOGIN = "run `goose configure`, or set GOOSE_PROVIDER, GOOSE_MODEL and its key"
_FAILED = "Ran into this error: "
_CAPPED = "I've reached the maximum number of actions"


def _launch(order: LaunchRequest) -> CliLaunch | LaunchRefused:
    request = order.request
    if not request.may_write and order.tools:
        return LaunchRefused(
            "goose cannot read files without being able to write them: "
            "give this agent no tools, or another model"
        )
    if request.may_write and not order.speaks_acp and _lacks_shell(order):
        return LaunchRefused(
            "goose writes only together with a shell: give this agent Bash, or use cli:acp:goose, "
            "which asks before each call"
        )
    mode = ("approve" if order.speaks_acp else "auto") if request.may_write else "chat"
    builtin = ["--with-builtin", "developer"] if request.may_write else []
    provider, _, model = order.model.rpartition("/")
    variables = {"GOOSE_MODE": mode}
    variables |= {"GOOSE_PROVIDER": provider} if provider else {}
    variables |= {"GOOSE_MODEL": model} if model else {}
    if order.speaks_acp:
        return CliLaunch(("acp", *builtin), order.whole_prompt, variables)
    words = ["run", "--output-format", "stream-json", "--no-session", "--quiet", "--no-profile"]
    if request.max_turns is not None:
        words += ["--max-turns", str(request.max_turns)]
    return CliLaunch((*words, *builtin, "--instructions", "-"), order.whole_prompt, variables)


def _lacks_shell(order: LaunchRequest) -> bool:
    return "Bash" not in order.tools or bool(order.bash_filters)


def _read(line: Mapping[str, Json]) -> Iterator[AgentEvent]:
    event = dict(line)
    match text_at(event, "type"):
        case "message":
            message = object_at(event, "message")
            # Its own words have no id; those of a model have one.
            is_its_own = at(message, "id") is None
            for block in list_at(message, "content"):
                yield from _read_block(block, text_at(message, "role"), is_its_own)
        case "error":
            yield AgentFailed(failure("goose", text_at(event, "error"), _LOGIN))
        case "complete":
            tokens = count_at(event, "input_tokens"), count_at(event, "output_tokens")
            yield UsageTotal(Usage(*tokens))
            yield Finished()


def _read_block(block: Json, role: str, is_its_own: bool) -> Iterator[AgentEvent]:
    match text_at(block, "type"):
        case "text" if role == "assistant":
            text = text_at(block, "text")
            yield _read_words(text) if is_its_own else TextDelta(text)
        case "toolRequest":
            call = object_at(block, "toolCall", "value")
            yield CallStarted(
                text_at(block, "id"), text_at(call, "name"), object_at(call, "arguments")
            )
        case "toolResponse":
            result = object_at(block, "toolResult")
            content = list_at(result, "value", "content")
            is_ok = text_at(result, "status") == "success"
            is_ok = is_ok and at(result, "value", "isError") is not True
            said = "" if is_ok else text_at(result, "error") or words_of(content)
            yield CallEnded(text_at(block, "id"), is_ok, size_of(words_of(content)), said)


def _read_words(text: str) -> AgentEvent:
    if text.startswith(_FAILED):
        return AgentFailed(failure("goose", text.removeprefix(_FAILED), _LOGIN))
    return LimitReached("max turns reached") if text.startswith(_CAPPED) else TextDelta(text)


CLI = Cli(
    name="goose",
    install="npm install -g @aaif/goose",
    login=_LOGIN,
    passes=(
        "GOOSE_*",
        "ANTHROPIC_*",
        "OPENAI_*",
        "GOOGLE_*",
        "GEMINI_*",
        "OPENROUTER_*",
        "OLLAMA_*",
        "DATABRICKS_*",
    ),
    launch=_launch,
    read=_read,
    speaks_acp=True,
    read_text=_read_words,
    caps_turns=True,
)
