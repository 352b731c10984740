"""Count the work of a call in bytecode instructions: the same on every machine, however busy."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def count_operations(work: Callable[[], object]) -> int:
    operations = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal operations
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        operations += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return operations
