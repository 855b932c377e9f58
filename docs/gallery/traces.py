"""Which traces the gallery is about, where they are published, and how they come into a folder.

A trace is known by the hash of its JSON, so that a figure of the gallery is never about another file. What is fetched
is held to that hash, too, and kept as NAME.json.gz.
"""

import gzip
import hashlib
import io
import tarfile
import tomllib
import urllib.request
import zlib
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path

from msgspec import Struct, convert

from tracekit.base.atomic import reason, replacing

CASES = Path(__file__).with_name("cases.toml")
TIMEOUT_S = 20.0  # for each wait on the network
_MOST_PACKED = 64 << 20  # bytes that are fetched at most
_GZIP = b"\x1f\x8b"


class GalleryError(Exception):
    """A trace is absent, cannot be fetched, or is another one. `str()` of it is the sentence to show."""


class Published(Struct, frozen=True):
    """A trace: where it is published, under which licence (empty: none is stated), and the bytes and the SHA-256 of its
    JSON."""

    address: str
    licence: str
    bytes: int
    sha256: str

    @property
    def file(self) -> str:
        """The name of what is published."""
        return self.address.rpartition("/")[2]


class Gallery(Struct, frozen=True):
    """The names of the traces of every case, by the name of the case, and the traces by name."""

    cases: dict[str, list[str]]
    traces: dict[str, Published]


def gallery() -> Gallery:
    """What `cases.toml` says."""
    return convert(tomllib.loads(CASES.read_text(encoding="utf-8")), Gallery)


def stored(name: str, trace: Published, folder: Path) -> Path:
    """The file of a trace in a folder. Raises GalleryError if it is absent, or is another trace."""
    path = folder / f"{name}.json.gz"
    try:
        with gzip.open(path) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise GalleryError(f"{path} does not exist. `make gallery FETCH=1` fetches it from {trace.address}.") from None
    except (OSError, EOFError, zlib.error) as error:
        raise GalleryError(f"{path} cannot be read ({error}). Delete it and run `make gallery FETCH=1`.") from None
    if digest != trace.sha256:
        raise GalleryError(f"{path} is not the trace that the gallery is about: the hash of its JSON is {digest}.")
    return path


def fetch(name: str, trace: Published, folder: Path) -> Path:
    """Fetch a trace into a folder. Raises GalleryError if that fails, or if another file is published there by now."""
    try:
        with urllib.request.urlopen(trace.address, timeout=TIMEOUT_S) as answer:
            packed = answer.read(_MOST_PACKED)
    except (OSError, HTTPException) as error:
        raise GalleryError(
            f"{trace.address} cannot be fetched: {error}. Try again, or fetch it by other means."
        ) from None
    for content in _unpacked(packed, trace.bytes):
        if hashlib.sha256(content).hexdigest() == trace.sha256:
            path = folder / f"{name}.json.gz"
            try:
                folder.mkdir(parents=True, exist_ok=True)
                with replacing(path) as unfinished:
                    unfinished.write_bytes(gzip.compress(content, mtime=0))
            except OSError as error:
                raise GalleryError(
                    f"{path} cannot be written ({reason(error)}). Name another folder with TRACES=DIR."
                ) from None
            return path
    raise GalleryError(
        f"{trace.address} holds another file than the gallery is about: none in it has the hash of {name}."
    )


def _unpacked(packed: bytes, size: int) -> Iterator[bytes]:
    """What a download may hold: itself, or what is compressed or archived in it. What is larger than the trace is not
    unpacked whole, so that nothing small grows without bound."""
    yield packed
    if not packed.startswith(_GZIP):
        return
    try:
        with gzip.open(io.BytesIO(packed)) as file:
            yield file.read(size + 1)  # a longer file is another one
        with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
            for member in archive:
                if member.size == size and (file := archive.extractfile(member)) is not None:
                    yield file.read(size)
    except (OSError, EOFError, zlib.error, tarfile.TarError):
        return
