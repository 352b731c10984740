"""A filter of system calls, as the kernel's BPF program.

It narrows what the namespaces and mounts already hold, and closes what they cannot: sockets that
lead out through a file or past the network namespace, set-user-id bits on files that stay,
keystrokes pushed into a terminal, memory that nobody counts. Calls that programs only try get
"no such call", so that they take another way; the others get "not permitted".
"""

import errno
import platform
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

# The same on every machine since Linux 5.
_COMMON = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "clone3": 435, "openat2": 437, "pidfd_getfd": 438, "mount_setattr": 442, "quotactl_fd": 443,
    "memfd_secret": 447, "fchmodat2": 452, "open_tree_attr": 467,
}  # fmt: skip
_X86_64 = _COMMON | {
    "open": 2, "ioctl": 16, "shmget": 29, "socket": 41, "socketpair": 53, "clone": 56,
    "creat": 85, "chmod": 90, "fchmod": 91, "ptrace": 101, "syslog": 103, "mknod": 133,
    "vhangup": 153, "pivot_root": 155, "chroot": 161, "acct": 163, "settimeofday": 164,
    "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "iopl": 172,
    "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179,
    "clock_settime": 227, "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250,
    "migrate_pages": 256, "openat": 257, "mknodat": 259, "fchmodat": 268, "unshare": 272,
    "move_pages": 279, "inotify_init": 253, "inotify_init1": 294, "perf_event_open": 298, "fanotify_init": 300, "open_by_handle_at": 304,
    "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311,
    "kcmp": 312, "finit_module": 313, "memfd_create": 319, "kexec_file_load": 320, "bpf": 321,
    "userfaultfd": 323,
}  # fmt: skip
_AARCH64 = _COMMON | {
    "inotify_init1": 26, "ioctl": 29, "mknodat": 33, "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51,
    "fchmod": 52, "fchmodat": 53, "openat": 56, "vhangup": 58, "quotactl": 60, "acct": 89,
    "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106,
    "clock_settime": 112, "syslog": 116, "ptrace": 117, "reboot": 142, "settimeofday": 170,
    "shmget": 194, "socket": 198, "socketpair": 199, "add_key": 217, "request_key": 218,
    "keyctl": 219, "clone": 220, "swapon": 224, "swapoff": 225, "migrate_pages": 238,
    "move_pages": 239, "perf_event_open": 241, "fanotify_init": 262, "open_by_handle_at": 265,
    "clock_adjtime": 266, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271,
    "kcmp": 272, "finit_module": 273, "memfd_create": 279, "bpf": 280, "userfaultfd": 282,
    "kexec_file_load": 294,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Abi:
    audit: int  # how the kernel names the machine to a filter
    has_x32: bool  # a second set of numbers
    calls: Mapping[str, int]

    def numbers(self, names: Iterable[str]) -> Iterator[int]:
        """Of those that this machine has."""
        return (self.calls[name] for name in names if name in self.calls)


ABIS: Mapping[str, Abi] = {
    "x86_64": Abi(0xC000003E, True, _X86_64),
    "aarch64": Abi(0xC00000B7, False, _AARCH64),
}


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
    """A file that is left behind must not give its owner's rights to whoever runs it."""
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
