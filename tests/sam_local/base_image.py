"""The image that SAM runs a `provided.al2023` function in."""

from __future__ import annotations

import io
import platform
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

import certifi
import docker
import requests
from docker.errors import DockerException, ImageNotFound

ARCHITECTURE = "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64"
REPOSITORY = "public.ecr.aws/lambda/provided"
TAG = f"al2023-{ARCHITECTURE}"

# The real image's C library. The stand-in has this machine's, which may be newer.
GLIBC = (2, 34)
# What SAM's own layer on top of the image needs to put its emulator of Lambda in place.
PROGRAMS = ("sh", "mv", "chmod")
# What the real image has that a Rust program asks for; one that asks for more must fail here as it would there.
LIBRARIES = re.compile(r"/(ld-linux[^/]*|lib(c|m|gcc_s|dl|rt|pthread))\.so\.\d+$")
# Where Amazon Linux keeps the authorities that the AWS SDK trusts; it won't start without any.
AUTHORITIES = "etc/pki/tls/certs/ca-bundle.crt"
DIRECTORIES = {"opt": 0o755, "tmp": 0o1777, "var/runtime": 0o755, "var/task": 0o755}


def is_had(client: docker.DockerClient) -> bool:
    """Whether the engine has the real image, or can fetch it."""
    try:
        client.images.get(f"{REPOSITORY}:{TAG}")
        return True
    except ImageNotFound:
        pass
    try:
        client.images.pull(REPOSITORY, tag=TAG)
        return True
    except (DockerException, requests.RequestException):
        return False


def stand_in(client: docker.DockerClient, bootstrap: Path) -> None:
    """Gives an engine of our own the least that can pass for it, made of this machine's files: no registry is asked."""
    client.api.import_image_from_data(_tar(bootstrap), repository=REPOSITORY, tag=TAG)


def glibc_wanted(program: Path) -> tuple[int, ...]:
    """The newest GNU C library that the program asks for: (2, 34), or () if none."""
    versions = re.findall(rb"\0GLIBC_(\d[\d.]*)(?=\0)", program.read_bytes())
    return max((tuple(int(part) for part in version.split(b".")) for version in versions), default=())


def _tar(bootstrap: Path) -> bytes:
    programs = [found for name in PROGRAMS if (found := shutil.which(name))]
    libraries = _libraries(programs) | {path for path in _libraries([bootstrap]) if LIBRARIES.search(path)}
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name, mode in DIRECTORIES.items():
            directory = tarfile.TarInfo(name)
            directory.type, directory.mode = tarfile.DIRTYPE, mode
            tar.addfile(directory)
        for program in programs:
            tar.add(Path(program).resolve(), f"bin/{Path(program).name}")
        for library in sorted(libraries):
            tar.add(Path(library).resolve(), library)
        tar.add(certifi.where(), AUTHORITIES)
    return content.getvalue()


def _libraries(programs: Iterable[str | Path]) -> set[str]:
    """The shared libraries that these programs load; none for a static one, at which `ldd` fails."""
    listed = subprocess.run(["ldd", *programs], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return set(re.findall(r"(/\S+) \(0x", listed.stdout))
