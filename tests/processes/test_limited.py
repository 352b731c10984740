import pytest

from stretto.processes.limited import HeadAndTail


def said(most_bytes: int, *chunks: bytes) -> tuple[str, int]:
    output = HeadAndTail(most_bytes)
    for chunk in chunks:
        output.add(chunk)
    return output.end()


def test_what_fits_is_kept_whole() -> None:
    assert said(10, b"01234", b"56789") == ("0123456789", 0)


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_of_a_flood_the_head_and_the_tail_are_kept(size: int) -> None:
    flood = b"".join(b"%04d " % number for number in range(1000))
    chunks = [flood[at : at + size] for at in range(0, len(flood), size)]
    text, dropped = said(20, *chunks)
    assert dropped == 4980
    assert text == "0000 0001 \n[… 4980 bytes of output were dropped here …]\n0998 0999 "


def test_what_is_not_text_is_shown_as_such() -> None:
    assert said(10, b"a\xffb") == ("a\ufffdb", 0)


def test_a_limit_of_one_byte_holds() -> None:
    text, dropped = said(1, b"ab", b"c")
    assert text.startswith("a\n[… 2 bytes")
    assert dropped == 2
