"""What a step asks for can be had: branches, files, schemas, and no more than the limits allow.

A command is given values by its environment and standard input, never by pasting them into its text.
"""

import re
from collections.abc import Mapping, Sequence

from stretto.documents.node import ListNode, Path, find
from stretto.plan.catalog import has_means_to_write
from stretto.plan.draft import Draft, DraftStep, command_of
from stretto.recipe.model import Agent, Map, Parallel, ShellCommand, Step
from stretto.templates.template import Fault, parse_template
from stretto.text.short import listed
from stretto.validation.schema import schema_faults
from stretto.vocabulary.json_value import Json


def check_waits(draft: Draft) -> None:
    for step in draft.recipe.steps:
        if not isinstance(step.work, Parallel):
            continue
        count = len(step.work.branches)
        at = (*step.at, "parallel")
        if count == 0 and not draft.has_problem_below(at):
            draft.problem_at("RCP112", at, f"step '{step.id}' has no branches", "list at least one")
        if isinstance(step.work.wait, int) and step.work.wait > count > 0:
            draft.problem_at(
                "RCP112",
                (*step.at, "wait"),
                f"it waits for {step.work.wait} branches and has {count}",
                f"write all, any, or a number from 1 to {count}",
            )


_RAISE = "only your own ~/.stretto/stretto.yaml may raise it, under limits:"


def check_limits(draft: Draft) -> None:
    recipe, limits = draft.recipe, draft.limits
    steps_at = (*recipe.at, "steps")
    steps = find(recipe.root, steps_at) if recipe.root else None
    if isinstance(steps, ListNode) and not steps.items:
        draft.problem_at(
            "RCP119", steps_at, "a recipe needs at least one step", "add one under steps:"
        )
    if len(recipe.steps) > limits.steps:
        draft.problem_at(
            "RCP118",
            (*steps_at, limits.steps),
            f"the recipe has {len(recipe.steps):,} steps; at most {limits.steps:,} are allowed",
            _RAISE,
        )
    for step in recipe.steps:
        if isinstance(step.work, Parallel) and len(step.work.branches) > limits.branches:
            draft.problem_at(
                "RCP118",
                (*step.at, "parallel"),
                f"{len(step.work.branches)} branches; at most {limits.branches} are allowed",
                f"use map: for many alike, or {_RAISE}",
            )
        if isinstance(step.work, Map) and (step.work.max_items or 0) > limits.map_items_ceiling:
            draft.problem_at(
                "RCP118",
                (*step.at, "map", "max_items"),
                f"max_items is {step.work.max_items:,}; "
                f"at most {limits.map_items_ceiling:,} are allowed",
                _RAISE,
            )


def warn_empty(draft: Draft) -> None:
    """`gate:` or `when:` with nothing behind it holds nothing back, against what one may expect."""
    for step in draft.recipe.steps:
        for key, is_given in (("when", step.when is not None), ("gate", step.is_gated)):
            at = (*step.at, key)
            if not is_given and draft.is_written(at):
                message = f"'{key}:' is empty, so step '{step.id}' starts without it"
                draft.warning_at("RCP906", at, message, "write what it needs, or remove it")


_REFERENCE = re.compile(r"\{\{.*?\}\}")


def check_sets(draft: Draft) -> None:
    for drafted in draft.steps:
        step = drafted.step
        for key, texts in (("read_set", step.read_set), ("write_set", step.write_set)):
            if texts:
                _check_globs(draft, (*step.at, key), texts)
        if step.posture == "read_only" and step.write_set:
            draft.warning_at(
                "RCP902",
                (*step.at, "write_set"),
                f"step '{step.id}' is read_only, so its write_set is not used",
                "remove it, or write posture: writer",
            )
        elif drafted.uses:
            _check_means(draft, drafted)


def _check_means(draft: Draft, drafted: DraftStep) -> None:
    """Whether those who do a writer's work can write at all."""
    step, agents = drafted.step, drafted.agents
    if step.posture is None and drafted.posture == "read_only":
        if step.write_set:
            draft.warning_at(
                "RCP902",
                (*step.at, "write_set"),
                f"no agent of step '{step.id}' has a tool that writes ({_agent_names(agents)}), "
                "so its write_set is not used",
                "give an agent Write, Edit or Bash, or remove it",
            )
        return
    if step.posture == "read_only" or not agents:
        return
    if not any(
        has_means_to_write(agent, step.model, draft.catalog.changing_tools) for agent in agents
    ):
        draft.warning_at(
            "RCP904",
            (*step.at, "posture") if step.posture else step.at,
            f"step '{step.id}' is a writer, and none of its agents ({_agent_names(agents)}) has a tool "
            "that writes",
            "give an agent Write, Edit or Bash, or write posture: read_only",
        )


def _agent_names(agents: Sequence[Agent]) -> str:
    return listed(dict.fromkeys(agent.id for agent in agents))


def _check_globs(draft: Draft, at: Path, texts: Sequence[str]) -> None:
    from stretto.globs.glob import set_faults  # on use: most recipes have no sets

    # What stands for a reference is known later, and is a path or a part of one.
    later = [_REFERENCE.sub("…", text) for text in texts]
    for position, (text, filled) in enumerate(zip(texts, later, strict=True)):
        if filled != text and "[" in filled:
            message = f"'{text}' has a reference beside a '[', which may become a part of it"
            here = draft.element(at, position, text)
            draft.problem_at("RCP122", here, message, "write it without '['")
            later[position] = "x"
    for where, fault in set_faults(later):
        here = at if where is None else draft.element(at, where, texts[where])
        draft.problem_at(fault.code, here, fault.message, fault.hint)


def check_schemas(draft: Draft) -> None:
    for agent in draft.recipe.agents.values():
        if agent.validation.schema is not None:
            _check_schema(draft, agent.validation.schema, (*agent.at, "validation", "schema"))
    for step in draft.recipe.steps:
        if step.output.schema is not None:
            _check_schema(draft, step.output.schema, (*step.at, "output", "schema"))


def _check_schema(draft: Draft, schema: Mapping[str, Json], at: Path) -> None:
    for fault in schema_faults(schema):
        draft.problem_at("RCP124", (*at, *fault.path), fault.message, fault.hint)


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
