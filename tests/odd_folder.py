"""A folder as people have them: odd pictures, files of programs, and files that say something of a picture."""

from __future__ import annotations

import io
import json
import os
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

NFC, NFD = "unicode/Zoë.jpg", unicodedata.normalize("NFD", "unicode/Köln.jpg")
TURNS = tuple(f"turned/{turn}.jpg" for turn in range(1, 9))
PICTURES = (
    "animated.gif", "animated.webp", "both.jpg", "both.png", "captioned.jpg", "cmyk.jpg", "copy.jpg", "embedded.jpg",
    "empty.jpg", "grey16.png", "no ending", "no picture.jpg", "pages.tif", "plain.jpg", "png called.jpg", "sidecar.jpg",
    "takeout/IMG_1(1).jpg", "takeout/IMG_1-edited.jpg", "takeout/IMG_1.jpg", *TURNS, NFD, NFC,
)  # fmt: skip
"""Files that count as pictures, without :data:`LARGE`, links, HEIC and the one without permission."""
LARGE = "100 megapixels.png"
HEIC = "phone.heic"
FORBIDDEN = "forbidden.jpg"


def make(root: Path, *, large: bool = False) -> None:
    """Write all files below a folder.

    Args:
        root: The folder, which must not be there yet.
        large: Write :data:`LARGE` too, a picture of 100 megapixels.
    """
    for name in ("unicode", "turned", "takeout", "drafts", ".secret", "@eaDir", "__MACOSX"):
        (root / name).mkdir(parents=True)
    _make_pictures(root)
    _make_described(root)
    _make_unread(root)
    if large:
        Image.new("1", (10_000, 10_000)).save(root / LARGE)
    if os.name == "posix":
        (root / "around").symlink_to(".")
        (root / "dangling.jpg").symlink_to("nowhere.jpg")
        (root / "linked.jpg").symlink_to("plain.jpg")
        (root / FORBIDDEN).write_bytes(jpeg(99))
        (root / FORBIDDEN).chmod(0)


def jpeg(seed: int, size: tuple[int, int] = (24, 16), **options: Any) -> bytes:
    """A small picture; different seeds give different pixels."""
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", **options)
    return file.getvalue()


def xmp(inside: str = "", **attributes: str) -> bytes:
    """A packet; ``inside`` stands in its description, attributes such as ``xmp_Rating="4"`` in the tag."""
    said = " ".join(f'{name.replace("_", ":")}="{value}"' for name, value in attributes.items())
    return (
        '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
        ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xmp="http://ns.adobe.com/xap/1.0/"'
        f' xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/"><rdf:Description {said}>{inside}</rdf:Description>'
        "</rdf:RDF></x:xmpmeta>"
    ).encode()


def in_languages(name: str, **texts: str) -> str:
    """A property of XMP with a text for each language."""
    listed = "".join(f'<rdf:li xml:lang="{key.replace("_", "-")}">{text}</rdf:li>' for key, text in texts.items())
    return f"<dc:{name}><rdf:Alt>{listed}</rdf:Alt></dc:{name}>"


def takeout(title: str, **fields: Any) -> str:
    """What Google Takeout writes of a picture."""
    said = {
        "title": title,
        "description": "",
        "imageViews": "3",
        "creationTime": {"timestamp": "1600000100", "formatted": "13.09.2020, 12:28:20 UTC"},
        "photoTakenTime": {"timestamp": "1600000000", "formatted": "13.09.2020, 12:26:40 UTC"},
        "geoData": {"latitude": 0.0, "longitude": 0.0, "altitude": 0.0},
    }
    return json.dumps(said | fields)


def _make_pictures(root: Path) -> None:
    for seed, name in enumerate(("plain.jpg", NFC, NFD, "no ending", "both.jpg", "captioned.jpg", "sidecar.jpg")):
        (root / name).write_bytes(jpeg(seed))
    (root / "copy.jpg").write_bytes((root / "plain.jpg").read_bytes())
    for turn, name in enumerate(TURNS, start=1):
        exif = Image.Exif()
        exif[0x0112] = turn
        (root / name).write_bytes(jpeg(20 + turn, exif=exif.tobytes()))
    Image.new("CMYK", (24, 16), (200, 10, 10, 0)).save(root / "cmyk.jpg")
    Image.fromarray(np.arange(24 * 16, dtype=np.uint16).reshape(16, 24) * 170).save(root / "grey16.png")
    frames: Sequence[Image.Image] = [Image.new("RGB", (24, 16), (shade, 0, 90)) for shade in (10, 120, 230)]
    for name in ("animated.gif", "animated.webp", "pages.tif"):
        frames[0].save(root / name, save_all=True, append_images=frames[1:])
    Image.new("RGB", (24, 16), (9, 90, 9)).save(root / "both.png")
    Image.new("RGB", (24, 16), (9, 9, 90)).save(root / "png called.jpg", "PNG")
    (root / "empty.jpg").touch()
    (root / "no picture.jpg").write_text("<html>Not found</html>")


def _make_described(root: Path) -> None:
    (root / "captioned.txt").write_text("A red boat.\nA boat at sea.\n")
    (root / "both.txt").write_text("One of two.")
    (root / "alone.txt").write_text("Whose is this?")
    said = in_languages("title", de="Boot", x_default="Boat") + in_languages("description", x_default="Seen at noon.")
    (root / "sidecar.xmp").write_bytes(xmp(said, xmp_Rating="4"))
    (root / "embedded.jpg").write_bytes(jpeg(7, xmp=xmp(in_languages("title", x_default="Within"), xmp_Rating="-1")))
    for seed, name in enumerate(("IMG_1.jpg", "IMG_1(1).jpg", "IMG_1-edited.jpg"), start=40):
        (root / "takeout" / name).write_bytes(jpeg(seed))
    first = takeout("IMG_1.jpg", description="The harbour", geoData={"latitude": 59.9, "longitude": 10.7})
    (root / "takeout/IMG_1.jpg.supplemental-metadata.json").write_text(first)
    second = takeout("IMG_1.jpg", description="The station", people=[{"name": "Ada"}], favorited=True)
    (root / "takeout/IMG_1.jpg.supplemental-metadata(1).json").write_text(second)
    (root / "takeout/IMG_2.jpg.json").write_text(takeout("IMG_2.jpg", description="Not here"))


def _make_unread(root: Path) -> None:
    for name, data in (
        (".hidden.png", b""),
        (".secret/a.jpg", b""),
        ("@eaDir/a.jpg", b""),
        ("__MACOSX/._plain.jpg", b""),
        ("Thumbs.db", b""),
        ("raw.dng", b"II*\0"),
        ("plain.mov", b"\0\0\0\x14ftypqt  "),
        ("drawing.svg", b"<svg/>"),
        ("notes.pdf", b"%PDF-1.7"),
        ("drafts/draft.jpg", jpeg(50)),
    ):
        (root / name).write_bytes(data)
    (root / ".rungwiseignore").write_text("# not yet\ndrafts/\n")
    try:
        from pillow_heif import from_pillow
    except ImportError:
        (root / HEIC).write_bytes(b"\0\0\0\x18ftypheic")
    else:
        from_pillow(Image.new("RGB", (64, 64), (90, 9, 90))).save(root / HEIC)
