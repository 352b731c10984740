"""No secret is told by halves while the words of a model stream in."""

import base64
import textwrap

from stretto.agents.live_events import SpeechBuffer
from stretto.events.model import ModelSpoke
from stretto.text.redaction import MASK, Redactor
from support.subagents import Heard, request

KEY = "Zx8Kq2mWv7Lp4Rt9Yb3Nc6Hd1Jf5Gs0Ae2Uo8Iy4Tq7Wp3Xz6Mv9Kb1Lr5Cn"


def test_a_secret_that_is_broken_into_lines_is_not_half_told() -> None:
    encoded = base64.b64encode(b"x" * 51 + KEY.encode()).decode()
    wrapped = "\n".join(textwrap.wrap(encoded, 76))
    text = f"The file says:\n{wrapped}\nand that is all. {'So I go on. ' * 40}"
    heard, redactor = Heard(), Redactor({"A_TOKEN": KEY})
    speech = SpeechBuffer(request(), heard, redactor, every_seconds=0.0)
    for at in range(0, len(text), 4):
        speech.add(text[at : at + 4])
    speech.flush()
    said = [event.text for event in heard.events if isinstance(event, ModelSpoke)]
    assert len(said) > 10
    assert MASK in "".join(said)
    assert "".join(said) == redactor.text(text)
