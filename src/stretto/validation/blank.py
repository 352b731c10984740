"""Does a text say anything? In: an answer, or what a command printed. Out: whether it is empty, or as good as.

Blank: white space, characters that nobody sees, a model's thoughts without an answer, the tokens of
its own protocol. A text that is not blank and still says nothing (`null`, `---`) may be meant so.
"""

import json
import re
from unicodedata import category

from stretto.vocabulary.json_value import Json

# What a model thinks aloud before it answers; some stop before the answer, or in the middle.
_THOUGHTS = re.compile(
    r"""<(?P<tag>(?:seed:)?think|thinking|thoughts?|reasoning|reflection|scratchpad|chain_of_thought
            |(?:inner|internal)_monologue)>.*?(?:</(?P=tag)>|\Z)
      | \[THINK\].*?(?:\[/THINK\]|\Z) | ◁think▷.*?(?:◁/think▷|\Z)
      | <\|begin_of_thought\|>.*?(?:<\|end_of_thought\|>|\Z)
      | <\|START_THINKING\|>.*?(?:<\|END_THINKING\|>|\Z) | <unused94>.*?(?:<unused95>|\Z)
      | (?:<\|start\|>assistant)?<\|channel\|>analysis<\|message\|>.*?(?:<\|end\|>|\Z)""",
    re.DOTALL | re.VERBOSE | re.IGNORECASE,
)
# A server may drop the mark that opens the thoughts: what ends with the closing one has no answer.
_THOUGHTS_END = re.compile(
    # Not where somebody writes about it: write `</think>`, say </think>.
    r"(?<![ `'\"(])(?:</(?:(?:seed:)?think|thinking|thoughts?|reasoning)>|\[/THINK\]|◁/think▷)\Z|assistantfinal\Z",
    re.IGNORECASE,
)
# Tokens with which a model ends; a server that does not know them passes them on as text.
_TOKENS = re.compile(
    r"""<\|(?:start|im_start|start_header_id)\|>\s*(?:assistant\b)? | <\|channel\|>\s*final
      | </?s> | <[|｜][\w▁]{1,30}[|｜]> | <(?:eos|bos|pad|unk|end_of_turn|start_of_turn)>
      | \[/?INST\] | \[(?:EOS|BOS|PAD)\]""",
    re.IGNORECASE | re.VERBOSE,
)
_MARKUP = re.compile(r"<!--.*?-->|<br\s*/?>|&nbsp;", re.DOTALL | re.IGNORECASE)
_STYLE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-Z\\-_]")  # of a terminal
_LABEL = re.compile(r"\W*(?:assistant|(?:final )?answer|response|output|result)\s*:\W*", re.I)
_LONGEST_LABEL = 40
_EMPTY_FENCE = re.compile(r"\A\s*(?:```|~~~)\w*\s*(?:(?:```|~~~)\s*)?\Z")
_EMPTY_QUOTES = frozenset({'""', "''", "``", "“”", "„“", "«»"})
# Letters and symbols by their category, which show nothing.
_UNSEEN = frozenset("\u115f\u1160\u2800\u3164\uffa0\ufffc")
_NO_ANSWERS = frozenset({"null", "undefined", "nil", "nan", "[object object]", "todo", "tbd"})
_EMPTY_ELEMENT = re.compile(r"<([\w:-]{1,60})(?:\s[^<>]{0,500})?(?:/>|>\s*</\1>)")
_EMPTY_BOX = re.compile(r"\\boxed\{\s*\}|\\[nrt]")
# [Insert summary here], <your answer here>, # your code here: also alone in a fence
_TO_FILL_IN = re.compile(
    r"(?:(?:```|~~~)\w*\s*)?(?:#|//)?\s*[\[<({]?(?:(?:insert|enter|add|put|write)\s[^\n]{0,60}|your\s[\w ]{1,40})\shere[\])>}]?[.…]*\s*(?:```|~~~)?",
    re.IGNORECASE,
)
_LONGEST_NOTHING = 1_000  # characters; a longer text is looked at no further


def is_blank(text: str) -> bool:
    answer = text.strip()
    if answer[:1].isalnum():  # as nearly all do
        is_label = len(answer) <= _LONGEST_LABEL and _LABEL.fullmatch(answer) is not None
        if not is_label and answer[0] not in _UNSEEN and not _ends_in_thought(answer):
            return False
    answer = _STYLE.sub("", answer)
    answer = _TOKENS.sub("", _THOUGHTS.sub("", answer)).strip()
    if len(answer) <= _LONGEST_NOTHING:
        answer = _MARKUP.sub("", answer).strip()
    return (
        not _shows_something(answer)
        or answer in _EMPTY_QUOTES
        or _EMPTY_FENCE.match(answer) is not None
        or (len(answer) <= _LONGEST_LABEL and _LABEL.fullmatch(answer) is not None)
        or _ends_in_thought(answer)
    )


def says_nothing(text: str) -> bool:
    """Whether it is not blank and yet no answer: a placeholder, brackets around nothing, marks alone."""
    said = text.strip()
    if not said or len(said) > _LONGEST_NOTHING:
        return False
    if said.casefold() in _NO_ANSWERS or _TO_FILL_IN.fullmatch(said):
        return True
    bare = _EMPTY_BOX.sub("", _EMPTY_ELEMENT.sub("", said))
    if not any(_is_word(letter) for letter in bare):
        return True
    return said[0] in "{[" and _is_empty_json(said)


def _ends_in_thought(answer: str) -> bool:
    return _THOUGHTS_END.search(answer, max(0, len(answer) - _LONGEST_LABEL)) is not None


def _shows_something(text: str) -> bool:
    return any(category(each)[0] not in "CZM" and each not in _UNSEEN for each in text)


def _is_word(letter: str) -> bool:
    return category(letter)[0] in "LNS" and letter not in "\ufffd`^" and letter not in _UNSEEN


def _is_empty_json(text: str) -> bool:
    try:
        return _is_empty(json.loads(text))
    except (ValueError, RecursionError):
        return False


def _is_empty(value: Json) -> bool:
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, dict):
        return all(map(_is_empty, value.values()))
    return value is None or (isinstance(value, list) and all(map(_is_empty, value)))
