"""Delegations that worked become a recipe. In: RecordedDelegations, and the words of the person. Out: CapturedRecipe.

What flowed is found in the prompts themselves: where the output of an earlier delegation stands in a later
prompt, blanks aside, there is an edge and a reference; nothing else makes an edge. What came from the person
is found in the same way: names, numbers, addresses and quotations of their words, and phrases that several
prompts repeat, become inputs whose defaults are these values. So the recipe without inputs asks what was asked.

A saved workflow that ran becomes a workflow step, and tasks of one batch whose prompts share one form become
a map over what differs, where the later prompts allow it.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Literal, NamedTuple, TypeAlias

from stretto.documents.yaml_form import yaml_form
from stretto.problems.errors import InvalidUsage
from stretto.text.short import listed
from stretto.text.visible import one_line
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import is_id

MOST_DELEGATIONS = 100
MOST_INPUTS = 8
LEAST_OUTPUT = 12  # characters without blanks around: a shorter output may stand anywhere by chance
_LEAST_PART = 80  # of an output that is quoted in part
_LONGEST_ID = 40
_LONGEST_LITERAL = 300
_MOST_WORDS = 20_000  # characters of the person's words, and of each prompt, that are looked at
_MOST_CHARACTERS = 20_000_000  # of all prompts and outputs together
LiteralKind: TypeAlias = Literal["url", "email", "file", "number", "text", "name", "topic"]


@dataclass(frozen=True, slots=True)
class RecordedDelegation:
    """One piece of work that an agent did, and what came of it."""

    agent: str
    prompt: str
    output: str
    started_at: float
    ended_at: float
    title: str = ""  # a few words, as whoever delegated has said
    batch: str = ""  # the run of the batch that it was a task of
    # The saved recipe that ran, with `inputs`; there is no agent and no prompt then.
    workflow: str = ""
    inputs: Mapping[str, Json] = field(default_factory=dict)
    # What tasks of one form were about; `prompt` has _ITEM in their place.
    items: tuple[str, ...] = ()
    # What each part of it was asked and gave, where there is more than the whole.
    inside: Mapping[str, tuple[str, Json]] = field(default_factory=dict)

    @property
    def parts(self) -> Mapping[str, tuple[str, Json]]:
        return self.inside or {"": (self.prompt, self.output)}

    @property
    def texts(self) -> Mapping[str, str]:
        """What it was told, by the name of its input; the prompt has none."""
        if not self.workflow:
            return {"": self.prompt}
        return {name: value for name, value in self.inputs.items() if isinstance(value, str)}

    @property
    def outputs(self) -> tuple[str, ...]:
        """Of each of the items."""
        return tuple(str(given) for _, given in self.inside.values()) if self.items else ()


@dataclass(frozen=True, slots=True)
class CaptureSource:
    """What was delegated, in the order in which it began, and the words that it came from."""

    delegations: tuple[RecordedDelegation, ...]
    words: str = ""  # of the person; empty: the prompts are their own words
    answer: str = ""  # what the person was told in the end
    given: Mapping[str, str] = field(default_factory=dict)  # inputs that are known by name


@dataclass(frozen=True, slots=True)
class CapturedStep:
    id: str
    done: RecordedDelegation
    prompt: str  # the template
    uses: tuple[str, ...]  # steps whose outputs it was told
    inputs: Mapping[str, Json] = field(default_factory=dict)  # of a workflow, with templates
    over: str = ""  # where the items of a map come from
    is_told_more: bool = False  # than what was recorded: all of an output, or a list of several

    @property
    def written(self) -> dict[str, Json]:
        if self.done.workflow:
            return {"id": self.id, "workflow": self.done.workflow, "inputs": dict(self.inputs)}
        if self.over:
            over: dict[str, Json] = {"over": self.over, "agent": self.done.agent}
            return {"id": self.id, "map": over, "prompt": self.prompt}
        return {"id": self.id, "subagent": self.done.agent, "prompt": self.prompt}


@dataclass(frozen=True, slots=True)
class CapturedRecipe:
    name: str
    recipe: str  # YAML
    inputs: Mapping[str, str]  # with the values that were found
    steps: tuple[CapturedStep, ...]
    notes: tuple[str, ...] = ()  # what was decided that a reader may doubt


class _Known(NamedTuple):
    """What a step gave, as it is looked for in prompts."""

    id: str
    output: str  # with one blank between its words
    paragraphs: tuple[str, ...]  # the long ones of it, if it has several
    each: tuple[str, ...] = ()  # of a map: what its items gave

    @property
    def size(self) -> int:
        return len(self.output) or sum(map(len, self.each))


class _Part(NamedTuple):
    """A piece of a template: literal text, or a reference."""

    text: str
    is_reference: bool = False


@dataclass(slots=True)
class _Draft:
    """A step while it is made."""

    id: str
    done: RecordedDelegation
    texts: dict[str, list[_Part]]
    over: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def parts(self) -> list[_Part]:
        return [part for parts in self.texts.values() for part in parts]

    def finished(self) -> CapturedStep:
        written = {name: _template(parts) for name, parts in self.texts.items()}
        over = [_Part(self.over.strip("{}"), True)] if self.over else []
        return CapturedStep(
            self.id, self.done, written.get("", ""), _used_steps([*over, *self.parts]),
            {**self.done.inputs, **written} if self.done.workflow else {}, self.over,
            is_told_more=bool(self.notes),
        )  # fmt: skip


def capture(source: CaptureSource, name: str = "") -> CapturedRecipe:
    """Raises InvalidUsage where there is nothing to learn from, or a given input is in no prompt."""
    done = _with_maps(_in_order(source.delegations))
    ids = _ids(done)
    known = [_describe_known(id, each) for id, each in zip(ids, done, strict=True)]
    drafts = [
        _draft(id, each, _before(done, known, each)) for id, each in zip(ids, done, strict=True)
    ]
    notes = [note for each in drafts for note in each.notes]
    inputs = _inputs(source, [each.parts for each in drafts])
    lists: dict[str, list[str]] = {}
    for each in drafts:
        each.texts = {key: _with_inputs(parts, inputs) for key, parts in each.texts.items()}
        if each.done.items and not each.over:
            given = _free_name("items", "", {**inputs, **lists})
            lists[given] = list(each.done.items)
            each.over = f"{{{{inputs.{given}}}}}"
    steps = tuple(each.finished() for each in drafts)
    wanted = name or slug(source.words or _first_words(done)) or "captured"
    recipe: dict[str, Json] = {"name": wanted}
    if source.words.strip():
        recipe["description"] = one_line(source.words, 200)
    if declared := _declare_inputs(inputs, lists):
        recipe["inputs"] = declared
    recipe["steps"] = [dict(each.written) for each in steps]
    if output := _output(source, steps, notes):
        recipe["output"] = output
    found = {**inputs, **{key: json.dumps(each, ensure_ascii=False) for key, each in lists.items()}}
    return CapturedRecipe(wanted, yaml_form(recipe), found, steps, tuple(notes))


def _draft(id: str, done: RecordedDelegation, before: Sequence[_Known]) -> _Draft:
    notes: list[str] = []
    texts = {
        name: _with_outputs(_parts(text, done), before, f"step '{id}'", notes)
        for name, text in done.texts.items()
    }
    over = next((each.id for each in before if done.items and _is_list(each, done.items)), "")
    return _Draft(id, done, texts, f"{{{{steps.{over}.output}}}}" if over else "", notes)


def _parts(text: str, done: RecordedDelegation) -> list[_Part]:
    if not done.items:
        return [_Part(text)]
    before, _, after = text.partition(_ITEM)
    return [each for each in (_Part(before), _Part("item", True), _Part(after)) if each.text]


def _is_list(known: _Known, items: Sequence[str]) -> bool:
    """Whether what a step gave is the list that a batch went through."""
    try:
        return bool(json.loads(known.output) == list(items))
    except (ValueError, RecursionError):
        return False


def _declare_inputs(inputs: Mapping[str, str], lists: Mapping[str, list[str]]) -> list[Json]:
    found: list[Json] = [{"name": key, "default": value} for key, value in inputs.items()]
    for key, items in lists.items():
        found.append({"name": key, "type": "json", "default": list(items)})
    return found


def _first_words(done: Sequence[RecordedDelegation]) -> str:
    first = done[0]
    return first.workflow or first.prompt.replace(_ITEM, first.items[0] if first.items else "")


_ITEM = "\0"  # stands in no prompt
_LEAST_ITEMS = 3
_LONGEST_GAP = 200  # characters between two outputs that were told as a list


def _with_maps(done: list[RecordedDelegation]) -> list[RecordedDelegation]:
    """Tasks of one batch with prompts of one form as one map, where nothing is lost by that."""
    batches: dict[tuple[str, str], list[RecordedDelegation]] = {}
    for each in done:
        if each.batch:
            batches.setdefault((each.batch, each.agent), []).append(each)
    for group in batches.values():
        if (made := _as_map(group, [each for each in done if each not in group])) is not None:
            at = done.index(group[0])
            done = [each for each in done if each not in group]
            done.insert(at, made)
    return done


def _as_map(
    group: Sequence[RecordedDelegation], others: Sequence[RecordedDelegation]
) -> RecordedDelegation | None:
    form = _shared_form([each.prompt for each in group])
    if form is None:
        return None
    before, after, items = form
    started, ended = min(e.started_at for e in group), max(e.ended_at for e in group)
    for other in others:
        earlier = " ".join(other.output.split())
        if len(earlier) >= LEAST_OUTPUT and any(
            earlier in " ".join(each.split()) for each in items
        ):
            return None  # an item is what another step gave
        outputs = [" ".join(each.output.split()) for each in group]
        if other.started_at >= ended and any(
            _list_span(_normal(text)[1], outputs) is False for text in other.texts.values()
        ):
            return None  # it was told some of the outputs, or each in a place of its own
    inside = {
        f"item.{number}.stage.0": (each.prompt, each.output) for number, each in enumerate(group)
    }
    return RecordedDelegation(
        group[0].agent, f"{before}{_ITEM}{after}", "", started, ended,
        slug(f"{before} {after}", 3), items=tuple(items), inside=inside,
    )  # fmt: skip


def _shared_form(prompts: Sequence[str]) -> tuple[str, str, list[str]] | None:
    """What stands before and after the part in which the prompts differ, and these parts. None: they
    have little in common."""
    if len(prompts) < _LEAST_ITEMS or any(_ITEM in each for each in prompts):
        return None
    before = re.sub(r"\w*\Z", "", _common_beginning(prompts))
    rests = [each[len(before) :] for each in prompts]
    after = re.sub(r"\A\w*", "", _common_beginning([each[::-1] for each in rests])[::-1])
    items = [each[: len(each) - len(after)] for each in rests]
    longest = max(len(each.split()) for each in items)
    are_items = all(each.strip() == each != "" and "\n" not in each for each in items)
    is_form = len(f"{before} {after}".split()) >= longest and len(set(items)) == len(items)
    return (before, after, items) if are_items and is_form else None


def _common_beginning(texts: Sequence[str]) -> str:
    first, last = min(texts), max(texts)
    pairs = enumerate(zip(first, last, strict=False))
    return first[: next((at for at, (one, other) in pairs if one != other), len(first))]


def _list_span(text: str, outputs: Sequence[str]) -> tuple[int, int] | Literal[False] | None:
    """Where all outputs stand, one after another. None: none of them does; False: some do, but
    not as one list."""
    long = [each for each in outputs if len(each) >= LEAST_OUTPUT]
    if not any(each in text for each in long):
        return None
    start, at = -1, 0
    for each in outputs:
        found = text.find(each, at)
        if found < 0 or (start >= 0 and found - at > _LONGEST_GAP):
            return False
        start, at = found if start < 0 else start, found + len(each)
    is_once = not any(each in text[:start] or each in text[at:] for each in long)
    return (start, at) if is_once else False


def _in_order(delegations: Iterable[RecordedDelegation]) -> list[RecordedDelegation]:
    found = sorted(delegations, key=lambda each: (each.started_at, each.ended_at))
    if len(found) < 2:
        if any(each.workflow for each in found):
            saved = f"'{found[0].workflow}' is a workflow already, and nothing else was done"
            raise InvalidUsage(saved, hint=f"stretto run {found[0].workflow}")
        hint = "a single delegation is kept as a playbook: stretto playbooks capture RUN STEP"
        raise InvalidUsage("fewer than two delegations worked, so there is no workflow", hint=hint)
    if sum(len(each.prompt) + len(each.output) for each in found) > _MOST_CHARACTERS:
        raise InvalidUsage(
            f"what was delegated has more than {_MOST_CHARACTERS:,} characters, and so much is not compared"
        )
    if len(found) > MOST_DELEGATIONS:
        raise InvalidUsage(
            f"{len(found)} delegations are too many for one workflow; {MOST_DELEGATIONS} are the most"
        )
    return found


def _ids(done: Sequence[RecordedDelegation]) -> list[str]:
    found: list[str] = []
    for each in done:
        stem = slug(each.title, 4) or slug(each.workflow or each.agent) or "step"
        id, number = stem, 1
        while id in found:
            number += 1
            id = f"{stem}-{number}"
        found.append(id)
    return found


def slug(text: str, most_words: int = 5) -> str:
    words = re.findall(r"[a-z0-9]+", text[:_LONGEST_LITERAL].lower())
    telling = [word for word in words if word not in _SMALL] or words
    made = "-".join(telling[:most_words])[:_LONGEST_ID].rstrip("-")
    return made if is_id(made) else ""


def _describe_known(id: str, done: RecordedDelegation) -> _Known:
    if done.items:
        return _Known(id, "", (), tuple(" ".join(each.split()) for each in done.outputs))
    pieces = (" ".join(each.split()) for each in re.split(r"\n\s*\n", done.output))
    normal, long = (
        " ".join(done.output.split()),
        [e for e in islice(pieces, 1_000) if len(e) >= _LEAST_PART],
    )
    # A part of it stands for the whole only if it is most of it.
    return _Known(id, normal, tuple(e for e in long if len(normal) > len(e) >= len(normal) / 2))


def _before(
    done: Sequence[RecordedDelegation], known: Sequence[_Known], later: RecordedDelegation
) -> list[_Known]:
    """The outputs that somebody could have handed on when this one began, the longest first."""
    found = [
        each
        for each, made in zip(known, done, strict=True)
        if made is not later and made.ended_at <= later.started_at
    ]
    # Of equal outputs the later one was handed on more likely.
    found.reverse()
    return sorted(found, key=lambda each: -each.size)


def _with_outputs(
    parts: list[_Part], known: Sequence[_Known], where: str, notes: list[str]
) -> list[_Part]:
    for each in known:
        if each.each:
            changed = [new for part in parts for new in _replace_list(part, each)]
            if changed != parts:
                parts = changed
                said = f"{where} was told one after another what the items of '{each.id}' gave"
                notes.append(f"{said}; the recipe passes it as a list")
        if len(each.output) < LEAST_OUTPUT:
            continue
        reference = _Part(f"steps.{each.id}.output", True)
        for wanted in (each.output, *each.paragraphs):
            changed = [new for part in parts for new in _replace_words(part, wanted, reference)]
            if changed != parts:
                parts = changed
                if wanted != each.output:
                    said = f"{where} was told a part of what '{each.id}' gave"
                    notes.append(f"{said}; the recipe passes all of it")
                break
    return parts


def _replace_words(part: _Part, wanted: str, reference: _Part) -> Iterator[_Part]:
    """The part, with each place where the words stand given by reference, whatever the blanks between them."""
    starts, normal = ([], "") if part.is_reference else _normal(part.text)
    rest, at = 0, normal.find(wanted)
    if at < 0:
        yield part
        return
    while at >= 0:
        start, end = _place(starts, at), _place(starts, at + len(wanted) - 1) + 1
        if start > rest:
            yield _Part(part.text[rest:start])
        yield reference
        rest, at = end, normal.find(wanted, at + len(wanted))
    if rest < len(part.text):
        yield _Part(part.text[rest:])


def _replace_list(part: _Part, known: _Known) -> Iterator[_Part]:
    """The part, with what the items of a map gave, one after another, as one reference."""
    starts, normal = ([], "") if part.is_reference else _normal(part.text)
    span = _list_span(normal, known.each)
    if not span:
        yield part
        return
    start, end = _place(starts, span[0]), _place(starts, span[1] - 1) + 1
    yield from (_Part(each) for each in (part.text[:start],) if each)
    yield _Part(f"steps.{known.id}.output", True)
    yield from (_Part(each) for each in (part.text[end:],) if each)


@lru_cache(maxsize=8)  # one prompt is looked through for every output before it
def _normal(text: str) -> tuple[list[tuple[int, int]], str]:
    """The words of the text with one blank between them; and where each word begins there and in the text."""
    starts: list[tuple[int, int]] = []
    words: list[str] = []
    at = 0
    for found in re.finditer(r"\S+", text):
        starts.append((at, found.start()))
        words.append(found[0])
        at += len(found[0]) + 1
    return starts, " ".join(words)


def _place(starts: Sequence[tuple[int, int]], at: int) -> int:
    begins, stands = starts[bisect_right(starts, (at, 1 << 62)) - 1]
    return stands + at - begins


# Words that name nothing by themselves, and what stands before the thing that a sentence is about.
_SMALL_WORDS = """
    a an and any are as at be by can do for from give her his how i if in into is it its me my
    of on or our out please so some tell that the their them then there these this to up us was
    we what which who will with you your first next finally
"""
_ANCHOR_WORDS = """
    about on of for in into at with from between to regarding against research investigate
    compare analyse analyze summarise summarize translate review describe explain study
"""
_NOUN_WORDS = """
    company topic customer client city country language product person author book date month
    year vendor team project repository repo subject question audience reader market industry
    region
"""
_SMALL, _ANCHORS, _NOUNS = (
    frozenset(each.split()) for each in (_SMALL_WORDS, _ANCHOR_WORDS, _NOUN_WORDS)
)
_KINDS: tuple[tuple[LiteralKind, re.Pattern[str]], ...] = (
    ("url", re.compile(r"https?://[^\s<>\"'`]+[^\s<>\"'`.,;:!?)\]]")),
    ("email", re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{0,64}\w")),
    ("text", re.compile(r"[\"“«]([^\"“”«»\n]{2,300})[\"”»]|`([^`\n]{2,300})`")),
    ("file", re.compile(r"(?:[\w.-]{1,100}/){1,20}[\w.-]{0,100}\w|\b[\w-]{1,100}\.(?:md|txt|csv|json|ya?ml|pdf|docx?|xlsx?|html|py)\b")),
    ("number", re.compile(r"(?<![\w.])\d[\d.,]*\d%?(?!\w)")),
    ("name", re.compile(r"(?<![\w.])[A-Z][\w&'-]*(?:[ -](?:(?:of|and|the|de|von|&) )?[A-Z0-9][\w&'-]*)*")),
)  # fmt: skip


def _inputs(source: CaptureSource, parts: Sequence[Sequence[_Part]]) -> dict[str, str]:
    """What came from the person, by the name of its input, in the order of their words."""
    told = [_join_words(each) for each in parts]
    found: dict[str, str] = {}
    for name, value in source.given.items():
        if not is_id(name) or not any(stands_in(value, text) for text in told):
            raise InvalidUsage(
                f"input '{name}': no prompt holds '{one_line(value, 80)}'",
                hint="name a text that the prompts repeat as it is: -i company=Acme",
            )
        found[name] = value
    words = (source.words or "\n".join(told))[:_MOST_WORDS]
    # Where the prompts are the person's own words, only what they repeat can be told from the rest.
    least = 1 if source.words else 2
    for kind, value, before in _literals(words, told):
        often = sum(stands_in(value, text) for text in told)
        is_known = any(value in each or each in value for each in found.values())
        if is_known or often < (2 if kind == "topic" else least):
            continue
        found[_free_name(kind, before, found)] = value
        if len(found) >= max(MOST_INPUTS, len(source.given)):
            break
    return found


def _join_words(parts: Sequence[_Part]) -> str:
    """What is not an output that was handed on."""
    return "\n".join(part.text for part in parts if not part.is_reference)[:_MOST_WORDS]


def _literals(words: str, told: Sequence[str]) -> Iterator[tuple[LiteralKind, str, str]]:
    """Values in the words: their kind, the text, and the word before it."""
    found: list[tuple[int, LiteralKind, str]] = []
    for kind, pattern in _KINDS:
        for match in islice(pattern.finditer(words), 200):
            text = next((group for group in match.groups() if group), match[0])
            if kind == "name" and _begins_sentence(words, match.start()):
                text = _without_first(text, told)
            if text and not any(_overlaps(match.start(), each) for each in found):
                at = words.find(text, match.start())
                found.append((at, kind, text))
    found += ((at, "topic", text) for at, text in _phrases(words, told))
    # Phrases last, because they are guessed; what comes first is most likely what it is about.
    for at, kind, text in sorted(found, key=lambda each: (each[1] == "topic", each[0])):
        before = re.findall(r"\w+", words[max(0, at - 40) : at])
        yield kind, text, before[-1].lower() if before else ""


def _overlaps(at: int, other: tuple[int, str, str]) -> bool:
    return other[0] <= at < other[0] + len(other[2])


def _begins_sentence(words: str, at: int) -> bool:
    before = words[:at].rstrip(" \t\"'“(")
    return not before or before[-1] in ".!?:\n-*"


def _without_first(text: str, told: Sequence[str]) -> str:
    """A capital at the beginning of a sentence says nothing, unless prompts have it elsewhere too."""
    first, _, rest = text.partition(" ")
    inside = re.compile(rf"[\w,;)] {re.escape(first)}(?!\w)")
    return text if any(inside.search(each) for each in told) else rest


def _phrases(words: str, told: Sequence[str]) -> Iterator[tuple[int, str]]:
    """What the words say something about, where at least two prompts repeat it."""
    taken = -1
    for clause in re.finditer(r"[^.,;:!?\n()\"]+", words):
        tokens = list(re.finditer(r"[\w'-]+", clause[0]))
        for first in range(1, len(tokens)):
            start = clause.start() + tokens[first].start()
            if tokens[first - 1][0].lower() not in _ANCHORS or start < taken:
                continue
            for last in range(min(len(tokens), first + 6) - 1, first - 1, -1):
                text = clause[0][tokens[first].start() : tokens[last].end()]
                if _is_topic(text) and sum(stands_in(text, each) for each in told) >= 2:
                    taken = start + len(text)
                    yield start, text
                    break


def _is_topic(text: str) -> bool:
    tokens = text.lower().split()
    return len(text) >= 3 and tokens[0] not in _SMALL and tokens[-1] not in _SMALL


def _free_name(kind: str, before: str, taken: Mapping[str, object]) -> str:
    stem = before if before in _NOUNS else kind
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}_{number}"
    return name


def stands_in(value: str, text: str) -> bool:
    """Where a reference can take its place. A blank value stands nowhere."""
    return bool(value.strip()) and value in text and _as_word(value).search(text) is not None


def _as_word(value: str) -> re.Pattern[str]:
    # Behind `\` or `{` the braces of a reference would be text, or begin too early.
    return re.compile(rf"(?<![\w\\{{]){re.escape(value)}(?!\w)")


def _with_inputs(parts: Sequence[_Part], inputs: Mapping[str, str]) -> list[_Part]:
    found = list(parts)
    for name, value in sorted(inputs.items(), key=lambda pair: -len(pair[1])):
        found = [new for part in found for new in _fill_in(part, name, value)]
    return found


def _fill_in(part: _Part, name: str, value: str) -> Iterator[_Part]:
    if part.is_reference:
        yield part
        return
    rest = 0
    for match in _as_word(value).finditer(part.text):
        if match.start() > rest:
            yield _Part(part.text[rest : match.start()])
        yield _Part(f"inputs.{name}", True)
        rest = match.end()
    if rest < len(part.text):
        yield _Part(part.text[rest:])


def _template(parts: Iterable[_Part]) -> str:
    template = ""
    for part in parts:
        if not part.is_reference:
            template += part.text.replace("{{", "\\{{")  # braces that the prompt had are text
            continue
        # No reference can stand right behind one of these, and a blank seldom matters.
        gap = " " if template.endswith(("\\", "{")) else ""
        template += f"{gap}{{{{{part.text}}}}}"
    return template


def _used_steps(parts: Iterable[_Part]) -> tuple[str, ...]:
    steps = (
        part.text.split(".")[1]
        for part in parts
        if part.text.startswith("steps.") and part.is_reference
    )
    return tuple(dict.fromkeys(steps))


def _output(source: CaptureSource, steps: Sequence[CapturedStep], notes: list[str]) -> str:
    """What the person was told, if it is what steps gave; else what no other step has used."""
    known = sorted((_describe_known(e.id, e.done) for e in steps), key=lambda e: -e.size)
    quoted = _with_outputs([_Part(source.answer)], known, "the answer", [])
    told = list(_used_steps(quoted))
    if not told:
        used = {id for each in steps for id in each.uses}
        told = [each.id for each in steps if each.id not in used]
        if source.answer.strip() and len(told) == 1:
            notes.append(f"the answer was reworded; the recipe's output is that of '{told[0]}'")
    if told == [steps[-1].id]:
        return ""
    if len(told) == 1:
        return f"{{{{steps.{told[0]}.output}}}}"
    return "\n\n".join(f"## {id}\n\n{{{{steps.{id}.output}}}}" for id in told)


def differences(
    captured: CapturedRecipe, asked: Mapping[str, str], edges: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """How a replay differs from what was recorded. `asked`: the prompt of each step in the replay;
    `edges`: the steps that each step of the plan waits for."""
    found = []
    for step in captured.steps:
        if set(edges.get(step.id, ())) != set(step.uses):
            found.append(
                f"step '{step.id}' waits for {listed(edges.get(step.id, ())) or 'nothing'}, and was "
                f"told {listed(step.uses) or 'nothing'}"
            )
        for part, (prompt, _) in step.done.parts.items():
            key = f"{step.id}/{part}" if part else step.id
            if key not in asked:
                found.append(f"step '{key}' did not run")
            elif not step.is_told_more and not says_same(asked[key], prompt):
                found.append(f"step '{key}' was asked something else")
    return tuple(found)


def says_same(one: str, other: str) -> bool:
    """But for blanks: an output that was pasted into a sentence seldom kept its own."""
    return "".join(one.split()) == "".join(other.split())
