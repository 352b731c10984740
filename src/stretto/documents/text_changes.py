"""Change a document's text where one value stands, and leave every other byte as it is written.

In: a text, the nodes that were read from it, and what is to be there. Out: Changes. Whoever applies them
reads the result again: a file can be written in more ways than are thought of here, and only the reader
knows what a text means.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from stretto.documents.node import ListNode, MapNode, Node, ScalarNode
from stretto.documents.yaml_form import yaml_form
from stretto.documents.yaml_text import plain_scalar
from stretto.vocabulary.json_value import Json

_BREAK = re.compile(r"\r\n|\n|\r")
_COMMENT_LINE = re.compile(r"[ \t]*#")
_INDENT = re.compile(r"[ \t]*")
_BLANK_LINES = re.compile(r"(?:(?:\r\n|\n|\r)[ \t]*(?=[\r\n]|\Z))*+(?:\r\n|\n|\r)?")
_WORD = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
_SPECIAL = frozenset(["y", "n", "yes", "no", "on", "off"])  # truth values to some readers of YAML


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """What stands between two places is replaced."""

    start: int
    end: int
    text: str


def apply_changes(text: str, changes: Iterable[Change]) -> str:
    """The changes do not overlap. Of two at one place the first stays the first."""
    pieces, at = [], 0
    for change in sorted(changes, key=lambda each: (each.start, each.end)):
        pieces += [text[at : change.start], change.text]
        at = change.end
    return "".join([*pieces, text[at:]])


class WrittenText:
    """A text, and how its author writes."""

    def __init__(self, text: str, is_json: bool) -> None:
        self.text = text
        self.is_json = is_json

    # --- what is there ---------------------------------------------------------------------

    def word(self, word: str) -> str:
        """A word as a value: in quotes where it could be taken for something else."""
        is_safe = plain_scalar(word) == word and word.lower() not in _SPECIAL
        return word if not self.is_json and is_safe and _WORD.fullmatch(word) else json.dumps(word)

    def is_flow(self, node: Node) -> bool:
        return self.text[node.start : node.start + 1] in ("[", "{")

    def has_comment(self, start: int, end: int) -> bool:
        """Whether a comment may stand there: any `#` is taken for one, which is the safe side."""
        return not self.is_json and "#" in self.text[start:end]

    def column(self, at: int) -> int:
        return at - self._line_start(at)

    def end_of(self, node: Node) -> int:
        """Where the last word of a value ends. A block with `|+` ends with its last blank lines."""
        last = self._last_leaf(node)
        if self._keeps_lines(last):
            return last.end
        return last.start + len(self.text[last.start : last.end].rstrip())

    def _last_leaf(self, node: Node) -> Node:
        while (inner := _inner(node)) and not self.is_flow(node):
            node = inner[-1]
        return node

    def dash_of(self, many: ListNode, index: int) -> int:
        """The '-' before an item of a block list."""
        column, at = self.column(many.start), many.items[index].start
        while at > many.start:
            dash = self._line_start(at) + column
            if self.text[dash : dash + 1] == "-" and not self.text[dash - column : dash].strip():
                return dash
            at = self._line_start(at) - 1
        return many.start

    # --- lists -----------------------------------------------------------------------------

    def add_item(self, many: ListNode, index: int, item: Json) -> list[Change]:
        """Put an item at `index`, which is at least 1 unless the list is empty."""
        if not many.items:
            return [Change(many.start + 1, many.end - 1, self._flow(item, ""))]
        if self.is_flow(many):
            blank = self._blank_before_items(many)
            written = self._flow(item, _BREAK.split(blank)[-1] if _BREAK.search(blank) else None)
            return self._behind_item(many, index - 1, written)
        indent = " " * self.column(self.dash_of(many, index - 1))
        lines = yaml_form([item]) if not isinstance(item, str) else f"- {self.word(item)}\n"
        return [
            self._after_lines(
                many, index - 1, [indent + line if line else "" for line in lines.splitlines()]
            )
        ]

    def copy_item(self, many: ListNode, index: int, changes: Iterable[Change]) -> list[Change]:
        """Put a copy of an item behind it, with these changes to what it says."""
        item = many.items[index]
        if self.is_flow(many):
            return self._behind_item(many, index, self._change_part(item.start, item.end, changes))
        start = self._line_start(self.dash_of(many, index))
        end = self._end_of_item(many, index)
        lines = _BREAK.split(self._change_part(start, end, changes))
        ends_a_line = self.text[end - 1] in "\r\n"
        return [self._after_lines(many, index, lines[:-1] if ends_a_line else lines)]

    def remove_item(self, many: ListNode, index: int) -> list[Change]:
        item = many.items[index]
        if self.is_flow(many):
            return self._remove_from_flow(many, index)
        dash = self.dash_of(many, index)
        start, end = self._line_start(dash), self._end_of_item(many, index)
        if self.text[start:dash].strip() or item.start < dash:
            return []
        if index and self._keeps_lines(self._last_leaf(many.items[index - 1])):
            # The blank lines below the item would become lines of the block above.
            end = _BLANK_LINES.match(self.text, end).end()  # type: ignore[union-attr]
        return [self._without_lines(start, end)]

    # --- mappings --------------------------------------------------------------------------

    def add_entry(self, map: MapNode, key: str, value: str, after: str) -> list[Change]:
        """Put `key: value` behind the entry `after`. The value is written as it is to stand there."""
        entry, key_node = map.entries[after], map.keys[after]
        if self.is_flow(map):
            spelt = (
                json.dumps(key) if self.text[key_node.start : key_node.start + 1] == '"' else key
            )
            colon = ":" if self.is_json and not self._has_blank_after_colon(map, after) else ": "
            blank = self._blank_before_keys(map)
            return [Change(entry.end, entry.end, f",{blank}{spelt}{colon}{value}")]
        line = " " * self.column(key_node.start) + f"{key}: {value}"
        return [self._line_after(self.end_of(entry), [line])]

    def remove_entry(self, map: MapNode, key: str) -> list[Change]:
        """Nothing, where it cannot be done without losing a comment or the item's dash."""
        keys = list(map.keys)
        start, entry = map.keys[key].start, map.entries[key]
        if self.is_flow(map):
            if len(keys) < 2 or keys[0] == key:
                return []
            before = map.entries[keys[keys.index(key) - 1]].end
            return [] if self.has_comment(before, entry.end) else [Change(before, entry.end, "")]
        line, end = self._line_start(start), self._line_end(self.end_of(entry))
        if self.text[line:start].strip() or self.has_comment(start, end):
            return []
        return [self._without_lines(line, end)]

    def replace(self, node: Node, written: str) -> list[Change]:
        """Write a value on one line in place of another; after a bare `key:`, with a blank."""
        end = node.start if isinstance(node, ScalarNode) and not node.written else self.end_of(node)
        gap = "" if end != node.start or self.text[node.start - 1 : node.start].isspace() else " "
        return [Change(node.start, end, gap + written)]

    def rename(self, node: ScalarNode, old: str, new: str) -> list[Change]:
        """A word for a scalar that says `old`, in the quotes that it has."""
        quote = self.text[node.start : node.start + 1]
        if quote in ("'", '"') and self.text[node.start + 1 : node.end - 1] == old:
            return [Change(node.start + 1, node.end - 1, new)]
        if self.text[node.start : node.end].rstrip() == old:
            return [Change(node.start, node.start + len(old), self.word(new))]
        return []

    # --- lines -----------------------------------------------------------------------------

    def _line_start(self, at: int) -> int:
        breaks = (self.text.rfind("\n", 0, at), self.text.rfind("\r", 0, at))
        return max(breaks) + 1

    def _line_end(self, at: int) -> int:
        found = _BREAK.search(self.text, at)
        return found.start() if found else len(self.text)

    def _line_break(self, near: int) -> str:
        found = _BREAK.search(self.text, near) or _BREAK.search(self.text)
        return found[0] if found else "\n"

    def _end_of_item(self, many: ListNode, index: int) -> int:
        """The end of the last line of an item: comments below it that stand in its column are its own."""
        column = self.column(many.start)
        last = self.end_of(many.items[index])
        if last > 0 and self.text[last - 1] in "\r\n":
            return last
        end = self._line_end(last)
        while (found := _BREAK.match(self.text, end)) is not None:
            next_end = self._line_end(found.end())
            line = self.text[found.end() : next_end]
            is_comment = _COMMENT_LINE.match(line) is not None
            if not is_comment or len(line) - len(line.lstrip(" ")) <= column:
                break
            end = next_end
        return end

    def _after_lines(self, many: ListNode, index: int, lines: list[str]) -> Change:
        return self._line_after(self._end_of_item(many, index), lines)

    def _line_after(self, at: int, lines: list[str]) -> Change:
        end = at if at > 0 and self.text[at - 1] in "\r\n" else self._line_end(at)
        line_break = self._line_break(self._line_start(end - 1) if end == at else end)
        if end > 0 and end == at and self.text[end - 1] in "\r\n":
            return Change(end, end, "".join(line + line_break for line in lines))
        return Change(end, end, "".join(line_break + line for line in lines))

    def _without_lines(self, start: int, end: int) -> Change:
        if end > start and self.text[end - 1] in "\r\n":
            return Change(start, end, "")
        if (found := _BREAK.match(self.text, end)) is not None:
            return Change(start, found.end(), "")
        # The last line of a file without a final break: what goes is the break before it.
        before = 2 if self.text[max(0, start - 2) : start] == "\r\n" else min(1, start)
        return Change(start - before, end, "")

    # --- brackets --------------------------------------------------------------------------

    def _flow(self, value: Json, indent: str | None) -> str:
        """`indent`: of the line on which it begins; None: it stays on one line."""
        if isinstance(value, str):
            return self.word(value)
        if indent is None or not self.is_json:
            return json.dumps(value, ensure_ascii=False)
        step = "\t" if "\t" in indent else " " * (len(indent) // 2 or 2)
        written = json.dumps(value, ensure_ascii=False, indent=step)
        return written.replace("\n", self._line_break(0) + indent)

    def _change_part(self, start: int, end: int, changes: Iterable[Change]) -> str:
        moved = [Change(each.start - start, each.end - start, each.text) for each in changes]
        return apply_changes(self.text[start:end], moved)

    def _behind_item(self, many: ListNode, index: int, written: str) -> list[Change]:
        """Put an item behind another one. A comment on the line of that one stays with it."""
        item = many.items[index]
        end, comma = item.end, self._comma(item.end, many.end - 1)
        line_end, line_break = self._line_end(end), self._line_break(end)
        if comma is not None and comma > line_end and self.has_comment(end, line_end):
            indent = self.text[self._line_start(comma) : comma]
            return [Change(comma, comma, f", {written}{line_break}{indent}")]
        has_own_comma = comma is not None and comma < line_end
        behind = comma + 1 if comma is not None and has_own_comma else end
        if self.is_json or line_end > many.end or not _COMMENT_LINE.match(self.text, behind):
            return [Change(end, end, f",{self._blank_before_items(many)}{written}")]
        line = self._line_start(item.start)
        indent = self.text[line : line + len(_INDENT.match(self.text, line)[0])]  # type: ignore[index]
        new_line = f"{line_break}{indent}{written}"
        if has_own_comma:
            return [Change(line_end, line_end, f"{new_line},")]
        return [Change(end, end, ","), Change(line_end, line_end, new_line)]

    def _blank_before_items(self, many: ListNode) -> str:
        first, last = many.items[0], many.items[-1]
        end = many.items[-2].end if len(many.items) > 1 else many.start + 1
        return self._blank(
            end, last.start if len(many.items) > 1 else first.start, len(many.items) > 1
        )

    def _blank_before_keys(self, map: MapNode) -> str:
        keys = list(map.keys.values())
        if len(keys) == 1:
            return self._blank(map.start + 1, keys[0].start, False)
        ends = list(map.entries.values())
        return self._blank(ends[0].end, keys[1].start, True)

    def _blank(self, start: int, end: int, follows_comma: bool) -> str:
        """The blanks, or the line break and indentation, to write behind a comma."""
        between = self.text[start:end]
        if follows_comma:
            between = between.partition(",")[2]
        if between.strip():
            return " "  # a comment
        return between or ("" if follows_comma else " ")

    def _has_blank_after_colon(self, map: MapNode, key: str) -> bool:
        return self.text[map.keys[key].end : map.entries[key].start] != ":"

    def _remove_from_flow(self, many: ListNode, index: int) -> list[Change]:
        item = many.items[index]
        start, end = item.start, item.end
        comma = self._comma(end, many.end - 1)
        if comma is not None:
            end = comma + 1
            line, line_end = self._line_start(start), self._line_end(end)
            if (
                not self.text[line:start].strip()
                and not self.text[end:line_end].strip()
                and line > many.start
            ):
                return [self._without_lines(line, line_end)]
            before = self._comma(many.items[index - 1].end, start) if index else None
            if before is not None and not self.has_comment(before, start):
                return [Change(before, item.end, "")]
            blank = len(self.text[end:line_end]) - len(self.text[end:line_end].lstrip(" "))
            return [Change(start, end + blank, "")]
        if index == 0:
            return [Change(start, end, "")]
        before = self._comma(many.items[index - 1].end, start)
        if before is None:
            return []
        if self.has_comment(before, start):
            return [Change(before, before + 1, ""), Change(start, end, "")]
        return [Change(before, end, "")]

    def _comma(self, start: int, end: int) -> int | None:
        at = start
        while at < end:
            if self.text[at] == ",":
                return at
            at = self._line_end(at) if self.text[at] == "#" and not self.is_json else at + 1
        return None

    def _keeps_lines(self, node: Node) -> bool:
        if not isinstance(node, ScalarNode) or self.text[node.start : node.start + 1] not in (
            "|",
            ">",
        ):
            return False
        header = self.text[node.start : self._line_end(node.start)].split("#")[0]
        return "+" in header


def _inner(node: Node) -> list[Node]:
    if isinstance(node, MapNode):
        return list(node.entries.values())
    return node.items if isinstance(node, ListNode) else []
