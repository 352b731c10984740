"""A tool call that stands in an answer is known, in whatever form a model writes it; talk of tools is not one."""

import time

import pytest

from stretto.agents.tool_calls import looks_like_call

GIVEN = '{"file_path": "a.txt"}'
CALL = f'{{"name": "Read", "arguments": {GIVEN}}}'
CALLS = (
    CALL,
    f"{CALL}\n{CALL}",
    f"[{CALL}]",
    f"```json\n{CALL}\n```",
    f"I will read it.\n\n```json\n{CALL}\n```",
    f"I will read it.\n{CALL}",
    f'{{"tool_calls": [{{"function": {CALL}}}]}}',
    f'{{"function_call": {CALL}}}',
    f'{{"action": "Read", "action_input": {GIVEN}}}',
    f'{{"tool": "read", "input": {GIVEN}}}',
    f'{{"recipient_name": "functions.Read", "parameters": {GIVEN}}}',
    f'{{"type": "tool_use", "name": "Read", "input": {GIVEN}}}',
    f"Thought: I must read.\nAction: Read\nAction Input: {GIVEN}",
    "Action: Read[a.txt]",
    "Read(file_path='a.txt')",
    "[Read(file_path='a.txt')]",
    "I read it first.\nRead(file_path='a.txt')",
    "```tool_code\nprint(Read(file_path='a.txt'))\n```",
    "<tool_code>print(x)</tool_code>",
    f"to=functions.Read {GIVEN}",
    f"functions.Read:0 {GIVEN}",
    f"Tool call: Read({GIVEN})",
    f"✿FUNCTION✿: Read\n✿ARGS✿: {GIVEN}",
    f"<tool>Read</tool><tool_input>{GIVEN}</tool_input>",
    f"<tool_use><name>Read</name><arguments>{GIVEN}</arguments></tool_use>",
    "<Read>\n<file_path>a.txt</file_path>\n</Read>",
    '<x:tool_call><invoke name="Read"></invoke></x:tool_call>',
    "<tool_call>Read\n<arg_key>file_path</arg_key><arg_value>a.txt</arg_value></tool_call>",
    f'[TOOL_REQUEST]{{"x": {GIVEN}}}[END_TOOL_REQUEST]',
    f"<|START_ACTION|>[{CALL}]<|END_ACTION|>",
    f"<|tool_calls_section_begin|><|tool_call_begin|>functions.Read:0{GIVEN}<|tool_call_end|>",
    "<｜tool▁calls▁begin｜>x<｜tool▁calls▁end｜>",
    f"<|channel|>commentary to=functions.Read<|message|>{GIVEN}<|call|>",
    '<|python_tag|>Read.call(file_path="a.txt")',
)
TALK = (
    "Done.",
    "I read the file with Read(file_path='a.txt'), and it says so.",
    "The tool Read is good.",
    "Tools used: Read, Write",
    "- Read: reads files\n- Write: writes files",
    '{"name": "Ann", "input": 3}',
    '{"name": "Read", "findings": []}',
    "[1, 2]",
    "def f(x):\n    return g(x)",
    "```python\nprint(x)\n```",
    "Read the book (it is good)",
    "Actions:\n1. Read it.",
    "The action: stop",
    "See <b>all</b> of it, and the <invoices>.",
)
LONG = (
    "<" * 10**6,
    "```" * 10**5,
    "{" * 10**6,
    "\n{" * 10**5,
    "[" * 99_999,
    "\nAction:" * 10**5,
    "<tool " * 10**5,
)


@pytest.mark.parametrize("text", CALLS)
def test_a_call_is_known(text: str) -> None:
    assert looks_like_call(text, ("Read", "Write"))


@pytest.mark.parametrize("text", TALK)
def test_talk_is_no_call(text: str) -> None:
    assert not looks_like_call(text, ("Read", "Write"))


def test_of_other_tools_only_the_marks_tell() -> None:
    assert not looks_like_call(CALL, ("Write",))
    assert looks_like_call(f"<tool_call>{CALL}</tool_call>", ())


def test_no_text_takes_long() -> None:
    began = time.process_time()
    for text in LONG:
        looks_like_call(text, ("Read",))
    assert time.process_time() - began < 5.0
