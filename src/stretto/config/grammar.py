"""Every key that `stretto.yaml` may have."""

from stretto.config.home import path_named
from stretto.documents.kinds import AnyMap, Choice, Count, Duration, Flag, ListOf, ShapeOf, Text
from stretto.documents.node import Node, Path
from stretto.documents.shapes import Fields, Key, Reading, Shape
from stretto.recipe.grammar import BUDGET
from stretto.recipe.parts import make_budget

_LINE = Text("one line of text", may_be_blank=False, one_line=True)


class AnyFolder(Text):
    """A folder anywhere; `~` and `~user` stand for home folders."""

    def __init__(self) -> None:
        super().__init__("a folder", False, one_line=True)

    def read(self, node: Node, at: Path, reading: Reading) -> str | None:
        written = super().read(node, at, reading)
        if written is None or "\0" in written:  # which is told of every text
            return None
        try:
            path_named(written)
        except ValueError as error:
            message = f"'{written[:60]}' is no folder: {error}"
            reading.problem_at("RCP103", node, at, message, "write the whole path")
            return None
        return written


class FolderInside(Text):
    """A folder of the workspace: a plain path, and no glob."""

    def __init__(self) -> None:
        super().__init__("a folder of the workspace, such as node_modules", False, one_line=True)

    def read(self, node: Node, at: Path, reading: Reading) -> str | None:
        written = super().read(node, at, reading)
        if written is None:
            return None
        names = [name for name in written.split("/") if name not in ("", ".")]
        is_inside = names and ".." not in names and not written.startswith(("/", "~"))
        if is_inside and not any(name.casefold() == ".git" for name in names):
            return "/".join(names)
        message = f"'{written[:60]}' is no folder that can be carried into a copy"
        reading.problem_at("RCP121", node, at, message, f"write {self.called}")
        return None


def _fields(fields: Fields, reading: Reading) -> Fields:
    return fields


WORKFLOWS = Shape("'workflows'", "Where recipes are kept.", (
    Key("dir", AnyFolder(), "the project's folder of recipes"),
    Key("enabled", Flag(), "may agents and clients over HTTP run workflows? yes by default"),
))  # fmt: skip
SUBAGENTS = Shape("'subagents'", "How subagents are run.", (
    Key("max_concurrency", Count(1, 1000), "how many subagents may work at once; 4 by default"),
    Key("model_retries", Count(0, 10), "how often a request is sent again to a provider that fails "
        "for a moment; 3 by default"),
))  # fmt: skip
FOLDERS = Shape("'dirs'", "More folders to look into.", (
    Key("dirs", ListOf(AnyFolder(), or_one=True), "folders, relative to this file"),
))  # fmt: skip
PLAYBOOKS = Shape("'playbooks'", "Methods that subagents are given.", (
    Key("dirs", ListOf(AnyFolder(), or_one=True), "more folders with playbooks, relative to this file"),
    Key("enabled", Flag(), "are steps given playbooks? yes by default"),
    Key("top", Count(0, 20), "how many a step is given in full; 3 by default"),
    Key("named", Count(0, 50), "how many more it is told the names of; 8 by default"),
    Key("max_characters", Count(0, 200_000), "of all that a step is given in full; 8,000 by default"),
    Key("half_life_days", Count(1, 3650), "after so many days without use, the confidence in an "
        "emitted playbook is half of what it was; 30 by default"),
))  # fmt: skip
LIMITS = Shape("'limits'", "How much a recipe may ask for. Only the user's own file may say.", (
    Key("text_bytes", Count(1, 2**30), "bytes of a recipe's text"),
    Key("depth", Count(1, 200), "levels of nesting"),
    Key("nodes", Count(1, 10**7), "values in a file"),
    Key("steps", Count(1, 10**6), "steps of a recipe"),
    Key("map_items", Count(1, 10**6), "elements of a map that says nothing itself"),
    Key("map_items_ceiling", Count(1, 10**6), "elements that `max_items` may allow"),
    Key("branches", Count(1, 10**4), "branches of a parallel step"),
))  # fmt: skip
RETENTION = Shape("'retention'", "Which finished runs are kept. Only the user's own file may say.", (
    Key("runs", Count(0, 10**6), "the newest so many; all by default"),
    Key("age", Duration(), "those that ended in this last time, such as 90d; all by default"),
))  # fmt: skip
NOTIFY = Shape("'notify'", "Who is told when a step awaits a person. Only the user's own file may say.", (
    Key("url", _LINE, "an address that is posted to: http or https"),
    Key("secret_variable", _LINE, "the environment variable with the secret that signs what is posted"),
    Key("command", ListOf(_LINE), "a program and its words; it is given the question on stdin"),
    Key("remind", Duration(), "how long before a deadline it is told again; 1h by default"),
))  # fmt: skip
SERVER = Shape("'server'", "What stretto serve does without options.", (
    Key("port", Count(0, 65535), "where it listens; 7317 by default, and 0 picks a free one"),
    Key("workers", Count(1, 64), "processes that serve; 1 by default"),
    Key("host", _LINE, "where it listens; 127.0.0.1 by default; the user's own file only"),
    Key("public", Flag(), "may other machines reach it? no by default; the user's own file only"),
    Key("allow_hosts", ListOf(_LINE, or_one=True), "more names by which it is called; the user's own "
        "file only"),
))  # fmt: skip
SEARCH = Shape("'search'", "Where WebSearch asks, if the model's provider has no search.", (
    Key("url", _LINE, "the endpoint; SearXNG's /search, for instance", is_required=True),
    Key("kind", Choice("searxng", "brave", "tavily"), "how it is asked; searxng by default"),
    Key("key_variable", _LINE, "the environment variable that holds its key"),
))  # fmt: skip
BASH = Shape("'bash'", "The Bash tool.", (
    Key("environment", ListOf(_LINE, or_one=True), "variables that commands may see"),
    Key("network", Flag(), "may commands use the network? no by default"),
))  # fmt: skip
WORKSPACE = Shape("'workspace'", "The copies that isolated writers work in.", (
    Key("carry", ListOf(FolderInside(), or_one=True), "folders that Bash sees in a copy, read-only"),
    Key("max_files", Count(1, 10**7), "files that a copy may have; 50,000 by default"),
    Key("max_mib", Count(1, 10**7), "MiB that a copy may have; 2,048 by default"),
    Key("max_file_mib", Count(1, 10**7), "MiB that one file may have; 256 by default"),
))  # fmt: skip
WEB = Shape("'web'", "The WebFetch tool.", (
    Key("allow_private", ListOf(_LINE, or_one=True), "host:port that may be private addresses"),
))  # fmt: skip
CONFIG = Shape("stretto.yaml", "Settings. Everything is optional.", (
    Key("model", _LINE, "the model for agents that name none: provider:name"),
    Key("workflows", ShapeOf(WORKFLOWS, _fields), "where recipes are kept"),
    Key("subagents", ShapeOf(SUBAGENTS, _fields), "how subagents are run"),
    Key("permission", Choice("read_only", "ask", "auto"), "what a run may do to files"),
    Key("agents", ShapeOf(FOLDERS, _fields), "more folders with agents"),
    Key("playbooks", ShapeOf(PLAYBOOKS, _fields), "methods that subagents are given"),
    Key("judge", _LINE, "who decides rules that code cannot: provider:name, or off; "
        "the model that did the step by default"),
    Key("search", ShapeOf(SEARCH, _fields), "where WebSearch asks"),
    Key("mcp_servers", AnyMap(), "MCP servers by name"),
    Key("sandbox", Choice("auto", "bubblewrap", "landlock", "off"), "what confines Bash"),
    Key("bash", ShapeOf(BASH, _fields), "the Bash tool"),
    Key("workspace", ShapeOf(WORKSPACE, _fields), "the copies that isolated writers work in"),
    Key("cli_commands", ListOf(_LINE, or_one=True), "what `cli:COMMAND` in a recipe may start"),
    Key("web", ShapeOf(WEB, _fields), "the WebFetch tool"),
    Key("budget", ShapeOf(BUDGET, make_budget), "what a run may cost"),
    Key("engine", Choice("local", near={"temporal": "local, the one engine that there is"}),
        "what carries out runs; local by default, the one that there is"),
    Key("store", _LINE, "the name of the store that keeps runs; sqlite by default; the user's own file "
        "only"),
    Key("server", ShapeOf(SERVER, _fields), "the HTTP server"),
    Key("limits", ShapeOf(LIMITS, _fields), "limits on recipes; the user's own file only"),
    Key("notify", ShapeOf(NOTIFY, _fields), "who is told when a step awaits a person; the user's own "
        "file only"),
    Key("retention", ShapeOf(RETENTION, _fields), "which finished runs are kept; the user's own file "
        "only"),
))  # fmt: skip
