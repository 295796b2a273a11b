"""Small pictures that take a decoder long, or much memory, made in code; each kind in a size that is asked for."""

from __future__ import annotations

import io
import lzma
import struct
import zlib
from collections.abc import Callable
from typing import Any

from PIL import Image


def encoded(image: Image.Image, form: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def _parts_of_jpeg() -> tuple[bytes, bytes]:
    """A progressive JPEG of 16 x 16 pixels without its end, and its last scan."""
    data = encoded(Image.new("L", (16, 16), 128), "JPEG", progressive=True)
    last = data.rindex(b"\xff\xda")
    return data[:-2], data[last:-2]


def _sized(jpeg: bytes, side: int) -> bytes:
    place = jpeg.index(b"\xff\xc2") + 5
    return jpeg[:place] + struct.pack(">HH", side, side) + jpeg[place + 4 :]


def jpeg_scans(side: int, scans: int) -> bytes:
    """A progressive JPEG that passes over its pixels again and again, for some bytes each time."""
    head, again = _parts_of_jpeg()
    return _sized(head, side) + again * scans + b"\xff\xd9"


def jpeg_arithmetic(side: int, scans: int) -> bytes:
    """The same of an arithmetic code."""
    frame = b"\xff\xca" + struct.pack(">HBHHB", 11, 8, side, side, 1) + b"\x01\x11\x00"
    tables = b"\xff\xdb\x00\x43\x00" + bytes([1]) * 64
    scan = b"\xff\xda\x00\x08\x01\x01\x00%s\x00"
    return b"\xff\xd8" + tables + frame + scan % b"\x00\x00" + (scan % b"\x01\x3f") * scans + b"\xff\xd9"


def jpeg_of_two(side: int, scans: int) -> bytes:
    """Two pictures in one file, as phones write them; the first has the scans."""
    return jpeg_scans(side, scans) + jpeg_scans(16, 1)


def _before_the_pixels(segment: bytes, count: int) -> bytes:
    data = encoded(Image.new("L", (16, 16), 128), "JPEG")
    return data[:2] + segment * count + data[2:]


def jpeg_exif(pieces: int) -> bytes:
    """EXIF in pieces of one byte each."""
    return _before_the_pixels(b"\xff\xe1\x00\x09Exif\0\0\0", pieces)


def jpeg_segments(count: int) -> bytes:
    """Comments without a word."""
    return _before_the_pixels(b"\xff\xfe\x00\x02", count)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(side: int, colour: int = 0, depth: int = 8, *, before: bytes = b"", after: bytes = b"") -> bytes:
    """A PNG of zeros."""
    bits = {0: 1, 2: 3, 6: 4}[colour] * depth
    packer = zlib.compressobj(9)
    row = bytes((side * bits + 7) // 8 + 1)
    body = b"".join(packer.compress(row) for _ in range(side))
    body += packer.flush()
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, depth, colour, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + before + chunk(b"IDAT", body) + after + chunk(b"IEND", b"")


def _packed() -> bytes:
    return zlib.compress(bytes((1 << 20) - 64), 9)


def png_profiles(count: int) -> bytes:
    """Colour profiles of 1 MiB each, in 1 KB."""
    return png(16, before=chunk(b"iCCP", b"a\0\0" + _packed()) * count)


def png_profiles_behind(count: int) -> bytes:
    """The same, behind the pixels."""
    return png(16, after=chunk(b"iCCP", b"a\0\0" + _packed()) * count)


def png_texts(count: int) -> bytes:
    """Texts of 1 MiB each, in 1 KB."""
    return png(16, before=chunk(b"zTXt", b"a\0\0" + _packed()) * count)


def png_chunks(count: int) -> bytes:
    """Chunks of nobody's kind, which Pillow keeps."""
    return png(16, before=chunk(b"abCd", b"") * count)


def exif(entries: int, size: int) -> bytes:
    """EXIF each of whose tags has all of it as its value."""
    tags = b"".join(struct.pack("<HHLL", tag, 7, size, 8) for tag in range(1, entries + 1))
    body = b"II*\0" + struct.pack("<IH", 8, entries) + tags + bytes(4)
    return body + bytes(max(0, size + 8 - len(body)))


def png_exif(entries: int) -> bytes:
    return png(16, before=chunk(b"eXIf", exif(entries, 900_000)))


def gif_comments(count: int) -> bytes:
    """Comments of one letter."""
    return _gif(b"!\xfe\x01a\0" * count)


def gif_blocks(count: int) -> bytes:
    """An extension in blocks of one byte."""
    return _gif(b"!\x01" + b"\x01a" * count + b"\0")


def _gif(before: bytes) -> bytes:
    data = encoded(Image.new("L", (16, 16)), "GIF")
    place = 13 + (3 << ((data[10] & 7) + 1) if data[10] & 128 else 0)
    return data[:place] + before + data[place:]


def gif_frames(count: int) -> bytes:
    """A film of as many frames."""
    data = encoded(Image.new("L", (16, 16)), "GIF")
    frame = data[data.index(b",", 13) : -1]
    return data[:-1] + frame * count + b";"


def bmp_ends_of_rows(side: int) -> bytes:
    """Rows that end after a pixel; Python fills them up."""
    return _bmp(side, 8, 1, b"\x01\x01\0\0" * side)


def bmp_run_lengths(side: int) -> bytes:
    """Rows of long runs of two pixels in turn."""
    return _bmp(side, 4, 2, (b"\xff\x12" * (side // 255 + 1) + b"\0\0") * side)


def _bmp(side: int, bits: int, compression: int, body: bytes) -> bytes:
    palette = bytes(4 << bits)
    head = struct.pack("<IiiHHIIiiII", 40, side, side, 1, bits, compression, len(body), 0, 0, 1 << bits, 0)
    start = 14 + len(head) + len(palette)
    return b"BM" + struct.pack("<IHHI", start + len(body), 0, 0, start) + head + palette + body


def ppm_comments(count: int) -> bytes:
    """Comments without a word before the first number."""
    return b"P2\n16 16\n255\n" + b"#\n" * count + b"1 " * 256


def ppm_text(side: int) -> bytes:
    """Pixels as text."""
    return b"P2\n%d %d\n255\n" % (side, side) + b"1 " * side**2


def ppm_head(size: int) -> bytes:
    """A comment in the header that goes on."""
    return b"P5\n#" + b"a" * size + b"\n16 16\n255\n" + b"\1" * 256


def tiff(width: int, rows: int, strips: int, compression: int, body: bytes) -> bytes:
    """A TIFF all of whose strips are the same bytes."""
    base, blob = 8 + 2 + 9 * 12 + 4, body
    tags = [(256, 1, width), (257, 1, rows * strips), (258, 1, 8), (259, 1, compression), (262, 1, 1), (277, 1, 1)]
    for tag, value in ((273, base), (279, len(body))):
        values = struct.pack(f"<{strips}I", *[value] * strips)
        tags.append((tag, strips, value if strips == 1 else base + len(blob)))
        blob += values if strips > 1 else b""
    tags.append((278, 1, rows))
    entries = b"".join(struct.pack("<HHII", tag, 4, count, value) for tag, count, value in sorted(tags))
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4) + blob


def tiff_scans(strips: int) -> bytes:
    """A JPEG of as many scans as libtiff takes, which is every strip."""
    head, again = _parts_of_jpeg()
    place = head.index(b"\xff\xc2") + 5
    head = head[:place] + struct.pack(">HH", 160, 4000) + head[place + 4 :]
    return tiff(4000, 160, strips, 7, head + again * 90 + b"\xff\xd9")


def tiff_strips(count: int) -> bytes:
    """A strip for each pixel."""
    return tiff(1, 1, count, 1, b"\0")


def tiff_lzma(strips: int) -> bytes:
    """Strips of a slow code, all of them the same bytes."""
    return tiff(4000, 100, strips, 34925, lzma.compress(bytes(range(250)) * 1600))


def avif_items(count: int) -> bytes:
    """As many items that are no pictures, each of which is looked for among the others."""
    data = encoded(Image.new("RGB", (16, 16)), "AVIF")
    place = data.index(b"iinf") - 4
    size, known = int.from_bytes(data[place : place + 4], "big"), int.from_bytes(data[place + 12 : place + 14], "big")
    more = b"".join(_box(b"infe", b"\x03\0\0\0" + struct.pack(">IH", 1000 + n, 0) + b"av01\0") for n in range(count))
    items = data[place + 14 : place + size] + more
    new = _box(b"iinf", b"\x01\0\0\0" + struct.pack(">I", known + count) + items)
    meta = data.index(b"meta") - 4
    whole = int.from_bytes(data[meta : meta + 4], "big") + len(new) - size
    return data[:meta] + struct.pack(">I", whole) + data[meta + 4 : place] + new + data[place + size :]


def _box(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", 8 + len(data)) + kind + data


def webp_frames(count: int) -> bytes:
    """A film of as many frames."""
    one, side = encoded(Image.new("RGB", (16, 16)), "WEBP")[12:], struct.pack("<I", 15)[:3]
    frame = _riff(b"ANMF", bytes(6) + side + side + b"\x10\0\0\0" + one)
    body = b"WEBP" + _riff(b"VP8X", b"\x02\0\0\0" + side + side) + _riff(b"ANIM", bytes(6)) + frame * count
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _riff(kind: bytes, data: bytes) -> bytes:
    return kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) & 1)


def webp_plain(side: int) -> bytes:
    """One colour, without loss."""
    return encoded(Image.new("RGBA", (side, side)), "WEBP", lossless=True, quality=0, method=0)


def _segment(kind: int, body: bytes) -> bytes:
    return bytes([0xFF, kind]) + struct.pack(">H", len(body) + 2) + body


def j2k(
    side: int, *, tile: int = 0, channels: int = 3, layers: int = 1, levels: int = 0, block: int = 4, bits: int = 11,
    precincts: bytes = b"", body: bytes = b"", parts: int = 1,
) -> bytes:  # fmt: skip
    """A code stream of JPEG 2000 whose packets are ``body``."""
    sizes = struct.pack(">H8IH", 0, side, side, 0, 0, tile or side, tile or side, 0, 0, channels)
    style = bytes([bool(precincts), 0]) + struct.pack(">H", layers) + bytes([0, levels, block, block, 0, 1]) + precincts
    depth = bytes([2 << 5]) + bytes([(bits - 1) << 3]) * (3 * levels + 1)
    head = b"\xff\x4f" + _segment(0x51, sizes + b"\7\1\1" * channels) + _segment(0x52, style) + _segment(0x5C, depth)
    empty = (_segment(0x90, struct.pack(">HIBB", 0, 14, 0, 0)) + b"\xff\x93") * (parts - 1)
    return head + empty + _segment(0x90, struct.pack(">HIBB", 0, 0, 0, 0)) + b"\xff\x93" + body + b"\xff\xd9"


def j2k_precincts(side: int) -> bytes:
    """A precinct for each pixel."""
    return j2k(side, precincts=b"\0")


def j2k_blocks(side: int) -> bytes:
    """A block of code for each 16 pixels."""
    return j2k(side, block=0)


def j2k_tiles(side: int) -> bytes:
    """A tile for each 256 pixels."""
    return j2k(side, tile=16, channels=4)


def j2k_layers(side: int) -> bytes:
    """As many layers as there can be, of many precincts."""
    return j2k(side, layers=65535, precincts=b"\x55", body=bytes(1000))


def j2k_parts(count: int) -> bytes:
    """Parts of a tile without content."""
    return j2k(64, parts=count)


def j2k_passes(side: int, bits: int) -> bytes:
    """Blocks that say nothing in as many passes as they can: each is a pass over its pixels."""
    across = -(-side // 64)
    packet = _packet(across, 3 * bits - 2)
    return j2k(side, bits=bits, body=packet * 3)


def _packet(across: int, passes: int) -> bytes:
    """A packet of square many blocks, each with one byte and a number of passes."""
    sides = [across]
    while sides[-1] > 1:
        sides.append((sides[-1] + 1) // 2)
    seen: set[tuple[int, int, int, int]] = set()
    bits = "1"
    for y, x in ((y, x) for y in range(across) for x in range(across)):
        for tree in range(2):
            for level in reversed(range(len(sides))):
                node = tree, level, y >> level, x >> level
                bits += "" if node in seen else "1"
                seen.add(node)
        many = f"{0x1FF:09b}{passes - 37:07b}" if passes > 36 else f"{15:04b}{passes - 6:05b}"
        bits += f"{many}0{1:0{2 + passes.bit_length()}b}"
    packed, at = bytearray(), 0
    while at < len(bits):
        wide = 7 if packed and packed[-1] == 0xFF else 8
        packed.append(int(bits[at : at + wide].ljust(wide, "0"), 2))
        at += wide
    return bytes(packed) + (b"\0" if packed[-1] == 0xFF else b"") + bytes(across**2)


def heic(side: int = 64, mode: str = "RGB", **options: Any) -> bytes:
    """A HEIC of a few colours."""
    from pillow_heif import register_heif_opener

    register_heif_opener()
    ramp = Image.linear_gradient("L").resize((side, side))
    return encoded(Image.merge("RGB", [ramp, ramp.rotate(90), ramp]).convert(mode), "HEIF", **options)


def heic_tiles(count: int) -> bytes:
    """A picture of 16 x 16 pixels whose tiles are as large as all of it, one for each place of 64."""
    data = heic(512, tile_size=256)
    del count
    place = data.index(b"idat") + 4
    said = data[place : place + 8]
    return data.replace(said, said[:2] + b"\xff\xff" + said[4:])


def heic_large(side: int) -> bytes:
    """A size in its properties that is not that of its pixels."""
    data = heic(64)
    place = data.index(b"ispe") + 8
    return data[:place] + struct.pack(">II", side, side) + data[place + 8 :]


def heic_film(frames: int) -> bytes:
    """Many pictures in the place of one."""
    data = heic(64)
    place = data.index(b"mdat") + 4
    film = data[place:] * frames
    lengths = data.index(b"iloc") + 4
    # Version and flags, sizes, count, id, reference, base, extents, place, length.
    at = lengths + 4 + 2 + 2 + 2 + 2 + 4 + 2 + 4
    patched = data[:at] + struct.pack(">I", len(film)) + data[at + 4 :]
    return patched[: place - 8] + struct.pack(">I", len(film) + 8) + b"mdat" + film


Bomb = Callable[[], bytes]

REFUSED: dict[str, tuple[Callable[..., bytes], tuple[int, ...], tuple[int, ...]]] = {
    "JPEG of many scans": (jpeg_scans, (4000, 1198), (64, 2000)),
    "JPEG of many scans of an arithmetic code": (jpeg_arithmetic, (4000, 200), (64, 100)),
    "JPEG of many scans and another picture": (jpeg_of_two, (4000, 1198), (64, 2000)),
    "JPEG of EXIF in pieces": (jpeg_exif, (900_000,), (9000,)),
    "JPEG of many segments": (jpeg_segments, (400_000,), (4000,)),
    "PNG of many profiles": (png_profiles, (2000,), (20,)),
    "PNG of many profiles behind its pixels": (png_profiles_behind, (2000,), (20,)),
    "PNG of many texts": (png_texts, (2000,), (70,)),
    "PNG of many chunks": (png_chunks, (400_000,), (4000,)),
    "GIF of many comments": (gif_comments, (400_000,), (4000,)),
    "GIF of an extension in many blocks": (gif_blocks, (400_000,), (4000,)),
    "BMP of rows that end early": (bmp_ends_of_rows, (5900,), (1000,)),
    "BMP of run lengths": (bmp_run_lengths, (5900,), (1000,)),
    "PPM of many comments": (ppm_comments, (2_000_000,), (40_000,)),
    "TIFF of a JPEG of many scans": (tiff_scans, (140,), (6,)),
    "TIFF of many strips": (tiff_strips, (400_000,), (4000,)),
    "AVIF of many items": (avif_items, (200_000,), (7000,)),
    "JPEG 2000 of many precincts": (j2k_precincts, (4000,), (200,)),
    "JPEG 2000 of many blocks": (j2k_blocks, (8000,), (800,)),
    "JPEG 2000 of many tiles": (j2k_tiles, (4000,), (500,)),
    "JPEG 2000 of many layers": (j2k_layers, (4000,), (1000,)),
    "JPEG 2000 of many parts": (j2k_parts, (400_000,), (4000,)),
    "JPEG 2000 of many passes": (j2k_passes, (4000, 29), (700, 29)),
}
"""What is refused: how it is made, of what size, and in what size where a hundredth of the work is allowed."""

TAKEN: dict[str, tuple[Callable[..., bytes], tuple[int, ...]]] = {
    "JPEG of as many scans as are taken": (jpeg_scans, (4000, 530)),
    "PNG of zeros": (png, (4000, 6, 16)),
    "PNG of one tag that is all EXIF": (png_exif, (1,)),
    "PNG of many tags that are all EXIF": (png_exif, (40_000,)),
    "GIF of many frames": (gif_frames, (100_000,)),
    "PPM of text": (ppm_text, (1500,)),
    "PPM of a long comment": (ppm_head, (3_000_000,)),
    "JPEG 2000 of as many passes as are taken": (j2k_passes, (4000, 22)),
    "TIFF of strips that are the same": (tiff_lzma, (40,)),
    "WebP of many frames": (webp_frames, (100_000,)),
    "WebP of one colour": (webp_plain, (4000,)),
}
"""What is read within a bound of processor time."""


def all_bombs() -> dict[str, Bomb]:
    """Every kind in its full size."""
    refused = {name: (lambda make=make, size=size: make(*size)) for name, (make, size, _) in REFUSED.items()}
    taken = {name: (lambda make=make, size=size: make(*size)) for name, (make, size) in TAKEN.items()}
    return {**refused, **taken}
