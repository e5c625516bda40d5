"""The image that sandboxes are started from: where its Dockerfile lies, and how it is built."""

import io
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import docker
import docker.errors

IMAGE = "secure-executor-base"
IMAGE_LABEL = "gridx.image"


class BuildFailed(Exception):
    """The image could not be built; the message is the end of the builder's output."""


@dataclass(frozen=True)
class BuildOptions:
    """What a build may be given beside the Dockerfile. `wheels` is a folder of wheel files, `ca` a PEM bundle for pip."""

    base: str | None = None
    wheels: Path | None = None
    ca: Path | None = None
    pip_arguments: str = ""
    build_arguments: dict[str, str] = field(default_factory=dict[str, str])


def find_dockerfile() -> Path:
    """Dockerfile.base: inside an installed package, or at the root of the repository of an editable one."""
    package = Path(__file__).resolve().parent
    for path in (package / "Dockerfile.base", package.parents[1] / "Dockerfile.base"):
        if path.is_file():
            return path
    raise FileNotFoundError("Dockerfile.base is neither in the gridx_worker package nor at the root of its repository")


def build_image(client: docker.DockerClient, options: BuildOptions, *, tag: str = IMAGE) -> Iterator[str]:
    """Builds the image with Docker's classic builder, yields its output line by line, and tags it `tag`. Raises BuildFailed."""
    arguments = dict(options.build_arguments)
    if options.base:
        arguments["BASE"] = options.base
    with _context(options) as context:
        answers = client.api.build(
            fileobj=context,
            custom_context=True,
            dockerfile="Dockerfile.base",
            tag=tag,
            rm=True,
            forcerm=True,
            decode=True,
            buildargs=arguments,
        )
        tail: list[str] = []
        for answer in answers:
            entry: dict[str, Any] = answer
            line = str(entry.get("stream") or entry.get("status") or "").rstrip()
            if line:
                tail = [*tail[-15:], line]
                yield line
            if "error" in entry:
                raise BuildFailed("\n".join([*tail, str(entry["error"])]))
    # Earlier builds and this one's first stage: more than a gigabyte each. What a running sandbox uses stays.
    client.images.prune(filters={"dangling": True, "label": IMAGE_LABEL})


def image_id(client: docker.DockerClient, name: str = IMAGE) -> str | None:
    """The id (sha256:...) of the local image `name`, None when it is not here."""
    try:
        return str(client.images.get(name).id)
    except docker.errors.ImageNotFound:
        return None


def _context(options: BuildOptions) -> IO[bytes]:
    """A tar archive of the build context, on disk: wheels are large."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.add(find_dockerfile(), "Dockerfile.base")
        if options.wheels:
            for wheel in sorted(options.wheels.glob("*.whl")):
                archive.add(wheel.resolve(), f"wheels/{wheel.name}")
        if options.ca:
            archive.add(options.ca.resolve(), "ca.pem")
        if options.pip_arguments:
            content = options.pip_arguments.encode()
            entry = tarfile.TarInfo("pip-args.txt")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    file.seek(0)
    return file
