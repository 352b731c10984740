"""Which paths an attempt may name. In: its Reach, a path as a model writes it. Out: it, or Refused.

Only the words of a path are judged here; files.py opens it so that it means what it says.
"""

from collections.abc import Sequence

from stretto.adapters.tools.checked import Refused
from stretto.globs.glob import Glob, parse_glob
from stretto.ports.tool import Reach
from stretto.vocabulary.names import listed
from stretto.workspaces.paths import quote_path
from stretto.workspaces.protected import Protected, is_protected
from stretto.workspaces.secret_files import is_secret, select_secret_globs


class Bounds:
    def __init__(self, reach: Reach, only: Sequence[Glob] = ()) -> None:
        """`only`: of what the sets allow, what one of these covers too."""
        self.readable = _globs(reach.read_set)
        self._writable = _globs(reach.write_set if reach.may_write else ())
        self._reach = reach
        self._protected = Protected(reach.protected)
        self._hidden = Protected(reach.hidden)
        self._naming = select_secret_globs(self.readable)
        self._only = only

    def may_read(self, where: str) -> bool:
        is_kept = self._hidden.holds(where) or self._is_kept_secret(where)
        return self._allow(self.readable, where) and not is_kept

    def to_read(self, path: str) -> str:
        where = self.relative(path)
        if self._is_kept_secret(where) and self._allow(self.readable, where):
            raise Refused(
                f"{quote_path(where)} is called as a file with keys is: no tool reads it unless the "
                "step's read_set names it"
            )
        if not self.may_read(where):
            may = self._said(self.readable)
            raise Refused(f"{quote_path(where)} is outside what you may read: {may}")
        return where

    def to_write(self, path: str) -> str:
        where = self.relative(path)
        if not self._reach.may_write:
            raise Refused("this step may not write: it is read-only")
        if not self._allow(self._writable, where):
            may = self._said(self._writable)
            raise Refused(f"{quote_path(where)} is outside what you may write: {may}")
        if self._protected.covers(where):
            what = "is among what the user has trusted, or Stretto's own: no step changes it"
            raise Refused(f"{quote_path(where)} {what}")
        return where

    def relative(self, path: str) -> str:
        """The path from the workspace on, in or out of the sets."""
        if "\0" in path or any("\ud800" <= letter <= "\udfff" for letter in path):
            raise Refused("the path holds a character that no file name can have")
        names = [name for name in self._from_workspace(path).split("/") if name not in ("", ".")]
        if ".." in names:
            raise Refused(f"{quote_path(path)} has '..' in it; write it relative to the workspace")
        where = "/".join(names)
        if is_protected(where):
            raise Refused(f"{quote_path(path)} is git's own, which no tool touches")
        if self._hidden.holds(where):
            raise Refused(f"{quote_path(path)} is in Stretto's own folder, which no tool touches")
        return where

    def _from_workspace(self, path: str) -> str:
        if not path.startswith("/"):
            return path
        for root in (self._reach.workspace, self._reach.workspace.resolve()):
            if path == str(root) or path.startswith(f"{root}/"):
                return path[len(str(root)) :]
        raise Refused(
            f"{quote_path(path)} is outside the workspace; write paths relative to the workspace"
        )

    def _is_kept_secret(self, where: str) -> bool:
        return is_secret(where.split("/")) and not _cover(self._naming, where)

    def _allow(self, globs: Sequence[Glob], where: str) -> bool:
        return _cover(globs, where) and (not self._only or _cover(self._only, where))

    def _said(self, globs: Sequence[Glob]) -> str:
        may = listed((glob.text for glob in globs), 20) or "nothing"
        only = listed((glob.text for glob in self._only), 20)
        return f"{may} (and of that only {only})" if only else may


def _globs(written: Sequence[str]) -> tuple[Glob, ...]:
    # What is no glob covers nothing.
    return tuple(glob for glob in map(parse_glob, written) if isinstance(glob, Glob))


def _cover(globs: Sequence[Glob], path: str) -> bool:
    return any(glob.matches(path) for glob in globs)
