"""Sorts of files beside pictures, by their names and first bytes: what a folder of pictures holds and is not read."""

from __future__ import annotations

import mimetypes
from pathlib import PurePath

HEIF_SUFFIXES = frozenset({".heic", ".heics", ".heif", ".heifs", ".hif"})
"""Lower-case endings of HEIC and HEIF pictures."""

RAW_SUFFIXES = frozenset(
    {
        ".3fr", ".arw", ".cr2", ".cr3", ".crw", ".dcr", ".dng", ".erf", ".fff", ".gpr", ".iiq", ".k25", ".kdc", ".mef",
        ".mos", ".mrw", ".nef", ".nrw", ".orf", ".pef", ".raf", ".raw", ".rw2", ".rwl", ".sr2", ".srf", ".srw", ".x3f",
    }
)  # fmt: skip
"""Lower-case endings of what cameras write before a picture is developed."""

VIDEO_SUFFIXES = frozenset(
    {
        ".3g2", ".3gp", ".avi", ".flv", ".insv", ".m2ts", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".mts",
        ".ogv", ".webm", ".wmv",
    }
)  # fmt: skip
"""Lower-case endings of films."""

_TYPES = mimetypes.MimeTypes()
"""Python's own table of endings, which is the same on every machine."""
_OTHER_PICTURES = frozenset(
    {
        ".afphoto", ".ai", ".apng", ".cdr", ".clip", ".dds", ".eps", ".exr", ".fits", ".hdr", ".icns", ".ico", ".j2c",
        ".j2k", ".jls", ".jp2", ".jpf", ".jpx", ".jxl", ".jxr", ".kra", ".pam", ".pcx", ".pfm", ".psb", ".psd", ".qoi",
        ".ras", ".sgi", ".svg", ".svgz", ".tga", ".wmf", ".xbm", ".xcf", ".xpm",
    }
)  # fmt: skip
_OTHERS = frozenset(
    {
        ".aae", ".bin", ".bz2", ".cfg", ".conf", ".db", ".dta", ".gz", ".ini", ".ipynb", ".jsonl", ".lance", ".list",
        ".lock", ".log", ".lz4", ".manifest", ".mat", ".md", ".ndjson", ".npy", ".npz", ".parquet", ".pp3", ".pt",
        ".pth", ".safetensors", ".sqlite", ".tar", ".thumbnail", ".tmp", ".toml", ".tsv", ".txn", ".txt", ".xmp",
        ".xz", ".yaml", ".yml", ".zst",
    }
)  # fmt: skip
"""Endings that say what a file is, and that Python's table of types may lack."""

_FOLDERS_OF_PROGRAMS = frozenset(
    {
        "#recycle", "#snapshot", "$recycle.bin", ".documentrevisions-v100", ".fseventsd", ".git", ".hg",
        ".spotlight-v100", ".stfolder", ".stversions", ".svn", ".temporaryitems", ".thumbnails", ".thumbs", "@eadir",
        "@recycle", "__macosx", "found.000", "lost+found", "system volume information",
    }
)  # fmt: skip
_FILES_OF_PROGRAMS = frozenset(
    {
        ".directory", ".ds_store", ".gitattributes", ".gitignore", ".gitkeep", ".localized", ".nomedia", ".picasa.ini",
        ".rungwiseignore", "desktop.ini", "ehthumbs.db", "icon\r", "picasa.ini", "thumbs.db",
    }
)  # fmt: skip
_BEGINNINGS = ("._", ".trash")
_ENDINGS = (".lrdata",)

_BMP_HEADERS = frozenset({12, 40, 52, 56, 64, 108, 124})
_BRANDS = {
    b"avif": ".avif", b"avis": ".avif", b"heic": ".heic", b"heix": ".heic", b"hevc": ".heic", b"mif1": ".heif",
}  # fmt: skip
_BEGINNINGS_OF_PICTURES = (
    b"\xff\xd8", b"\x89PNG", b"GIF8", b"II", b"MM", b"BM", b"RIFF", b"\xff\x4f\xff\x51", b"\0\0\0\x0cjP",
    *(b"P" + bytes([mark]) for mark in b"0123456789fFy"),
)  # fmt: skip
SIGNATURE_BYTES = 64
"""Bytes from the beginning of a file that :func:`picture_suffix` looks at."""


def is_of_programs(name: str) -> bool:
    """Whether systems and programs keep a file or folder of this name for themselves; docs/guide/data has the list.

    >>> [is_of_programs(name) for name in ("@eaDir", "Thumbs.db", "._a.jpg", ".Trash-1000", "holiday", ".hidden.png")]
    [True, True, True, True, False, False]
    """
    folded = name.casefold()
    known = folded in _FOLDERS_OF_PROGRAMS or folded in _FILES_OF_PROGRAMS
    return known or folded.startswith(_BEGINNINGS) or folded.endswith(_ENDINGS)


def is_other_picture(name: str) -> bool:
    """Whether a name has the ending of a picture, of whatever format.

    >>> is_other_picture("logo.SVG"), is_other_picture("notes.txt")
    (True, False)
    """
    suffix = PurePath(name).suffix.lower()
    kind = None if suffix in RAW_SUFFIXES else _TYPES.guess_type(name)[0]
    return suffix in _OTHER_PICTURES or (kind or "").startswith("image/")


def has_known_ending(name: str) -> bool:
    """Whether a name's ending says what the file is.

    >>> [has_known_ending(name) for name in ("a.pdf", "clip.MOV", "0a1b2c", "photo.jpg_large")]
    [True, True, False, False]
    """
    suffix = PurePath(name).suffix.lower()
    if not suffix:
        return False
    listed = any(suffix in some for some in (HEIF_SUFFIXES, RAW_SUFFIXES, VIDEO_SUFFIXES, _OTHER_PICTURES, _OTHERS))
    return listed or any(_TYPES.guess_type(name))


def picture_suffix(start: bytes) -> str:
    r"""The ending that fits a picture's first :data:`SIGNATURE_BYTES`; empty where they are none of a known format.

    >>> picture_suffix(b"\xff\xd8\xff\xe0..."), picture_suffix(b"RIFF....WEBPVP8 "), picture_suffix(b"%PDF-1.7")
    ('.jpg', '.webp', '')
    """
    for signature, suffix in (
        (b"\xff\xd8\xff", ".jpg"),
        (b"\x89PNG\r\n\x1a\n", ".png"),
        (b"GIF87a", ".gif"),
        (b"GIF89a", ".gif"),
        (b"II*\0", ".tif"),
        (b"MM\0*", ".tif"),
        (b"\0\0\0\x0cjP  \r\n\x87\n", ".jp2"),
    ):
        if start.startswith(signature):
            return suffix
    if start.startswith(b"RIFF") and start[8:12] == b"WEBP":
        return ".webp"
    if start[4:8] == b"ftyp":
        return _BRANDS.get(start[8:12], "")
    # Two letters alone would make pictures of many texts.
    is_bitmap = start.startswith(b"BM") and start[6:10] == b"\0\0\0\0"
    return ".bmp" if is_bitmap and int.from_bytes(start[14:18], "little") in _BMP_HEADERS else ""


def may_be_picture(start: bytes) -> bool:
    r"""Whether a file that begins so may be a picture; False if no decoder here would even try it.

    >>> may_be_picture(b"\xff\xd8\xff\xe0..."), may_be_picture(b"P6 2 2 255 ..."), may_be_picture(b"%PDF-1.7")
    (True, True, False)
    """
    return start.startswith(_BEGINNINGS_OF_PICTURES) or start[4:8] == b"ftyp"
