"""What a model says instead of working, and what sounds alike and is an answer."""

import time

import pytest

from stretto.validation.talk import what_instead

TALK = {
    "I'm sorry, but I can't assist with that.": "says that it cannot do this",
    "I’m sorry, but I can’t help with that request.": "says that it cannot do this",
    "I apologize, but I cannot fulfill this request.": "says that it cannot do this",
    "As an AI language model, I cannot browse files.": "says that it cannot do this",
    "As an AI, I don't have access to your files.": "says that it cannot do this",
    "I am unable to access files on your computer.": "says that it cannot do this",
    "I don't have the ability to read files.": "says that it cannot do this",
    "I will now read the file and get back to you.": "says only what it will do",
    "I'll start by reading the file.": "says only what it will do",
    "Let me read the file first.": "says only what it will do",
    "Sure! I'll look into this right away.": "says only what it will do",
    "First, I need to look at the file. Let me do that now.": "says only what it will do",
    "Okay, let me check that for you...": "says only what it will do",
    "I'm going to analyse the repository.\n\nOne moment please.": "says only what it will do",
    "Could you please provide the file you want me to look at?": "asks for what it should work on",
    "Sure! Please paste the text you'd like me to summarize.": "asks for what it should work on",
    "Here are the results:": "announces what does not follow",
}
ANSWERS = (
    "", "yes", "Done.", "Understood.", "I have read it.", "Unfortunately, I cannot attend the party.",
    "Sorry, I can't make it on Monday.", "I cannot find any mention of tea in the files.", "I will be there at noon.",
    "I will always love you.", "I will rename the function. Then I will run the tests.", "Let's use Postgres.",
    "I'll take the red one.", "Let me explain: it is blue.", "Let me check. It is 7.", "I can't say: the file holds no date.",
    "Could you please clarify which invoice you mean?", "How can I help you today?", "Yes:\n- tea\n- milk", "The answer is: 4",
    "I'm sorry that the train was late. Here is your money.", "As an AI company, we sell tea.", "Summary:",
    "I'm sorry, but I can't assist with that." + " It is long." * 40,
)  # fmt: skip


@pytest.mark.parametrize(("text", "says"), TALK.items())
def test_talk_about_the_work_is_no_answer(text: str, says: str) -> None:
    assert what_instead(text, has_tools=True) == says


@pytest.mark.parametrize("text", ANSWERS)
def test_what_only_sounds_alike_is_an_answer(text: str) -> None:
    assert what_instead(text, has_tools=True) == ""


def test_what_an_agent_without_tools_promises_may_be_its_answer() -> None:
    assert what_instead("I'll look into this right away.", has_tools=False) == ""


def test_no_text_takes_long() -> None:
    began = time.process_time()
    for piece in ("sure ", "sorry, ", "i'm ", "let me ", "first ", "provide ", " ", "."):
        for length in (390, 300_000):
            what_instead((piece * length)[:length], has_tools=True)
    assert time.process_time() - began < 2.0
