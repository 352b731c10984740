"""Which commands an agent may run. In: `git diff:*` of `Bash(git diff:*)`. Out: yes, or why not.

`words:*` is every command that begins with these words; `words` is that command and no other. Of a
command made of several each must be allowed, and one that cannot be taken apart is not.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from stretto.adapters.tools.command_options import overreaching
from stretto.adapters.tools.shell_words import NotPlain, simple_commands


@dataclass(frozen=True, slots=True)
class CommandFilter:
    text: str  # as written
    words: tuple[str, ...]
    is_prefix: bool

    def allows(self, command: Sequence[str]) -> bool:
        begins = tuple(command[: len(self.words)]) == self.words
        return begins and (self.is_prefix or len(command) == len(self.words))


def read_filter(text: str) -> CommandFilter | None:
    """None when it is no filter at all. `*` alone allows every plain command."""
    text = text.strip()
    is_prefix = text.endswith((":*", " *")) or text == "*"
    bare = text.removesuffix("*").removesuffix(":") if is_prefix else text
    if not bare.strip():
        return CommandFilter(text, (), True) if text in ("*", ":*") else None
    try:
        commands = simple_commands(bare)
    except NotPlain:
        return None
    return CommandFilter(text, tuple(commands[0]), is_prefix) if len(commands) == 1 else None


def forbidden_because(command: str, filters: Sequence[CommandFilter]) -> str | None:
    """Why none of the filters lets this command through."""
    may = ", ".join(one.text for one in filters)
    try:
        simple = simple_commands(command)
    except NotPlain as why:
        return f"the command cannot be checked, because {why}. You may run: {may}"
    for words in simple:
        matching = [one for one in filters if one.allows(words)]
        if not matching:
            return f"you may not run '{' '.join(words)[:200]}'. You may run: {may}"
        # One filter that names the option, or allows everything, is enough.
        faults = [overreaching(words, len(one.words)) for one in matching]
        if all(faults):
            said = f"'{faults[0]}' makes '{words[0]}' write files or start programs"
            return f"{said}, which its filter does not name. You may run: {may}"
    return None
