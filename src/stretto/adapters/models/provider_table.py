"""Who serves models, in one table. Nothing here imports a provider's package.

Those with a `base_url` speak OpenAI's chat completions and are spoken to directly. The rest goes
through pydantic-ai, which needs the package named under `module`.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Provider:
    name: str
    keys: tuple[str, ...] = ()  # variables that may hold its key, the preferred one first
    base_url: str | None = None
    url_variables: tuple[str, ...] = ()  # that may name another base URL
    default_model: str | None = None  # when a key is all that there is to go by
    module: str | None = None  # what pydantic-ai imports for it
    extra: str | None = None  # of pydantic-ai-slim, that brings the module
    is_free: bool = False  # it runs on the user's own machine
    max_tokens_key: str = "max_tokens"
    price_id: str | None = None  # what the price list calls it, if not by its name

    @property
    def is_lean(self) -> bool:
        return self.base_url is not None


# In the order in which a key found in the environment decides.
PROVIDERS = (
    Provider(
        "anthropic", ("ANTHROPIC_API_KEY",),
        default_model="claude-sonnet-5", module="anthropic", extra="anthropic",
    ),
    Provider(
        "openai", ("OPENAI_API_KEY",), "https://api.openai.com/v1", ("OPENAI_BASE_URL",),
        default_model="gpt-5.4-mini", max_tokens_key="max_completion_tokens",
    ),
    Provider(
        "google", ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        default_model="gemini-3.8-flash", module="google.genai", extra="google",
    ),
    Provider(
        "openrouter", ("OPENROUTER_API_KEY",), "https://openrouter.ai/api/v1",
        default_model="anthropic/claude-sonnet-5",
    ),
    Provider(
        "groq", ("GROQ_API_KEY",), "https://api.groq.com/openai/v1",
        default_model="openai/gpt-oss-120b",
    ),
    Provider(
        "deepseek", ("DEEPSEEK_API_KEY",), "https://api.deepseek.com",
        default_model="deepseek-chat",
    ),
    Provider(
        "mistral", ("MISTRAL_API_KEY",),
        default_model="mistral-small-latest", module="mistralai", extra="mistral",
    ),
    Provider(
        "xai", ("XAI_API_KEY",), "https://api.x.ai/v1",
        default_model="grok-4-fast", price_id="x-ai",
    ),
    Provider(
        "cerebras", ("CEREBRAS_API_KEY",), "https://api.cerebras.ai/v1",
        default_model="gpt-oss-120b",
    ),
    Provider(
        "together", ("TOGETHER_API_KEY",), "https://api.together.xyz/v1",
        default_model="meta-llama/Llama-3.3-70B-Instruct-Turbo",
    ),
    Provider(
        "fireworks", ("FIREWORKS_API_KEY",), "https://api.fireworks.ai/inference/v1",
        default_model="accounts/fireworks/models/gpt-oss-120b",
    ),
    Provider(
        "moonshotai", ("MOONSHOTAI_API_KEY",), "https://api.moonshot.ai/v1",
        ("MOONSHOTAI_BASE_URL",), default_model="kimi-k2.5",
    ),
    Provider(
        "ollama", ("OLLAMA_API_KEY",), "http://127.0.0.1:11434/v1",
        ("OLLAMA_BASE_URL", "OLLAMA_HOST"), is_free=True,
    ),
    Provider(
        "vllm", ("VLLM_API_KEY",), "http://127.0.0.1:8000/v1", ("VLLM_BASE_URL",), is_free=True,
    ),
    # These are used only when they are named. Their keys come in too many ways to ask for one.
    Provider("azure", ("AZURE_OPENAI_API_KEY",), module="openai", extra="openai"),
    Provider("bedrock", module="boto3", extra="bedrock", price_id="aws"),
    Provider("cohere", ("CO_API_KEY",), module="cohere", extra="cohere"),
    Provider("google-cloud", module="google.genai", extra="google", price_id="google"),
    Provider("huggingface", ("HF_TOKEN",), module="huggingface_hub", extra="huggingface"),
    Provider("openai-responses", ("OPENAI_API_KEY",), module="openai", extra="openai",
             price_id="openai"),
    Provider("alibaba", ("ALIBABA_API_KEY", "DASHSCOPE_API_KEY"), module="openai", extra="openai"),
    Provider("github", ("GITHUB_API_KEY",), module="openai", extra="openai"),
    Provider("heroku", ("HEROKU_INFERENCE_KEY",), module="openai", extra="openai"),
    Provider("litellm", module="openai", extra="openai"),
    Provider("nebius", ("NEBIUS_API_KEY",), module="openai", extra="openai"),
    Provider("ovhcloud", ("OVHCLOUD_API_KEY",), module="openai", extra="openai"),
    Provider("sambanova", ("SAMBANOVA_API_KEY",), module="openai", extra="openai"),
    Provider("snowflake", module="openai", extra="snowflake"),
    Provider("vercel", ("VERCEL_AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN"),
             module="openai", extra="openai"),
    Provider("zai", ("ZAI_API_KEY",), module="openai", extra="zai"),
)  # fmt: skip
BY_NAME: Mapping[str, Provider] = {provider.name: provider for provider in PROVIDERS}

# Names that are no provider's: other adapters answer to them, and check what follows the colon.
OTHERS = frozenset({"scripted", "embedded", "local", "cli", "python"})
# Older names, and those of pydantic-ai.
ALIASES = {
    "openai-chat": "openai", "gemini": "google", "google-gla": "google",
    "google-vertex": "google-cloud", "claude": "anthropic", "grok": "xai",
}  # fmt: skip
# What .claude/agents files call their models.
TIERS = {
    "sonnet": "claude-sonnet-5",
    "opus": "claude-opus-5",
    "haiku": "claude-haiku-4-5",
}
# Bare names that leave no doubt who serves them.
PREFIXES = {
    "gpt-": "openai", "chatgpt-": "openai", "o1": "openai", "o3": "openai", "o4": "openai",
    "claude-": "anthropic", "gemini-": "google", "mistral-": "mistral", "codestral": "mistral",
    "deepseek-": "deepseek", "grok-": "xai", "command-": "cohere", "kimi-": "moonshotai",
}  # fmt: skip
