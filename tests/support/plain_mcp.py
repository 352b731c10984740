"""An MCP server without a library, for the tests: quick to start, and as wrong as it is told to be.

`python plain_mcp.py '{"result": …, "tools": …}'`: what it answers to tools/call and tools/list. A
text "!die", "!broken", "!junk", "!log" or "!flood" in place of a result is what it does instead.
"""

import json
import os
import sys

READ_ONLY = {"readOnlyHint": True}
TOOLS = {
    "tools": [
        {"name": "x", "inputSchema": {"type": "object"}, "annotations": READ_ONLY},
        {"name": "note", "inputSchema": {"type": "object"}},
        {"name": "put", "inputSchema": {"type": "object"},
         "annotations": {"readOnlyHint": False, "idempotentHint": True}},
        {"name": "with.dot/slash", "inputSchema": {"type": "object"}, "annotations": READ_ONLY},
        {"name": "odd", "annotations": READ_ONLY, "inputSchema": {"type": "object", "description": "x" * 200_000}},
    ]
}  # fmt: skip
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "plain", "version": "1"},
}


def text(said: str) -> dict[str, object]:
    return {"content": [{"type": "text", "text": said}]}


def answer(asked: dict[str, object], told: dict[str, object]) -> object:
    match asked["method"]:
        case "initialize":
            return HELLO
        case "tools/list":
            return told.get("tools", TOOLS)
        case "tools/call":
            params = asked["params"]
            assert isinstance(params, dict)
            if variable := params["arguments"].get("variable"):
                return text(os.environ.get(variable, "(not set)"))
            return told.get("result", text(f"{params['name']} {os.getpid()}"))
    return None


def main() -> None:
    told = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        result = answer(asked, told)
        reply: dict[str, object]
        match result:
            case None:
                reply = {"error": {"code": -32601, "message": "no such method"}}
            case "!log":
                print("{starting up}")
                print(json.dumps({"id": asked["id"], "level": "info"}))
                reply = {"result": text("after the log")}
            case "!die":
                print("dying words", file=sys.stderr, flush=True)
                os._exit(3)
            case "!broken":
                print(f'{{"jsonrpc": "2.0", "id": {asked["id"]}, "resu', flush=True)
                continue
            case "!flood":
                sys.stdout.write("x" * 9_000_000)
                sys.stdout.flush()
                continue
            case "!shout":
                sys.stderr.write("e" * 3_000_000)
                reply = {"result": text("shouted")}
            case "!silent":
                continue
            case _:
                reply = {"result": result}
        print("a line of the log", flush=True)
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **reply}), flush=True)


if __name__ == "__main__":
    main()
