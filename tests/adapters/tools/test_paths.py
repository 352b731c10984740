"""Where case does not count, the entry's real name is what the sets are asked about."""

import os
from pathlib import Path

from stretto.adapters.tools.paths import entry_for, real_name


def test_a_name_that_is_there_is_itself() -> None:
    assert entry_for("src", ["src", "SRC"]) is None
    assert entry_for("cafe\u0301", ["caf\u00e9"]) is None


def test_another_spelling_is_found_by_its_letters() -> None:
    assert entry_for("SRC", ["lib", "src"]) == "src"
    assert entry_for("STRASSE", ["straße"]) == "straße"
    assert entry_for("src", []) == "another name"


def test_where_case_counts_two_spellings_are_two_names(tmp_path: Path) -> None:
    (tmp_path / "src").touch()
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        assert real_name(folder, "src") is None
        assert real_name(folder, "missing") is None
        assert real_name(folder, "123") is None
        # One file of two names, as where case does not count; but both names are in the folder.
        os.link(tmp_path / "src", tmp_path / "SRC")
        assert real_name(folder, "SRC") is None
    finally:
        os.close(folder)
