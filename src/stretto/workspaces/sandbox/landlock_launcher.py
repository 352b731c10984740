"""Start a command under Landlock and in namespaces of its own.

    python -I -S landlock_launcher.py FD

It runs alone, so it imports nothing of Stretto, and of the standard library only what is quick to
load: json, typing and signal would double the cost of a start. The order is what `landlock.py`
has written for this one start, in a file of memory that no other process has.

This process waits outside; its child is the first of a new process namespace, mounts, locks itself
in and becomes the command. What fails is printed on stderr, and the command is not started.
"""

import ctypes
import marshal
import os
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.workspaces.sandbox.landlock import LaunchOrder, MountOrder

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND = 1, 2, 4, 8, 4096
MS_REC, MS_PRIVATE = 16384, 1 << 18
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP = 1, 38, 24
SYS_MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = 442, -100, 0x8000, 1
SYS_LANDLOCK = 444  # create a ruleset; +1 adds a rule, +2 restricts
SYS_SECCOMP = {"x86_64": 317, "aarch64": 277}
SETUP_FAILED = 125
SIGKILL, SIGPIPE, SIGXFSZ = 9, 13, 25

# Landlock's rights, a bit each, and how many of them a version knows.
READ = 1 << 0 | 1 << 2 | 1 << 3  # execute, read a file, read a directory
MAKE_DEVICES = 1 << 6 | 1 << 11
READ_FILE, WRITE_FILE, TRUNCATE = 1 << 2, 1 << 1, 1 << 14
OF_FILES = 1 << 0 | WRITE_FILE | READ_FILE | TRUNCATE | 1 << 15
RIGHTS = {3: (1 << 15) - 1, 4: (1 << 15) - 1}
EVERY_RIGHT = (1 << 16) - 1  # from version 5 on: with device control
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
PRIVATE = ("/tmp", "/dev/shm")
HOME = "/tmp/home"

libc = ctypes.CDLL(None, use_errno=True)


def main() -> int:
    with open(int(sys.argv[1]), "rb") as file:
        order: LaunchOrder = marshal.load(file)
    libc.prctl(PR_SET_PDEATHSIG, SIGKILL)
    enter_namespaces(order)
    child = os.fork()
    if child == 0:
        try:
            become(order)
        except BaseException as error:
            os.write(2, f"landlock: {error}\n".encode())
        os._exit(SETUP_FAILED)
    # All processes of the child's namespace have ended by the time waitpid returns.
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def enter_namespaces(order: "LaunchOrder") -> None:
    uid, gid, inner = os.geteuid(), os.getegid(), order["uid"]
    flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS
    flags |= 0 if order["network"] else CLONE_NEWNET
    check(libc.unshare(flags), "creating new namespaces")
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", f"{inner} {uid} 1")
    write("/proc/self/gid_map", f"{inner} {gid} 1")


def become(order: "LaunchOrder") -> None:
    libc.prctl(PR_SET_PDEATHSIG, SIGKILL)
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    # Opened before /tmp is covered, because the workspace may lie in it.
    sources = [open_checked(it) if it["access"] != "NONE" else -1 for it in order["mounts"]]
    readable = [os.open(path, os.O_PATH) for path in order["readable"] if os.path.exists(path)]
    # Landlock knows nothing of modes, times, owners and attributes: what is read-only keeps them.
    set_read_only("/", True)
    size = f"size={order['scratch_bytes']},mode=1777"
    for place in PRIVATE:
        mount("tmpfs", place, "tmpfs", MS_NOSUID | MS_NODEV, size)
    os.makedirs(HOME, exist_ok=True)
    grants = [(fd, READ) for fd in readable]
    for it, source in zip(order["mounts"], sources, strict=True):
        grants += [place_mount(it, source)]
    grants += private_grants()
    os.chdir(order["directory"])
    restrict(grants, order["version"])
    filter_calls(order["seccomp"])
    os.closerange(3, 1 << 16)
    for number in (SIGPIPE, SIGXFSZ):  # which Python ignores, and its children would too
        libc.signal(number, None)
    os.execve(order["argv"][0], order["argv"], order["environment"])


def open_checked(it: "MountOrder") -> int:
    fd = os.open(it["source"], os.O_PATH | os.O_NOFOLLOW)
    status = os.fstat(fd)
    if (status.st_dev, status.st_ino) != (it["device"], it["inode"]):
        raise OSError(f"{it['source']} was swapped for another")
    return fd


def place_mount(it: "MountOrder", source: int) -> tuple[int, int]:
    """Mount it. Returns a descriptor of the place, and the rights of the command there."""
    target = it["target"]
    if it["access"] == "NONE":
        kind = ("tmpfs", "tmpfs") if it["is_directory"] else ("/dev/null", None)
        mount(kind[0], target, kind[1], MS_RDONLY if kind[1] else MS_BIND)
        return os.open(target, os.O_PATH), 0
    if is_directory_fd(source):
        os.makedirs(target, exist_ok=True)
    elif not os.path.exists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        open(target, "x").close()
    mount(f"/proc/self/fd/{source}", target, None, MS_BIND | MS_REC)
    is_read = it["access"] == "READ"
    set_read_only(target, is_read)
    return os.open(target, os.O_PATH), READ if is_read else EVERY_RIGHT & ~MAKE_DEVICES


def set_read_only(target: str, is_read_only: bool) -> None:
    """With all that is mounted below it."""
    change = (MOUNT_ATTR_RDONLY, 0) if is_read_only else (0, MOUNT_ATTR_RDONLY)
    attributes = struct.pack("=QQQQ", *change, 0, 0)
    result = libc.syscall(
        SYS_MOUNT_SETATTR, AT_FDCWD, os.fsencode(target), AT_RECURSIVE, attributes, len(attributes)
    )
    check(result, f"making {target} {'read-only' if is_read_only else 'writable'}")


def private_grants() -> list[tuple[int, int]]:
    grants = [(os.open(place, os.O_PATH), EVERY_RIGHT & ~MAKE_DEVICES) for place in PRIVATE]
    for name in DEVICES:
        grants.append((os.open(f"/dev/{name}", os.O_PATH), READ_FILE | WRITE_FILE | TRUNCATE))
    try:
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
        grants.append((os.open("/proc", os.O_PATH), READ))
    except OSError:
        pass  # in a container that hides parts of /proc: then the command has none
    return grants


def restrict(grants: list[tuple[int, int]], version: int) -> None:
    handled = RIGHTS.get(version, EVERY_RIGHT)
    # From version 6 on: no signals to, and no abstract sockets of, those outside.
    ruleset = struct.pack("=QQQ", handled, 0, 0b11 if version >= 6 else 0)
    size = 24 if version >= 6 else 8
    fd = check(libc.syscall(SYS_LANDLOCK, ruleset, size, 0), "landlock_create_ruleset")
    for place, rights in grants:
        is_directory = is_directory_fd(place)
        allowed = rights & handled if is_directory else rights & handled & OF_FILES
        if allowed:
            rule = struct.pack("=Qi", allowed, place)
            check(libc.syscall(SYS_LANDLOCK + 1, fd, 1, rule, 0), "landlock_add_rule")
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    check(libc.syscall(SYS_LANDLOCK + 2, fd, 0), "landlock_restrict_self")


def is_directory_fd(fd: int) -> bool:
    return os.fstat(fd).st_mode & 0o170000 == 0o040000


def filter_calls(program: bytes) -> None:
    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))

    loaded = Program(len(program) // 8, program)
    number = SYS_SECCOMP[os.uname().machine]
    check(libc.syscall(number, 1, 0, ctypes.byref(loaded)), "seccomp")


def mount(source: str | None, target: str, kind: str | None, flags: int, options: str = "") -> None:
    result = libc.mount(
        source and os.fsencode(source),
        os.fsencode(target),
        kind and kind.encode(),
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    check(result, f"mount {kind or source or ''} on {target}")


def check(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


if __name__ == "__main__":
    try:
        code = main()
    except OSError as error:
        os.write(2, f"landlock: {error}\n".encode())
        code = SETUP_FAILED
    os._exit(code)  # tidying up would take as long as starting
