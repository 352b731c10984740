"""Why a sandbox does not work here, and what would help. In: what it said. Out: Missing."""

from dataclasses import dataclass
from pathlib import Path

_SYSCTL = Path("/proc/sys")


@dataclass(frozen=True, slots=True)
class Missing:
    name: str
    says: str
    fix: str


def not_installed() -> Missing:
    return Missing(
        "bubblewrap",
        "the program bwrap is not installed",
        "install the package 'bubblewrap' (apt, dnf, pacman, apk and zypper all have it)",
    )


def too_old(program: str) -> Missing:
    return Missing(
        "bubblewrap",
        f"{program} is too old: it has no --bind-fd",
        "update the package 'bubblewrap': 0.10, or an older one with the security fixes of 2024",
    )


def explain(name: str, said: str) -> Missing:
    """The settings of the kernel first: what programs say about namespaces is always vague."""
    says, fix = _namespaces_off(said) or (
        f"it failed: {said}",
        "run 'stretto doctor' for the details, or choose another sandbox",
    )
    return Missing(name, says, fix)


def _namespaces_off(said: str) -> tuple[str, str] | None:
    about_proc = "mount proc" in said
    words = ("namespace", "uid map", "setting up uid", "Operation not permitted", "No permissions")
    if not about_proc and not any(word in said for word in words):
        return None
    if _sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1":
        return (
            f"AppArmor forbids user namespaces to programs without a profile ({said})",
            "install the profile: 'apt install apparmor-profiles' and load 'bwrap-userns-restrict', "
            "or set kernel.apparmor_restrict_unprivileged_userns=0",
        )
    if _sysctl("kernel/unprivileged_userns_clone") == "0":
        return (
            f"user namespaces are off for users ({said})",
            "set kernel.unprivileged_userns_clone=1",
        )
    if _sysctl("user/max_user_namespaces") == "0":
        return f"no user namespaces are allowed ({said})", "set user.max_user_namespaces=15000"
    if about_proc:
        return (
            f"this container hides parts of /proc, so no new one can be mounted ({said})",
            "start the container with --security-opt systempaths=unconfined",
        )
    return (
        f"the kernel, or the container that this runs in, forbids namespaces ({said})",
        "in a container: --security-opt seccomp=unconfined --security-opt apparmor=unconfined, "
        "or a seccomp profile that allows unshare, clone and mount",
    )


def _sysctl(name: str) -> str | None:
    try:
        return (_SYSCTL / name).read_text().strip()
    except OSError:
        return None
