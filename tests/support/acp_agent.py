"""A small ACP agent. What it does is said by its first argument; it writes only if it may."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

MODE = sys.argv[1]
ASKED = iter(range(100, 10_000))


def send(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def receive() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return dict(json.loads(line))


def update(what: dict[str, Any]) -> None:
    send({"method": "session/update", "params": {"sessionId": "s1", "update": what}})


def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
    id = next(ASKED)
    send({"id": id, "method": method, "params": {"sessionId": "s1", **params}})
    while (reply := receive()).get("id") != id:
        pass
    return reply


def say(text: str) -> None:
    block = {"type": "text", "text": text}
    update({"sessionUpdate": "agent_message_chunk", "content": block})


def write(path: str) -> str:
    call = {"toolCallId": "w1", "title": f"Write {path}", "kind": "edit", "status": "pending"}
    call |= {"rawInput": {"path": path}, "locations": [{"path": path}]}
    update({"sessionUpdate": "tool_call", **call})
    options = [
        {"optionId": "always", "name": "Always", "kind": "allow_always"},
        {"optionId": "yes", "name": "Once", "kind": "allow_once"},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ]
    reply = ask("session/request_permission", {"toolCall": call, "options": options})
    chosen = str(reply["result"]["outcome"].get("optionId"))
    if chosen == "yes":
        Path(path).write_text("x")
    status = "completed" if chosen == "yes" else "failed"
    said = [{"type": "content", "content": {"type": "text", "text": chosen}}]
    ended = {"sessionUpdate": "tool_call_update", "toolCallId": "w1", "status": status}
    update({**ended, "content": said})
    return chosen


def answer(prompt: str) -> str:
    """Why it stopped."""
    if MODE == "write":
        say("I was told: " + write(sys.argv[2]))
    elif MODE == "files":
        error = ask("fs/read_text_file", {"path": "/etc/passwd"})["error"]
        say(f"{error['code']}")
    elif MODE == "sleep":
        Path("pid").write_text(str(os.getpid()))
        time.sleep(60)
    elif MODE == "die":
        print("a bad day", file=sys.stderr)
        sys.exit(4)
    elif MODE == "loop":
        for number in range(1_000):
            say(f"turn {number}. ")
            call = {"toolCallId": f"c{number}", "title": "think", "kind": "think"}
            update({"sessionUpdate": "tool_call", **call, "status": "completed"})
    elif MODE == "cap":
        say("half an answer")
        return "max_turn_requests"
    else:
        say(f"You said {prompt}, I am in mode ")
        say(STATE["mode"])
    return "end_turn"


STATE = {"mode": "default"}


def serve(message: dict[str, Any]) -> dict[str, Any]:
    params = message.get("params", {})
    match message["method"]:
        case "initialize":
            return {"protocolVersion": 99 if MODE == "future" else 1, "agentCapabilities": {}}
        case "session/new":
            modes = [{"id": "default", "name": "Default"}]
            modes += [{"id": "plan", "name": "Plan"}] if MODE == "modes" else []
            return {
                "sessionId": "s1",
                "modes": {"currentModeId": "default", "availableModes": modes},
            }
        case "session/set_mode":
            STATE["mode"] = params["modeId"]
            return {}
        case _:
            print("words that are no message", flush=True)
            stopped = answer(params["prompt"][0]["text"])
            return {"stopReason": stopped, "usage": {"inputTokens": 11, "outputTokens": 7}}


while True:
    asked = receive()
    if MODE == "login" and asked["method"] == "session/new":
        error = {"code": -32000, "message": "Authentication required"}
        send({"id": asked["id"], "error": error})
    elif "id" in asked:
        send({"id": asked["id"], "result": serve(asked)})
