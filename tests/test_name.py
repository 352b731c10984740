"""The project has one name: nothing of the one it had before is kept."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
OLD = "we" + "ft"


def test_no_file_has_or_says_the_old_name():
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    files = [name for name in listed if name and (ROOT / name).is_file()]
    assert len(files) > 500
    named = [name for name in files if OLD in name.lower()]
    saying = [name for name in files if OLD.encode() in (ROOT / name).read_bytes().lower()]
    assert named + saying == []
