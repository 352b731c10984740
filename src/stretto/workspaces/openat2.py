"""Open a path that must stay beneath a folder, in one system call. In: a folder's fd, a path.

Python has no binding for it, so it is called by number (the same one on every architecture).
`is_available` is False where the kernel is older than 5.6, where a seccomp filter forbids the
call, and on other systems: `walking.py` does the same there, one component at a time.
"""

import ctypes
import errno
import os
import sys
from functools import cache

RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_NO_SYMLINKS = 0x04
RESOLVE_BENEATH = 0x08

_OPENAT2 = 437
_TRIES = 16  # a rename elsewhere while `..` is resolved makes the kernel say "again"


class _How(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


def open_beneath(root_fd: int, path: str, flags: int, *, follow: bool) -> int:
    """The path's fd. Raises OSError: EXDEV when it leads outside, ELOOP for a forbidden link."""
    resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS
    how = _How(flags | os.O_CLOEXEC, 0, resolve if follow else resolve | RESOLVE_NO_SYMLINKS)
    name = os.fsencode(path)
    for _ in range(_TRIES):
        fd: int = _syscall()(
            ctypes.c_long(_OPENAT2),
            ctypes.c_int(root_fd),
            ctypes.c_char_p(name),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
        if fd >= 0:
            return fd
        code = ctypes.get_errno()
        if code not in (errno.EAGAIN, errno.EINTR):
            raise OSError(code, os.strerror(code), path)
    raise OSError(errno.EAGAIN, "the folders on the way keep changing", path)


@cache
def is_available() -> bool:
    if sys.platform != "linux":
        return False
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.close(open_beneath(here, ".", os.O_RDONLY | os.O_DIRECTORY, follow=False))
    except (OSError, AttributeError):  # no such call, not allowed, or no such libc
        return False
    finally:
        os.close(here)
    return True


@cache
def _syscall() -> "ctypes._NamedFuncPointer":
    function = ctypes.CDLL(None, use_errno=True).syscall
    function.restype = ctypes.c_long
    return function
