"""A filter of system calls, as the kernel's BPF program. In: what may be used. Out: bytes, or None.

It narrows what the namespaces and mounts already hold, and closes what they cannot: sockets that
lead out through a file or past the network namespace, set-user-id bits on files that stay,
keystrokes pushed into a terminal, memory that nobody counts. Calls that programs only try get
"no such call", so that they take another way; the others get "not permitted".
"""

import errno
import platform
import struct
from collections.abc import Iterator
from functools import cache

from stretto.workspaces.sandbox.syscalls import ABIS, Abi

_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT = 0x15, 0x35, 0x45
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_X32_BIT = 0x40000000

_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_SOCK_DGRAM = 2
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_NEW_NAMESPACE = 0x7E020080  # any of clone's CLONE_NEW… flags
_MAKES_FILE = 0o100 | 0o20000000  # O_CREAT, O_TMPFILE
_SET_ID = 0o6000
_DEVICE = 0o20000  # set for both kinds of devices, and for nothing else that mknod makes

_FORBIDDEN = (
    "ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd",
    "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "open_tree_attr",
    "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "setns", "open_by_handle_at",
    "fanotify_init", "add_key", "request_key", "keyctl", "bpf", "perf_event_open", "userfaultfd",
    "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "reboot",
    "swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "syslog", "vhangup", "iopl", "ioperm",
    "settimeofday", "clock_settime", "clock_adjtime", "move_pages", "migrate_pages",
)  # fmt: skip
# clone3, openat2 and fchmodat2 hide their flags from a filter. Memory in a memfd or in System V
# shared memory belongs to no process, so no limit would hold it.
_UNKNOWN = (
    "clone3", "openat2", "fchmodat2", "io_uring_setup", "io_uring_enter", "io_uring_register",
    "memfd_create", "memfd_secret", "shmget",
)  # fmt: skip
_WATCHES = ("inotify_init", "inotify_init1")


def machine() -> str:
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())


@cache
def program(*, local_sockets: bool, watches: bool = True) -> bytes | None:
    """None where we do not know the numbers of the calls. `watches`: of files, with inotify."""
    abi = ABIS.get(machine())
    if abi is None:
        return None
    unknown = _UNKNOWN if watches else (*_UNKNOWN, *_WATCHES)
    return b"".join(_instructions(abi, unknown, local_sockets))


def _instructions(abi: Abi, unknown: tuple[str, ...], local_sockets: bool) -> Iterator[bytes]:
    yield _load(4)
    yield _jump(_JUMP_EQUAL, abi.audit, 1, 0)
    yield _return(_KILL)  # another ABI has other numbers: nothing below would hold
    yield _load(0)
    if abi.has_x32:
        yield _jump(_JUMP_AT_LEAST, _X32_BIT, 0, 1)
        yield _error(errno.ENOSYS)
    for names, code in ((_FORBIDDEN, errno.EPERM), (unknown, errno.ENOSYS)):
        for number in abi.numbers(names):
            yield _jump(_JUMP_EQUAL, number, 0, 1)
            yield _error(code)
    yield from _namespaces(abi)
    yield from _terminal(abi)
    yield from _sockets(abi, local_sockets)
    yield from _set_id(abi)
    yield _return(_ALLOW)


def _namespaces(abi: Abi) -> Iterator[bytes]:
    for name in ("clone", "unshare"):
        yield from _when(abi, name, _argument(0), _any_bit(_NEW_NAMESPACE, errno.EPERM))


def _terminal(abi: Abi) -> Iterator[bytes]:
    for request in (_TIOCSTI, _TIOCLINUX):
        yield from _when(abi, "ioctl", _argument(1), _equal(request, errno.EPERM))


def _sockets(abi: Abi, local_sockets: bool) -> Iterator[bytes]:
    # All other families lead past the network namespace: to the hypervisor, to devices, to crypto.
    families = [_AF_INET, _AF_INET6, _AF_NETLINK]
    if local_sockets:
        families.append(_AF_UNIX)
    else:
        # Of a pair, only datagram sockets can be pointed at another address later.
        kind = _argument(1) + _instruction(_AND, 0xF)
        yield from _when(abi, "socketpair", kind, _equal(_SOCK_DGRAM, errno.EPERM))
    body = b"".join(_jump(_JUMP_EQUAL, it, len(families) - at, 0) for at, it in enumerate(families))
    yield from _when(abi, "socket", _argument(0), body + _error(errno.EACCES))


def _set_id(abi: Abi) -> Iterator[bytes]:
    """A file that is left behind must not lend its owner's rights to who runs it."""
    for name, at in {"chmod": 1, "fchmod": 1, "fchmodat": 2, "creat": 1}.items():
        yield from _when(abi, name, _argument(at), _any_bit(_SET_ID, errno.EPERM))
    for name, at in {"mknod": 1, "mknodat": 2}.items():
        yield from _when(abi, name, _argument(at), _any_bit(_SET_ID | _DEVICE, errno.EPERM))
    for name, at in {"open": 1, "openat": 2}.items():
        # The mode means something only when a file is made.
        is_made = _jump(_JUMP_ANY_BIT, _MAKES_FILE, 0, 3)
        mode = _argument(at + 1) + _any_bit(_SET_ID, errno.EPERM)
        yield from _when(abi, name, _argument(at), is_made + mode)


def _when(abi: Abi, name: str, load: bytes, check: bytes) -> Iterator[bytes]:
    """For this call, look at an argument; then the number of the call is loaded again."""
    for number in abi.numbers([name]):
        body = load + check + _load(0)
        yield _jump(_JUMP_EQUAL, number, 0, len(body) // 8) + body


def _any_bit(bits: int, code: int) -> bytes:
    return _jump(_JUMP_ANY_BIT, bits, 0, 1) + _error(code)


def _equal(value: int, code: int) -> bytes:
    return _jump(_JUMP_EQUAL, value, 0, 1) + _error(code)


def _argument(at: int) -> bytes:
    return _load(16 + 8 * at)  # the lower half: both our machines are little-endian


def _load(offset: int) -> bytes:
    return _instruction(_LOAD, offset)


def _error(code: int) -> bytes:
    return _return(_ERROR | code)


def _return(value: int) -> bytes:
    return _instruction(_RETURN, value)


def _jump(code: int, value: int, if_true: int, if_false: int) -> bytes:
    return _instruction(code, value, if_true, if_false)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
