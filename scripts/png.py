"""PNG pictures in fewer bytes, nothing lost: browsers filter rows for photographs, but text on a plain ground
packs better unfiltered.
"""

from __future__ import annotations

import zlib

_COLOUR_BYTES = {2: 3, 6: 4}  # RGB and RGBA, eight bits each


def packed(png: bytes) -> bytes:
    """The same picture, its rows unfiltered and packed tightly; or as it was, if that is smaller."""
    chunks: list[tuple[bytes, bytes]] = []
    place = 8
    while place < len(png):
        size = int.from_bytes(png[place : place + 4], "big")
        chunks.append((png[place + 4 : place + 8], png[place + 8 : place + 8 + size]))
        place += size + 12
    header = chunks[0][1]
    rows = _rows(zlib.decompress(b"".join(data for kind, data in chunks if kind == b"IDAT")), header)
    body = zlib.compress(b"".join(b"\0" + row for row in rows), 9)
    parts = [(b"IHDR", header), (b"IDAT", body), (b"IEND", b"")]
    small = png[:8] + b"".join(
        len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")
        for kind, data in parts
    )
    return min(small, png, key=len)


def _rows(filtered: bytes, header: bytes) -> list[bytes]:
    step = _COLOUR_BYTES[header[9]]
    stride = int.from_bytes(header[:4], "big") * step
    rows: list[bytes] = []
    above = bytes(stride)
    for start in range(0, len(filtered), stride + 1):
        above = _row(filtered[start], filtered[start + 1 : start + 1 + stride], above, step)
        rows.append(above)
    return rows


def _row(kind: int, line: bytes, above: bytes, step: int) -> bytes:
    """Undo the filter of one row."""
    row = bytearray(step) + bytearray(line)  # a pixel of zeros on the left
    over = bytes(step) + above
    for n in range(step, len(row)):
        left, up, corner = row[n - step], over[n], over[n - step]
        row[n] = (row[n] + (0, left, up, (left + up) // 2, _paeth(left, up, corner))[kind]) % 256
    return bytes(row[step:])


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min((left, up, corner), key=lambda value: abs(guess - value))
