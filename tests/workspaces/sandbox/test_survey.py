"""What a survey of a workspace finds."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# Root lists every directory; without these two capabilities it obeys modes like anybody else.
AS_ANYBODY = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if not os.getuid() else []
FIND = (
    "import os, sys; from stretto.workspaces.sandbox.repository_guard import find_repositories\n"
    "fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY)\n"
    "print(sorted('/'.join(names) for names in find_repositories(fd, [()])))"
)


@pytest.mark.skipif(
    bool(AS_ANYBODY) and shutil.which("setpriv") is None,
    reason="root lists every directory, and there is no setpriv",
)
def test_a_repository_in_a_directory_that_cannot_be_listed_is_found(tmp_path: Path) -> None:
    hidden = tmp_path / "a" / "hidden"
    (hidden / "deep" / ".git").mkdir(parents=True)
    hidden.chmod(0o311)
    words = [*AS_ANYBODY, sys.executable, "-c", FIND, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['a/hidden/deep/.git']"
    assert hidden.stat().st_mode & 0o777 == 0o311  # as its owner left it
