"""What of the system a command is shown, read-only. Out: paths that exist here."""

from pathlib import Path

# Programs and libraries. On most systems all but the first are links into it.
PROGRAMS = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
)  # fmt: skip
# What programs need in order to start, to tell the time, to check certificates, to find fonts. No
# passwords, no keys, no tokens, no names of other machines. Each costs a mount, so they are few.
_SETTINGS = (
    "alternatives", "ld.so.cache", "ld-musl-*.path", "localtime", "os-release", "nsswitch.conf",
    "services", "ssl/certs", "ssl/openssl.cnf", "ssl/cert.pem", "pki/tls/certs", "pki/ca-trust",
    "crypto-policies", "fonts", "java-*-openjdk",
)  # fmt: skip


def is_shown(path: Path) -> bool:
    """Whether the command sees it anyway."""
    return any(path.is_relative_to(place) for place in PROGRAMS)


def settings(*, network: bool) -> list[Path]:
    patterns = (*_SETTINGS, "resolv.conf") if network else _SETTINGS
    return [path for pattern in patterns for path in sorted(Path("/etc").glob(pattern))]
