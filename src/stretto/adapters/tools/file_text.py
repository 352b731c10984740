"""Tell text from other files, and turn it into bytes and back without loss."""

import re

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive, or an office document"),
    (b"\x1f\x8b", "gzip-compressed"),
    (b"\x7fELF", "a program"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
)
_PROBE_BYTES = 8192


def not_text(beginning: bytes) -> str | None:
    """What a file is that the tools can neither show nor edit; None for text."""
    if beginning[:4] == b"RIFF" and beginning[8:12] == b"WEBP":
        return "a WebP image"
    known = next((what for magic, what in _MAGIC if beginning.startswith(magic)), None)
    return known or ("binary" if b"\0" in beginning[:_PROBE_BYTES] else None)


def decode(content: bytes) -> str:
    # Bytes that are no UTF-8 become lone surrogates, and the same bytes again in `encode`.
    return content.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def has_surrogates(text: str) -> bool:
    return not text.isascii() and re.search(r"[\ud800-\udfff]", text) is not None
