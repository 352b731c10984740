import os
import time

from stretto.registry.folders import Folder, files_in, looking_once, once, signature


def test_files_come_in_a_stable_order(tmp_path):
    for name in ("b.yaml", "a.yml", "c.txt", ".d.yaml", "_e.yaml", "B.yaml"):
        (tmp_path / name).touch()
    files = files_in(Folder(tmp_path, "user"), (".yaml", ".yml"))
    assert [file.name for file in files] == ["B.yaml", "a.yml", "b.yaml"]


def test_a_folder_that_is_a_file_holds_nothing(tmp_path):
    (tmp_path / "file").touch()
    assert files_in(Folder(tmp_path / "file", "user"), (".yaml",)) == []


def test_a_link_to_a_file_counts_and_a_dangling_one_does_not(tmp_path):
    (tmp_path / "a.yaml").touch()
    (tmp_path / "b.yaml").symlink_to(tmp_path / "a.yaml")
    (tmp_path / "c.yaml").symlink_to(tmp_path / "gone.yaml")
    files = files_in(Folder(tmp_path, "user"), (".yaml",))
    assert [file.name for file in files] == ["a.yaml", "b.yaml"]


def test_a_link_to_itself_hides_no_other_file(tmp_path):
    (tmp_path / "a.yaml").touch()
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    files = files_in(Folder(tmp_path, "user"), (".yaml",))
    assert [file.name for file in files] == ["a.yaml"]


def test_a_signature_changes_with_the_file(tmp_path):
    file = tmp_path / "a.yaml"
    assert signature(file) is None
    file.write_text("a")
    assert signature(file) is None  # it may change again within the same tick
    time.sleep(0.12)
    first = signature(file)
    assert first is not None
    assert first == signature(file)
    file.write_text("b")
    os.utime(file, (1000, 1000))  # a copying program may set it back
    time.sleep(0.12)
    assert signature(file) not in (None, first)


def test_what_was_looked_at_once_is_looked_at_again_only_at_the_end(tmp_path):
    file, looks = tmp_path / "a.yaml", []
    with looking_once():
        assert signature(file) is None
        file.write_text("a")
        time.sleep(0.12)
        assert signature(file) is None
        assert [once("x", lambda: looks.append(1)) for _ in range(3)] == [None] * 3
    assert signature(file) is not None
    assert looks == [1]
    assert [once("x", lambda: looks.append(1)) for _ in range(3)] == [None] * 3
    assert len(looks) == 4
