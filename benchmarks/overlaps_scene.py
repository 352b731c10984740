"""Small workspaces on disk, and which files a set really names there. In: chance. Out: a Scene.

What a set names is found without Stretto: every path of the workspace is followed with
`os.path.realpath`, also through links, and compared with a regular expression made from the glob.
Where case is to be ignored the disk need not ignore it: paths and files are compared without case.
"""

import errno
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

FOLDERS = ("src", "docs", "lib", "src/deep", "lib/x", "docs/old", "src/deep/er")
FILES = ("a.py", "b.py", "c.md", "d")
NEW = ("new.py", "n/new.md")  # what no file is called yet
MOST_DEPTH = 5
MOST_PATHS = 500


@dataclass(frozen=True, slots=True)
class Scene:
    root: Path
    is_case_ignored: bool
    paths: tuple[str, ...]  # of files, also through links, also of files that are not there yet
    files: tuple[str, ...]  # the file that each path is
    links: int

    def named_by(self, globs: Iterable[str]) -> frozenset[str]:
        """The files that a set names."""
        flags = re.IGNORECASE if self.is_case_ignored else 0
        rules = [re.compile(rule, flags) for glob in globs for rule in _rules(glob)]
        pairs = zip(self.paths, self.files, strict=True)
        return frozenset(
            file for path, file in pairs if any(rule.fullmatch(f"{path}/") for rule in rules)
        )


def make_scene(luck: Random, root: Path, *, is_case_ignored: bool) -> Scene:
    root.mkdir()
    cased = (lambda name: luck.choice((name, name.title()))) if is_case_ignored else str
    spelt = {"": ""}
    for folder in FOLDERS:
        above, _, name = folder.rpartition("/")
        if above in spelt and luck.random() < 0.7:
            spelt[folder] = os.path.join(spelt[above], cased(name))
            (root / spelt[folder]).mkdir()
    folders = list(spelt.values())
    for folder in folders:
        for file in luck.sample(FILES, luck.randint(0, 3)):
            (root / folder / cased(file)).write_text(file)
    links = _make_links(luck, root, folders)
    paths = tuple(_paths(root))
    kept = [(path, file) for path in paths if (file := _file(root, path, is_case_ignored))]
    return Scene(root, is_case_ignored, tuple(p for p, _ in kept), tuple(f for _, f in kept), links)


def draw_set(luck: Random, scene: Scene) -> list[str]:
    """One or two globs, most of them near a path that leads somewhere."""
    return [_draw_glob(luck, scene) for _ in range(luck.choice((1, 1, 2)))]


def _make_links(luck: Random, root: Path, folders: Sequence[str]) -> int:
    """Links to files, folders and links, to what is not there, in circles, and out."""
    count = luck.randint(1, 5)
    for number in range(count):
        where = root / luck.choice(folders) / f"l{number}"
        there = [os.path.join(at, name) for at, _, names in os.walk(root) for name in names]
        there += [str(root / folder) for folder in folders]
        links = [os.path.join(at, n) for at, d, f in os.walk(root) for n in d + f if n[0] == "l"]
        target = luck.choice(
            [*there, *there, *links, str(where), str(root / "gone" / "x.py"), "/nowhere"]
        )
        is_relative = luck.random() < 0.8
        os.symlink(os.path.relpath(target, where.parent) if is_relative else target, where)
    return count


def _paths(root: Path) -> Iterator[str]:
    """Paths of files, shortest first, through links too; a circle ends at the greatest depth."""
    waiting, yielded = [""], 0
    for folder in waiting:
        for name in (*sorted(os.listdir(root / folder)), *NEW):
            path = os.path.join(folder, name)
            if not os.path.isdir(root / path):
                yielded += 1
                yield path
            elif path.count("/") < MOST_DEPTH - 1 and len(waiting) < MOST_PATHS:
                waiting.append(path)
        if yielded > MOST_PATHS:
            return


def _file(root: Path, path: str, is_case_ignored: bool) -> str | None:
    """The file itself; None: it is outside, or nowhere."""
    try:
        os.stat(root / path)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None
    file = os.path.realpath(root / path)
    if not file.startswith(f"{root}/"):
        return None
    return file.casefold() if is_case_ignored else file


def _draw_glob(luck: Random, scene: Scene) -> str:
    path = luck.choice(scene.paths) if scene.paths else "a.py"
    names = path.split("/")
    if scene.is_case_ignored:
        names = [luck.choice((name, name, name.upper(), name.swapcase())) for name in names]
    *above, name = names
    stem, suffix = os.path.splitext(name)
    at = luck.randrange(len(names))
    forms = [
        names,
        names,
        names,
        above or names,
        [*above, "**"] if above else names,
        [*above, "*"],
        [*above, f"*{suffix}"],
        [*above, f"?{name[1:]}"],
        [*above, f"[{name[0]}x]{name[1:]}"],
        [*above, f"{{{stem},z}}{suffix}"],
        ["**", *names[at:]],
        [*names[:at], "*", *names[at + 1 :]],
        [*names[:at], "**", name],
    ]
    return "/".join(luck.choice(forms))


def _rules(glob: str) -> list[str]:
    """Regular expressions for a path with a '/' at its end."""
    braces = re.search(r"\{([^{}]*)\}", glob)
    if braces:
        head, tail = glob[: braces.start()], glob[braces.end() :]
        return [rule for one in braces[1].split(",") for rule in _rules(head + one + tail)]
    rule = "".join(_rule(name) for name in glob.split("/"))
    is_plain = not any(wild in glob for wild in "*?[")
    return [f"{rule}{_rule('**')}" if is_plain else rule]


def _rule(name: str) -> str:
    if name == "**":
        return "(?:[^/]+/)*"
    tokens = re.findall(r"\[[^\]]*\]|.", name)
    wild = {"*": "[^/]*", "?": "[^/]"}
    said = (wild.get(t) or (t if t.startswith("[") else re.escape(t)) for t in tokens)
    return "".join(said) + "/"
