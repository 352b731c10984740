"""Files that hold keys by their very name. In: a path, a step's read-set. Out: may it be read?

Such a file is never read by a tool, and is empty for a command, unless the read-set names it: not
by `**/*`, which everybody has, but by a glob that says what it is, such as `.env`, `certs/*.pem` or
`.ssh/config`. What a package manager has put in place is published and holds no secrets.
"""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from stretto.globs.glob import Glob

FOLDERS = frozenset((".ssh", ".gnupg", ".aws", ".azure", ".gcloud", ".kube", ".password-store"))
FILES = (
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.pem", "*.key", "*.p12", "*.pfx", "*.ppk",
    "*.kdbx", "*.jks", "*.keystore", ".netrc", "_netrc", ".pgpass", ".pypirc", ".npmrc",
    ".git-credentials", ".htpasswd", ".env", ".env.*", "*.env", ".envrc", "credentials",
    "*credentials.json", "credentials.toml", "client_secret*.json", "service-account*.json",
    "service_account*.json", "serviceaccount*.json", "*adminsdk*.json", ".vault-token", "*.p8",
    "ssh_host_*_key", "kubeconfig", "*.kubeconfig", ".dockercfg", ".s3cfg", ".boto", ".my.cnf",
    ".databrickscfg", "rclone.conf", "*.tfrc.json", "*.tfstate", ".*_history",
)  # fmt: skip
_HARMLESS = (
    "*.pub", "*.example", "*.sample", "*.template", "*.dist", "example.*", "sample.*", "template.*"
)  # fmt: skip
_BACKUPS = ("~", ".bak", ".backup", ".old", ".orig", ".save", ".swp")
# Two names: alone, each is nothing special.
_PAIRS = frozenset((
    (".docker", "config.json"), ("containers", "auth.json"), (".composer", "auth.json"),
    ("gcloud", "credentials.db"), ("gcloud", "access_tokens.db"), ("gh", "hosts.yml"),
    (".config", "hub"), (".m2", "settings.xml"), ("age", "keys.txt"), (".streamlit", "secrets.toml"),
))  # fmt: skip
INSTALLED = frozenset(("node_modules", "site-packages", "dist-packages"))


def is_secret(names: Sequence[str]) -> bool:
    """Whether a path, name by name, is such a file, or lies in such a folder."""
    folded = [_original(name.casefold()) for name in names]
    if not folded or INSTALLED.intersection(folded):
        return False
    if FOLDERS.intersection(folded) or tuple(folded[-2:]) in _PAIRS:
        return True
    return _matches(folded[-1], FILES) and not _matches(folded[-1], _HARMLESS)


def is_secret_by_folder(names: Sequence[str]) -> bool:
    """Whether it would be none if the folder that it lies in were renamed."""
    return is_secret(names) and not is_secret(names[-1:])


def select_secret_globs(globs: Iterable[Glob]) -> tuple[Glob, ...]:
    """Those that ask for secrets: read as a path, the glob itself is one."""
    return tuple(glob for glob in globs if is_secret(glob.text.rstrip("/").split("/")))


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _original(name: str) -> str:
    """Of which file it is a backup."""
    for ending in _BACKUPS:
        name = name.removesuffix(ending)
    return name
