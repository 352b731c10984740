"""A command is given values by its environment and standard input, never by pasting them into its text."""

import re

from stretto.plan.draft import Draft, command_of
from stretto.recipe.model import ShellCommand, Step
from stretto.templates.template import Fault, parse_template

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Variables that make a shell, the loader or an interpreter run what they hold, or that the sandbox
# sets itself. A value from outside must never get there.
_DANGEROUS = frozenset((
    "PATH", "HOME", "PWD", "OLDPWD", "TMPDIR", "USER", "LOGNAME", "SHELL", "IFS", "CDPATH",
    "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS4",
    "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONBREAKPOINT",
    "PYTHONWARNINGS", "PYTEST_ADDOPTS", "PYTEST_PLUGINS", "NODE_OPTIONS", "NODE_PATH", "PERL5OPT",
    "PERL5LIB", "PERL5DB", "RUBYOPT", "RUBYLIB", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS", "CLASSPATH", "MAKEFLAGS", "MFLAGS", "GNUMAKEFLAGS", "GOFLAGS", "RUSTFLAGS",
    "RUSTC_WRAPPER", "CARGO_BUILD_RUSTC_WRAPPER", "EDITOR", "VISUAL", "PAGER", "MANPAGER",
    "BROWSER", "LESSOPEN", "LESSCLOSE", "GCONV_PATH", "LOCPATH", "NLSPATH", "HOSTALIASES",
    "RES_OPTIONS", "TERMINFO", "INPUTRC", "HISTFILE", "SSH_ASKPASS", "AWKPATH", "LUA_INIT",
    "LUA_PATH", "LUA_CPATH", "PHPRC", "PHP_INI_SCAN_DIR", "R_PROFILE", "R_ENVIRON",
    "R_PROFILE_USER", "R_ENVIRON_USER", "R_LIBS", "MAKEFILES", "TAR_OPTIONS", "XDG_CONFIG_HOME",
    "XDG_CONFIG_DIRS", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX", "PYTHONPLATLIBDIR",
    "PYTHONEXECUTABLE", "COVERAGE_PROCESS_START", "PERLLIB", "GEM_HOME", "GEM_PATH",
    "BUNDLE_GEMFILE", "ZDOTDIR", "FPATH", "BASH_LOADABLES_PATH", "RSYNC_RSH", "CVS_RSH", "SVN_SSH",
    "SUDO_ASKPASS", "OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES", "MAVEN_OPTS",
    "GRADLE_OPTS", "DOTNET_STARTUP_HOOKS", "RUSTC", "RUSTC_WORKSPACE_WRAPPER",
))  # fmt: skip
_DANGEROUS_BEGINNINGS = (
    "LD_", "DYLD_", "GIT_", "BASH_FUNC_", "GLIBC_", "MALLOC_", "npm_config_", "NPM_CONFIG_",
)  # fmt: skip


def check_commands(draft: Draft) -> None:
    for drafted in draft.steps:
        command = command_of(drafted.step)
        if command is None:
            continue
        _check_text(draft, command)
        for name in command.env:
            _check_name(draft, command, name)
        _check_fallback(draft, drafted.step)


def literal_text(run: str) -> str:
    """The command as the shell gets it: `\\{{` stands for two braces, as in any text."""
    template, faults = parse_template(run)
    if faults or template.references:
        return run  # braces of another language, which are the command's own
    return "".join(str(part) for part in template.parts)


def _check_text(draft: Draft, command: ShellCommand) -> None:
    run, at = command.run or "", (*command.at, "run")
    if "\0" in run:
        draft.problem_at("RCP141", at, "the command holds a NUL character", "remove it")
    for reference in parse_template(run)[0].located:
        name = _variable_for(reference.text)
        draft.problem_inside(
            at,
            run,
            Fault(
                "RCP141",
                "a command has no templates: what is inserted could run as code",
                f'write env: {{{name}: "{{{{{reference.text}}}}}"}}, and "${name}" in the command',
                reference.offset,
                len(reference.text),
            ),
        )


def _variable_for(path: str) -> str:
    words = [word for word in re.split(r"\W+", path) if word and not word.isdigit()]
    named = [word for word in words if word not in ("inputs", "steps", "output", "outputs")]
    name = "_".join(named[-2:] or words or ["VALUE"]).upper()
    return name if _NAME.fullmatch(name) and not _is_dangerous(name) else f"VALUE_{name}"


def _is_dangerous(name: str) -> bool:
    return name.upper() in _DANGEROUS or name.startswith(_DANGEROUS_BEGINNINGS)


def _check_name(draft: Draft, command: ShellCommand, name: str) -> None:
    at = (*command.at, "env", name)
    if not _NAME.fullmatch(name):
        message = f"'{name[:60]}' cannot be the name of an environment variable"
        draft.problem_at("RCP142", at, message, "use letters, digits and '_'")
    elif _is_dangerous(name):
        draft.problem_at(
            "RCP142",
            at,
            f"'{name}' decides which programs run, and no value may be put there",
            f"rename it; a fixed value can stand in the command itself: {name}=… your-command",
        )


def _check_fallback(draft: Draft, step: Step) -> None:
    if not isinstance(step.work, ShellCommand):
        return
    for on_failure, at in (
        (step.on_failure, (*step.at, "on_failure")),
        (step.retry.on_failure, (*step.at, "retry", "on_failure")),
    ):
        if on_failure is not None and on_failure.fallback is not None:
            draft.problem_at(
                "RCP113",
                at,
                "a command has no fallback agent: there is no prompt that the agent could get",
                f"write a step with when: \"steps.{step.id}.status == 'failed'\"",
            )
