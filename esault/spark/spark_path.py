"""A folder or a file of any file system that Spark knows, by its address: HDFS, S3, Azure, what a hosted Spark has.

It is reached through Spark's own Java, on the driver, with Spark's settings and credentials. What is missing comes as FileNotFoundError,
what else the file system says as OSError.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

from esault.state.files import private, sync_file, write_whole

__all__ = ["SparkPath", "SparkPlace", "copy_tree", "put", "put_absent", "remove_tree", "write_blocks"]

#: stores in which a file is there when it is closed, whole; to rename one would be to copy it
_OBJECT_STORES = {"s3a", "s3n", "s3", "gs", "oss", "cosn", "obs"}
#: has such a store refuse a file that is there already; others do without
_CONDITIONAL = "fs.option.create.conditional.overwrite"


class SparkPath:
    """An address with the methods of a `pathlib.Path` that the engine needs. `spark`: a session of this process."""

    def __init__(self, spark: Any, url: str) -> None:
        self._spark = spark
        self._scheme, _, place = url.partition("://")
        self._path = PurePosixPath(place)

    def __str__(self) -> str:
        return f"{self._scheme}://{self._path}"

    def __repr__(self) -> str:
        return f"SparkPath({str(self)!r})"

    def __truediv__(self, name: str) -> SparkPath:
        return SparkPath(self._spark, f"{self._scheme}://{self._path / name}")

    @property
    def name(self) -> str:
        """Return its last part."""
        return self._path.name

    @property
    def stem(self) -> str:
        """Return its last part without the ending."""
        return self._path.stem

    @property
    def parent(self) -> SparkPath:
        """Return the folder that it is in."""
        return SparkPath(self._spark, f"{self._scheme}://{self._path.parent}")

    def resolve(self) -> SparkPath:
        """Return the same: there is no other."""
        return self

    def as_uri(self) -> str:
        """Return it as Spark takes it."""
        return str(self)

    @property
    def _java(self) -> Any:
        return self._spark._jvm.org.apache.hadoop.fs.Path(str(self))

    @property
    def _system(self) -> Any:
        return self._java.getFileSystem(self._settings)

    @property
    def _settings(self) -> Any:
        return self._spark._jsc.hadoopConfiguration()

    def exists(self) -> bool:
        """Return whether there is such a file or folder."""
        return bool(_asked(lambda: self._system.exists(self._java)))

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Make the folder, and those above it, where they are not there."""
        _asked(lambda: self._system.mkdirs(self._java))

    def glob(self, pattern: str) -> Iterator[SparkPath]:
        """Yield what is in this folder and has such a name; the pattern has no slash."""
        try:
            found = _asked(lambda: self._system.listStatus(self._java))
        except FileNotFoundError:
            return
        names = sorted(str(each.getPath().getName()) for each in found)
        yield from (self / name for name in names if fnmatchcase(name, pattern))

    def read_bytes(self) -> bytes:
        """Return the whole file."""

        def read() -> bytes:
            opened = self._system.open(self._java)
            try:
                return bytes(self._spark._jvm.org.apache.hadoop.io.IOUtils.readFullyToByteArray(opened))
            finally:
                opened.close()

        found: bytes = _asked(read)
        return found

    def read_text(self) -> str:
        """Return the whole file as text."""
        return self.read_bytes().decode()

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the file."""
        if not _asked(lambda: self._system.delete(self._java, False)) and not missing_ok:
            raise FileNotFoundError(str(self))

    def remove_all(self) -> None:
        """Remove the folder with all in it, if it is there."""
        _asked(lambda: self._system.delete(self._java, True))

    def copy_to(self, target: SparkPath) -> None:
        """Copy the folder."""
        copy = self._spark._jvm.org.apache.hadoop.fs.FileUtil.copy
        _asked(lambda: copy(self._system, self._java, target._system, target._java, False, self._settings))

    def upload(self, file: Path) -> None:
        """Put a file of this machine there, in place of what is."""
        source = self._spark._jvm.org.apache.hadoop.fs.Path(file.as_uri())
        _asked(lambda: self._system.copyFromLocalFile(False, True, source, self._java))

    def write_bytes(self, data: bytes) -> None:
        """Put a file there in place of what is, durable and in one step."""
        if self._scheme in _OBJECT_STORES:
            _asked(lambda: _written(self._system.create(self._java, True), data))
        else:
            self._renamed(data, "OVERWRITE")

    def write_absent(self, data: bytes) -> bool:
        """Put a file there, durable and in one step, if none is; return whether it is this one."""
        try:
            if self._scheme in _OBJECT_STORES:
                builder = self._system.createFile(self._java).overwrite(False).recursive()
                _asked(lambda: _written(builder.opt(_CONDITIONAL, "true").build(), data))
            else:
                self._renamed(data, "NONE")
        except FileExistsError:
            return False
        return True

    def _renamed(self, data: bytes, how: str) -> None:
        part = self.parent / f".{self.name}.{secrets.token_hex(6)}.part"
        fs = self._spark._jvm.org.apache.hadoop.fs

        def rename() -> None:
            options = self._spark._sc._gateway.new_array(fs.Options.Rename, 1)
            options[0] = getattr(fs.Options.Rename, how)
            fs.FileContext.getFileContext(self._java.toUri(), self._settings).rename(part._java, self._java, options)

        try:
            _asked(lambda: _written(self._system.create(part._java, True), data))
            _asked(rename)
        except BaseException:
            with contextlib.suppress(Exception):
                part.unlink(missing_ok=True)
            raise


SparkPlace = Path | SparkPath


def _written(out: Any, data: bytes) -> None:
    try:
        out.write(bytearray(data))
    except BaseException:
        out.close()
        raise
    out.close()


def _asked(call: Callable[[], Any]) -> Any:
    """Return what Java returns; what it throws as Python's own errors."""
    from py4j.protocol import Py4JJavaError

    try:
        return call()
    except Py4JJavaError as error:
        java = error.java_exception
        kind, text = str(java.getClass().getSimpleName()), str(java.getMessage())
        for name, known in (("FileNotFoundException", FileNotFoundError), ("AlreadyExistsException", FileExistsError)):
            if kind.endswith(name):
                raise known(text) from None
        if "412" in text and kind.startswith(
            "RemoteFileChanged"
        ):  # a store's word for a file that another was first to write
            raise FileExistsError(text) from None
        raise OSError(f"{kind}: {next(iter(text.splitlines()), '')}") from None


def put(place: SparkPlace, data: bytes) -> None:
    """Put a file in its place, durable, in one step. Raises OSError."""
    if isinstance(place, SparkPath):
        place.write_bytes(data)
    else:
        write_whole(place, data)


def put_absent(place: SparkPlace, data: bytes) -> bool:
    """The same where no file is there; return whether it is this one. Of a folder of this machine one run holds the lock. Raises OSError."""
    if isinstance(place, SparkPath):
        return place.write_absent(data)
    write_whole(place, data)
    return True


def remove_tree(place: SparkPlace, ignore_errors: bool = False) -> None:
    """Remove a folder with all in it, if it is there. Raises OSError."""
    with contextlib.suppress(OSError) if ignore_errors else contextlib.nullcontext():
        if isinstance(place, SparkPath):
            place.remove_all()
        elif place.exists():
            shutil.rmtree(place)


def copy_tree(source: SparkPlace, target: SparkPlace) -> None:
    """Copy a folder, if it is there, to one of the same file system. Raises OSError."""
    if not source.exists():
        return
    if isinstance(source, SparkPath):
        assert isinstance(target, SparkPath)
        source.copy_to(target)
    else:
        shutil.copytree(source, Path(str(target)))


def write_blocks(place: SparkPlace, blocks: Iterable[bytes]) -> None:
    """Write a file piece by piece, for this user alone, durable. Raises OSError."""
    if isinstance(place, Path):
        with open(place, "wb", opener=private) as out:
            out.writelines(blocks)
        sync_file(place)
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder).resolve() / "file"
        write_blocks(file, blocks)
        place.upload(file)
