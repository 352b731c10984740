"""Does an answer do what was asked, or only speak of it? In: a short text. Out: what it does instead.

Nobody answers a subagent, so what it promises never comes, and what it asks for is never given. Only
forms that are about the model's own work are known; a longer text is an answer, whatever it begins with.
"""

import re

_LONGEST_TALK = 400  # characters
_ASSENT = r"(?:(?:sure|certainly|of\scourse|absolutely|okay|ok|alright|great|understood|got\sit|yes)\b[,.!—-]*\s*)*"
_CANNOT = r"(?:can't|cannot|can\snot|(?:am|'m)\s(?:unable|not\sable)\sto|don't\shave\s(?:access\sto|the\sability\sto))"
_FILES = r"(?:directly\s)?(?:access|browse|open|read|view|edit|modify|your|(?:local\s)?files)"
# "Unfortunately, I cannot attend" may be the letter that was asked for.
_REFUSAL = re.compile(
    rf"""(?:(?:i'm|i\sam)\s(?:very\s|really\s|so\s)?sorry|sorry|i\sapologi[sz]e|my\sapologies|unfortunately)
            [,.;!]?\s(?:but\s)?(?:as\san\sai\b[^,.]{{0,40}},\s)?i\s?{_CANNOT}\s
            (?:assist|help\swith|comply|fulfill?|do\s(?:this|that)|provide|complete|process|perform|generate|create|answer
              |engage|continue|{_FILES})\b
      | as\san?\s(?:ai|(?:large\s)?language\smodel)\b[^,.]{{0,60}},\si\b
      | i\s?{_CANNOT}\s(?:assist\swith|help\swith|comply|fulfill?|do\s(?:this|that)|{_FILES})\b""",
    re.VERBOSE,
)
# Of looking, not of changing: "I will rename the function" may be the plan that was asked for.
_LOOKING = (
    r"(?:read|look|check|search|open|examine|inspect|analy[sz]e|review|investigate|explore|fetch|list|take\sa\slook"
    r"|go\sthrough|do\sthat|do\sthis|(?:start|begin)\s(?:by|with))"
)
_PROMISE = re.compile(
    rf"""{_ASSENT}(?:(?:first|next|now|then|to\s(?:do\sthis|begin|start))\b,?\s+)?
         (?:i'll|i\swill|i'm\sgoing\sto|i\sam\sgoing\sto|let\sme|i\sneed\sto)\s+
         (?:(?:now|first|next|then|quickly|also|just)\s+)*{_LOOKING}\b""",
    re.VERBOSE,
)
_SENTENCES = re.compile(r"(?<=[.!?…])\s+|\n+")
_FILLER = re.compile(rf"{_ASSENT}|(?:one|just a) (?:moment|second|sec|minute)(?: please)?")
_ASKS = re.compile(
    r"\b(?:provide|share|paste|upload|send|give|attach|specify|tell me)\b[^.!?\n]{0,80}\byou(?:'d| would)?(?: like| want) me to\b"
)


def what_instead(text: str, has_tools: bool) -> str:
    """Empty for an answer. What sounds like a promise is only one of an agent that has tools for it."""
    if len(text) > _LONGEST_TALK:
        return ""
    said = " ".join(text.replace("’", "'").split(" ")).strip().casefold()
    if _REFUSAL.match(said):
        return "says that it cannot do this"
    if _ASKS.search(said):
        return "asks for what it should work on"
    if has_tools and _is_promise(said):
        return "says only what it will do"
    if said.endswith((":", "：")) and "\n" not in said and " " in said:
        return "announces what does not follow"
    return ""


def _is_promise(said: str) -> bool:
    """Whether every sentence tells of work to come, or nothing at all."""
    sentences = [each.rstrip(".!?…: ") for each in _SENTENCES.split(said)]
    told = [each for each in sentences if not _FILLER.fullmatch(each)]
    return bool(told) and all(map(_PROMISE.match, told))
