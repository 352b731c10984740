"""What was not said, and what says nothing, is told from a short answer."""

import time

import pytest

from stretto.validation.blank import is_blank, says_nothing

BLANK = (
    "", " \n\t", "\u00a0", "\u3164", "\u2800", "\u180e", "\ufe0f", "\u034f", "\U000e0001", "\u2066\u2069", "\ufffc",
    "\x1b[0m", "\x1b[2J\x1b[H", "<!-- -->", "<br>", "&nbsp;\n<br/>", "```\n\n```", '""', "“”",
    "<think>Hm.", "<THINKING>Hm.</THINKING>\n", "\ufeff<think>x</think>", "<think>a</think> <think>b</think>",
    "Let me see.</think>", "Let me see.\n</think>\n\n", "analysisLet me see. assistantfinal",
    "<|begin_of_thought|>x<|end_of_thought|>", "<|START_THINKING|>x<|END_THINKING|>", "<unused94>thought\nx",
    "<inner_monologue>x</inner_monologue>", "<|start|>assistant<|channel|>analysis<|message|>Hm",
    "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>",
    "</s>", "<｜end▁of▁sentence｜>", "<|END_OF_TURN_TOKEN|>", "<|im_end|>\n<|im_start|>assistant\n", "[EOS]",
    "Answer: <think>Hm.</think>", "assistant:", "Final Answer:\n", "**Answer:**",
)  # fmt: skip
NOTHING = (
    "null", "Undefined", "[object Object]", "NaN", "{}", "[]", '{"answer": "", "notes": []}', "[null]", "---", "…",
    "#", "**", "()", "\\boxed{}", '"\\n"', "<answer></answer>", "<result/>", "\ufffd",
    "TODO", "[Insert summary here]", "<your answer here>", "Your answer here.", "```python\n# your code here\n```",
)  # fmt: skip
SAID = (
    "yes", "No.", "None", "0", "+", "👍", "中", "𝟙", "[1]", '{"a": 0}', "false", "<answer>x</answer>", "<think>a</think>yes",
    "a</think>yes", "assistant", "Answer: 4", "<p>x</p>", "<br>x", "\x1b[31mred\x1b[0m", "- a\n- b", "…and so on",
    "Use the tag like this: <think>reasoning</think>", "So: [THINK]x[/THINK]", "write `</think>`", "It ends with </think>", "\u202eabc", "<analysis>x</analysis>",
    "Put your coat here and come in.", "You are here", "Insert the key here, then turn it.", "TODO: buy tea",
)  # fmt: skip
LONG = (
    "<think>" * 100_000, "<|a" * 100_000, "<!--" * 100_000, "\x1b[" * 100_000, "\x1b[0" * 100_000, "<" * 300_000,
    "\u200b" * 300_000, "<a><a>" * 160, "</think>" * 50_000, "[" * 1_000,
)  # fmt: skip


@pytest.mark.parametrize("text", BLANK)
def test_what_was_never_said_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", NOTHING)
def test_a_placeholder_says_nothing(text: str) -> None:
    assert says_nothing(text)
    assert not is_blank(text)


@pytest.mark.parametrize("text", SAID)
def test_a_short_answer_is_one(text: str) -> None:
    assert not is_blank(text)
    assert not says_nothing(text)


def test_no_text_takes_long() -> None:
    began = time.process_time()
    for text in LONG:
        is_blank(text)
        says_nothing(text)
    assert time.process_time() - began < 5.0
