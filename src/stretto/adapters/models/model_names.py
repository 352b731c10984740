"""What the name of a model means, and whether that model can be used here.

`openai:gpt-4o` says all. Bare names are understood where there is no doubt: `gpt-4o`,
`claude-sonnet-5`, and `sonnet`, `opus`, `haiku`, `inherit` as .claude/agents files write them.
Only the environment that is passed in is read, and no provider is imported.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from stretto.adapters.models.provider_table import (
    ALIASES,
    BY_NAME,
    OTHERS,
    PREFIXES,
    PROVIDERS,
    TIERS,
    Provider,
)
from stretto.text.short import did_you_mean, listed

_INHERIT = ("inherit", "default", "")
# Bare names that are something else than a provider's model: agent programs, weights on this machine.
_PROGRAMS = ("claude", "codex", "gemini", "opencode", "goose")
_LOCAL = ("smollm2", "qwen2.5-coder")
_OPEN_MODELS = ("llama", "qwen", "phi", "gemma", "deepseek", "mixtral", "gpt-oss")


@dataclass(frozen=True, slots=True)
class ModelName:
    name: str | None  # None: whatever model the run uses
    note: str = ""  # for the user, where it is not what was written


@dataclass(frozen=True, slots=True)
class NameFault:
    says: str
    hint: str = ""


def resolve_name(name: str, environ: Mapping[str, str]) -> ModelName | NameFault:
    """Whether the provider can be used from here is not asked; `check_name` does."""
    name = name.strip()
    if name in _INHERIT:
        return ModelName(None)
    head, colon, model = name.partition(":")
    if head in OTHERS:
        return ModelName(name)
    if not colon:
        return _resolve_bare_name(name, environ)
    head = ALIASES.get(head, head)
    if head not in BY_NAME:
        return _unknown_provider(head, name)
    if not model.strip():
        return NameFault(f"the model '{name}' names a provider and no model", f"write {head}:MODEL")
    return ModelName(f"{head}:{model.strip()}")


def _resolve_bare_name(name: str, environ: Mapping[str, str]) -> ModelName | NameFault:
    if name.lower() in TIERS:
        return _resolve_tier(name.lower(), environ)
    if environ.get("OPENAI_BASE_URL"):
        # A server of one's own may name its models in any way.
        return ModelName(f"openai:{name}")
    for prefix, provider in PREFIXES.items():
        if name.startswith(prefix):
            return ModelName(f"{provider}:{name}")
    return NameFault(f"which provider serves the model '{name}'?", _guess(name))


def _guess(name: str) -> str:
    """What was probably meant by a bare name that nobody is known to serve."""
    provider = BY_NAME.get(ALIASES.get(name, name))
    if provider is not None:
        model = f"{provider.name}:{provider.default_model or 'MODEL'}"
        program = f", or cli:{name}, the program" if name in _PROGRAMS else ""
        return f"did you mean {model}{program}?"
    if name in _PROGRAMS:
        return f"did you mean cli:{name}, the program?"
    if name in _LOCAL:
        return f"did you mean local:{name}, which runs on this machine?"
    if name.startswith(_OPEN_MODELS):
        return f"write ollama:{name} for a model of Ollama, or PROVIDER:{name}"
    usual = (each.default_model for each in PROVIDERS if each.default_model)
    known = [*OTHERS, *TIERS, *BY_NAME, *ALIASES, *_PROGRAMS, *_LOCAL, *usual]
    return did_you_mean(name, known) or f"write PROVIDER:{name}, such as ollama:{name}"


def _resolve_tier(tier: str, environ: Mapping[str, str]) -> ModelName:
    model = TIERS[tier]
    if environ.get("ANTHROPIC_API_KEY"):
        return ModelName(f"anthropic:{model}")
    if environ.get("OPENROUTER_API_KEY"):
        return ModelName(f"openrouter:anthropic/{model}")
    # Agents that were written for another tool run on what the user has.
    return ModelName(None, f"'{tier}' needs ANTHROPIC_API_KEY; the run's own model is used instead")


def _unknown_provider(head: str, name: str) -> NameFault:
    says = f"the model '{name}' names no known provider"
    if any(letter.isdigit() for letter in head):  # llama3.2:3b has a colon of its own
        return NameFault(says, f"a model of Ollama is written ollama:{name}")
    known = listed([provider.name for provider in PROVIDERS])
    return NameFault(
        says, did_you_mean(head, [*BY_NAME, *ALIASES, *OTHERS]) or f"there are {known}"
    )


def check_name(name: str, environ: Mapping[str, str]) -> NameFault | None:
    """What would keep this name from working here, as far as can be seen without asking anyone."""
    meant = resolve_name(name, environ)
    if isinstance(meant, NameFault):
        return meant
    if meant.name is None or meant.name.partition(":")[0] in OTHERS:
        return None
    return check_provider(BY_NAME[meant.name.partition(":")[0]], environ)


def check_provider(provider: Provider, environ: Mapping[str, str]) -> NameFault | None:
    if not has_key(provider, environ):
        keys = " or ".join(provider.keys)
        return NameFault(
            f"{provider.name} needs a key, and {keys} is not set", f"export {provider.keys[0]}=…"
        )
    if provider.module is not None and not _is_installed(provider.module):
        return NameFault(
            f"{provider.name} needs a package that is not installed",
            f"pip install 'pydantic-ai-slim[{provider.extra}]'",
        )
    return None


def has_key(provider: Provider, environ: Mapping[str, str]) -> bool:
    """Whether there is a key or none is needed: a server of one's own often has no key."""
    if not provider.keys or provider.is_free or base_url_set(provider, environ):
        return True
    return key_of(provider, environ) is not None


def key_of(provider: Provider, environ: Mapping[str, str]) -> str | None:
    return next(
        (environ[key].strip() for key in provider.keys if environ.get(key, "").strip()), None
    )


def base_url_set(provider: Provider, environ: Mapping[str, str]) -> str | None:
    """The base URL that the environment names, as it is written there; None: it names none."""
    return next((environ[name] for name in provider.url_variables if environ.get(name)), None)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of a.b, there is no a
        return False
