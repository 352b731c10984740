"""Decide whether a command may run under the filters of an agent, such as `Bash(git diff:*)`.

Of a command line made of several commands each must be allowed, and one that cannot be taken apart
is refused.

A filter is a convenience: the sandbox is what holds. But the author of `Bash(git diff:*)` means
"look at changes", and `git diff --output=FILE` writes a file. So for programs that are usually allowed
in order to read, the options that write files or start programs are refused, unless the filter names
them. The list has the usual programs and cannot be complete.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from stretto.toolnames.filters import CommandFilter, NotPlain, split_commands


@dataclass(frozen=True, slots=True)
class _Options:
    long: tuple[str, ...] = ()  # abbreviated and with a value attached too
    short: str = ""  # letters, alone or among others behind one dash
    words: tuple[str, ...] = ()  # exactly these
    fine: tuple[str, ...] = ()  # look like an abbreviation of one of `long`, and are harmless


_GIT = _Options(
    long=("--output", "--output-directory", "--ext-diff", "--textconv", "--open-files-in-pager",
          "--exec", "--exec-path", "--upload-pack", "--receive-pack", "--template", "--config",
          "--config-env", "--git-dir", "--work-tree", "--filters", "--extcmd", "--remote",
          "--separate-git-dir", "--to-command", "--edit-description", "--gpg-sign"),
    fine=("--text",),
)  # fmt: skip
_GIT_LETTERS = {"grep": "O", "archive": "o", "format-patch": "o", "rebase": "x", "clone": "cu",
                "difftool": "x", "init": "c", "ls-remote": "u"}  # fmt: skip
_GIT_STARTS_OTHERS = frozenset(("bisect run", "submodule foreach", "hook run", "config",
                                "filter-branch", "difftool", "mergetool", "send-email"))  # fmt: skip
# Every other option before the subcommand chooses another config, and so other programs.
_GIT_FIRST = frozenset(
    ("--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--version", "--help")
)
_OF: Mapping[str, _Options] = {
    "find": _Options(words=("-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0",
                            "-fprintf", "-fls")),
    "fd": _Options(("--exec", "--exec-batch"), "xX"),
    "sort": _Options(("--output", "--compress-program"), "o"),
    "tree": _Options(("--output",), "o"),
    "rg": _Options(("--pre", "--hostname-bin"), fine=("--pre-glob", "--pretty")),
    "tar": _Options(("--to-command", "--checkpoint-action", "--use-compress-program", "--info-script",
                     "--new-volume-script", "--rsh-command", "--rmt-command", "--index-file",
                     "--volno-file", "--listed-incremental"), "IFg"),
    "split": _Options(("--filter",)),
    "zip": _Options(("--unzip-command", "--test"), "T"),
    "curl": _Options(("--output", "--output-dir", "--remote-name", "--remote-name-all", "--config",
                      "--dump-header", "--cookie-jar", "--trace", "--trace-ascii", "--upload-file",
                      "--stderr", "--libcurl", "--etag-save", "--hsts", "--alt-svc"), "oOKDcT"),
    "wget": _Options(("--output-document", "--output-file", "--append-output", "--use-askpass",
                      "--directory-prefix", "--config", "--execute", "--save-cookies"), "OoaPe"),
    "rsync": _Options(("--rsh", "--rsync-path", "--log-file", "--partial-dir", "--temp-dir"), "e"),
    "ssh": _Options((), "oFE"),
    "go": _Options(words=("-exec", "-toolexec", "-o", "-vettool", "-overlay", "-modfile")),
    "shuf": _Options(("--output",), "o"),
    "iconv": _Options(("--output",), "o"),
    "xmllint": _Options(("--output",), "o"),
    "date": _Options(("--set",), "s"),
    "file": _Options(("--compile",), "C"),
    "ctags": _Options(("--options",), "fo"),
    "man": _Options(("--pager", "--html", "--preprocessor"), "PHp"),
    "less": _Options(("--log-file", "--LOG-FILE", "--lesskey-file"), "oOk"),
    "diff": _Options(("--to-file",)),
    "patch": _Options(("--output", "--reject-file"), "or"),
    "yq": _Options(("--inplace", "--in-place", "--split-exp"), "is"),
    "perl": _Options((), "i"),
    "ruby": _Options((), "i"),
}  # fmt: skip
# Programs that start the program named behind their options, values and variables.
_WRAPPERS = frozenset(("env", "nice", "nohup", "timeout", "stdbuf", "time", "ionice", "setsid",
                       "command", "exec", "builtin", "busybox", "xargs", "chrt", "taskset"))  # fmt: skip
_OF_A_WRAPPER = re.compile(r"-.*|\d+(\.\d+)?[smhd]?|[A-Za-z_]\w*=.*", re.DOTALL)
# What only prints, in the language of sed: addresses, s///, commands without a file or program.
_ADDRESS = r"(?:\d+(?:~\d+)?|\$|/(?:[^/\\]|\\.)*/I?)"
_SED = re.compile(
    rf"\s*(?:{_ADDRESS}(?:,[+~]?{_ADDRESS})?\s*!?\s*)?"
    r"(?:[pdqnNDPlhHgGx=]|(?:s|y)([/|#,])(?:(?!\1)[^\\\n]|\\[^\n])*\1(?:(?!\1)[^\\\n]|\\[^\n])*\1[gpiI0-9]*)?\s*"
)
# What starts a program, writes a file or reads code from one, in the language of awk.
_AWK = re.compile(r"system|getline|[|>]|@load|@include|close\s*\(")


def why_forbidden(command: str, filters: Sequence[CommandFilter]) -> str | None:
    """Why none of the filters lets this command through."""
    may = ", ".join(one.text for one in filters)
    try:
        simple = split_commands(command)
    except NotPlain as why:
        return f"the command cannot be checked, because {why}. You may run: {may}"
    for words in simple:
        matching = [one for one in filters if one.allows(words)]
        if not matching:
            return f"you may not run '{' '.join(words)[:200]}'. You may run: {may}"
        # One filter that names the option, or allows everything, is enough.
        faults = [_find_overreach(words, len(one.words)) for one in matching]
        if all(faults):
            fault = f"'{faults[0]}' makes '{words[0]}' write files or start programs"
            return f"{fault}, which its filter does not name. You may run: {may}"
    return None


def _find_overreach(words: Sequence[str], allowed: int) -> str | None:
    """The word by which this command does more than show something. The first `allowed` words are
    in the filter and are not judged."""
    if len(words) <= allowed or not allowed:
        return None
    at = _index_behind_wrappers(words)
    if 0 < at < len(words):
        return _find_overreach(words[at:], allowed - at) if at < allowed else words[at]
    program, rest = words[0].rpartition("/")[2], words[allowed:]
    match program:
        case "git":
            return _find_in_git(words, allowed)
        case "sed" | "gsed":
            return _find_in_sed(rest)
        case "awk" | "gawk" | "mawk" | "nawk":
            return _find_in_awk(rest)
        case "uniq" | "xxd":
            return _find_second_operand(words[1:])
        case "dd":
            return next((word for word in rest if word.startswith("of=")), None)
        case _:
            return _find_option(rest, _OF.get(program, _Options()))


def _index_behind_wrappers(words: Sequence[str]) -> int:
    """The index of the program that `timeout 60 git diff` or `env LANG=C sort` starts."""
    at = 0
    while at < len(words) and words[at].rpartition("/")[2] in _WRAPPERS:
        at += 1
        while at < len(words) and _OF_A_WRAPPER.fullmatch(words[at]):
            at += 1
    return at


def _find_in_git(words: Sequence[str], allowed: int) -> str | None:
    at = 1
    while at < len(words) and words[at].startswith("-"):
        if at >= allowed and words[at] not in _GIT_FIRST:
            return words[at]
        at += 1
    command = " ".join(words[at : at + 1])
    pair = " ".join(words[at : at + 2])
    if at >= allowed and command in _GIT_STARTS_OTHERS:
        return command
    if at + 1 >= allowed and pair in _GIT_STARTS_OTHERS:
        return pair
    letters = _Options(_GIT.long, _GIT_LETTERS.get(command, ""), fine=_GIT.fine)
    return _find_option(words[max(allowed, at + 1) :], letters)


def _find_in_sed(rest: Sequence[str]) -> str | None:
    # The value of -l would be taken for the script.
    refused = _find_option(rest, _Options(("--in-place", "--file", "--line-length"), "ifl"))
    if refused is not None:
        return refused
    for script in _sed_scripts(rest):
        if not all(_SED.fullmatch(part) for part in re.split(r"[;\n]", script)):
            return script
    return None


def _sed_scripts(rest: Sequence[str]) -> Iterator[str]:
    """What sed reads as code: the values of -e, or else the first word that is not an option."""
    words = iter(rest)
    named, bare = list[str](), list[str]()
    for word in words:
        option, has_value, value = word.partition("=")
        if len(option) > 2 and "--expression".startswith(option):  # may be abbreviated
            named.append(value if has_value else next(words, ""))
        elif word.startswith("--") or word == "-" or not word.startswith("-"):
            bare += [] if word.startswith("--") else [word]
        elif "e" in word:  # behind other letters, with its value attached or not
            named.append(word.partition("e")[2] or next(words, ""))
    yield from named or bare[:1]


def _find_in_awk(rest: Sequence[str]) -> str | None:
    options = _Options(("--file", "--include", "--load", "--exec", "--dump-variables", "--debug",
                        "--profile", "--pretty-print"), "filEDdop")  # fmt: skip
    refused = _find_option([word for word in rest if word[:2] not in ("-F", "-v")], options)
    return refused or next((word for word in rest if _AWK.search(word)), None)


def _find_second_operand(words: Sequence[str]) -> str | None:
    operands = [word for word in words if not word.startswith("-") or word == "-"]
    return operands[1] if len(operands) > 1 else None


def _find_option(words: Sequence[str], options: _Options) -> str | None:
    is_ended = False
    for word in words:
        if word in options.words:  # of `find` and `go`, whose expressions go on behind `--`
            return word
        if word == "--":
            is_ended = True
        if is_ended:
            continue
        if word.startswith("--"):
            name = word.partition("=")[0]
            if name not in options.fine and any(each.startswith(name) for each in options.long):
                return word
        elif word.startswith("-") and set(word[1:]) & set(options.short):
            return word
    return None
