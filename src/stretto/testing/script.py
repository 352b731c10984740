"""A scripted model. In: a YAML file of replies. Out: what each attempt answers.

default: "An answer from the script."     # anyone who is not named below
replies:
  gather: "Three sources: …"               # a step, whatever the attempt
  score/firmographic: {reply: {score: 80}} # a branch, an iteration, an element
  brief:                                   # attempt by attempt; the last one stays
    - {fail: "rate limited", delay: 200ms}
    - {reply: "A brief.", tokens: 120}
  plan: {reply: "no JSON at all", raw: true}  # not held to the step's format, schema and rules
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from re import escape, fullmatch
from typing import cast

from stretto.documents.document import Document, read_file, read_text
from stretto.documents.kinds import AnyMap, Anything, Count, Duration, Flag, Text
from stretto.documents.kinds import Choice as OneOf
from stretto.documents.node import ListNode, MapNode, Node, ScalarNode, plain
from stretto.documents.node import Path as NodePath
from stretto.documents.shapes import Key, Reading, Shape
from stretto.events.model import FailureKind
from stretto.plan.model import Choose, Delegate, Each, Fan, Plan, PlannedWork, Refine, Route
from stretto.problems.errors import InvalidUsage
from stretto.vocabulary.names import did_you_mean, listed
from stretto.vocabulary.values import Json

_KINDS = ("error", "timeout", "empty", "truncated", "validation", "unavailable", "refused",
          "permanent")  # fmt: skip
REPLY = Shape("a reply", "What one attempt answers.", (
    Key("reply", Anything(), "the answer: text or any JSON"),
    Key("fail", Text("an error"), "fail with this error instead"),
    Key("kind", OneOf(*_KINDS), "how it fails; error by default"),
    Key("delay", Duration(), "how long it takes"),
    Key("tokens", Count(0, 10**9), "tokens it reports"),
    Key("retry_after", Duration(), "what a provider asks for"),
    Key("raw", Flag(), "is the answer given as it is, whatever the step's schema and rules say?"),
))  # fmt: skip
SCRIPT = Shape("a script", "What a scripted model answers.", (
    Key("default", Anything(), "the answer of whoever is not named"),
    Key("replies", AnyMap(), "answers by step, or step/part"),
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reply:
    output: Json = ""
    error: str | None = None
    kind: FailureKind = "error"
    delay_seconds: float = 0.0
    tokens: int = 0
    retry_after_seconds: float | None = None
    is_raw: bool = False  # not validated


@dataclass(frozen=True, slots=True)
class Script:
    default: tuple[Reply, ...] = ()
    replies: Mapping[str, tuple[Reply, ...]] = field(default_factory=dict)

    def reply(self, step: str, part: str, attempt: int) -> Reply | None:
        """The nearest that is written: step/part, then step, then the default."""
        written = self.replies.get(f"{step}/{part}") or self.replies.get(step) or self.default
        return written[min(attempt, len(written)) - 1] if written else None


def digest_of(script: Script) -> str:
    """Of all that it answers: another script is another model."""
    written = repr((script.default, sorted(script.replies.items())))
    return sha256(written.encode("utf-8", "surrogatepass")).hexdigest()


def check_names(script: Script, plan: Plan) -> None:
    """A reply that nobody will ever ask for was meant for somebody. Raises InvalidUsage."""
    parts = {str(step.id): _parts(step.work) for step in plan.steps}
    for name in script.replies:
        step, slash, part = name.partition("/")
        if step not in parts:
            hint = did_you_mean(step, parts) or f"its steps: {listed(parts)}"
            raise InvalidUsage(
                f"the script names '{name}', but {plan.name} has no step '{step}'", hint=hint
            )
        if slash and not any(fullmatch(known, part) for known in parts[step]):
            known = [each.replace(r"\d+", "N").replace("\\", "") for each in parts[step]]
            hint = did_you_mean(part, known) or f"its parts: {listed(known) or 'none'}"
            raise InvalidUsage(
                f"the script names '{name}', but step '{step}' has no such part", hint=hint
            )


def _parts(work: PlannedWork) -> list[str]:
    """The names of its delegations, as patterns."""
    match work:
        case Fan():
            return [escape(branch.key) for branch in work.branches]
        case Refine():
            return [r"try\.\d+", *([r"check\.\d+"] if work.validator else [])]
        case Each():
            return [r"item\.\d+\.stage\.\d+", *(["reduce"] if work.reducer else [])]
        case Delegate() | Route() | Choose():
            return []


def read_script(file: Path | str) -> Script:
    """A file by its path; a str is the script itself."""
    document = read_file(file) if isinstance(file, Path) else read_text(file)
    reading = Reading(document.source, list(document.problems))
    script = _script(document, reading)
    if reading.problems:
        named = f"the script {file}" if isinstance(file, Path) else "the script"
        raise InvalidUsage(f"{named} cannot be used", reading.problems)
    return script


def _script(document: Document, reading: Reading) -> Script:
    root = document.root
    if root is None or SCRIPT.read(root, (), reading) is None:
        return Script()
    assert isinstance(root, MapNode)
    replies = root.entries.get("replies")
    named = replies.entries if isinstance(replies, MapNode) else {}
    default = root.entries.get("default")
    return Script(
        _attempts(default, ("default",), reading) if default else (),
        {name: _attempts(node, ("replies", name), reading) for name, node in named.items()},
    )


def _attempts(node: Node, at: NodePath, reading: Reading) -> tuple[Reply, ...]:
    if isinstance(node, ListNode):
        return tuple(_reply(item, (*at, i), reading) for i, item in enumerate(node.items))
    return (_reply(node, at, reading),)


def _reply(node: Node, at: NodePath, reading: Reading) -> Reply:
    if isinstance(node, ScalarNode):
        return Reply(node.value)
    fields = REPLY.read(node, at, reading)
    if fields is None:
        return Reply()
    answer = fields.node.entries.get("reply")
    return Reply(
        output=plain(answer) if answer else "",
        error=fields.get("fail", str),
        kind=cast(FailureKind, fields.get("kind", str) or "error"),
        delay_seconds=fields.get("delay", float) or 0.0,
        tokens=fields.get("tokens", int) or 0,
        retry_after_seconds=fields.get("retry_after", float),
        is_raw=fields.get("raw", bool) or False,
    )
