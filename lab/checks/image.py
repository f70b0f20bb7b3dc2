"""The container's image where there is no Docker: `python -m lab.checks.image --options "--index-url ..."`.

Follows the Dockerfile in a folder that becomes a root of its own (chroot): Debian's smallest system with a Python of
this machine in place of the base image, then each step as it is written, as the user that it names. Starts the command
there, asks the health check, and has the page translate a sentence and try a garment on. --options is the recipe's
build argument and goes to pip. Prints one JSON object: torch of the image and its CUDA, the image's size, seconds, what
was answered and `failed`; the exit status is 1 where something did. Linux only, as root, with debootstrap and a
network; 12 GB of disk with CUDA, all of it free again at the end.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from gradio_client import Client, handle_file

from benchmarks.server import ROOT
from training.arguments import CommandLine, a_file_to_write, an_existing_folder
from training.command import one_sentence

SUITE = "trixie"  # Debian's release in Python's own slim images
# What Python's own images have besides Debian's smallest system.
BASE = ("ca-certificates", "netbase", "tzdata", "libffi8", "libsqlite3-0")
PATH = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
STARTING = 1200  # seconds until the page counts as not starting; its libraries are read for the first time
TORCH = "import json, torch; print(json.dumps([torch.__version__, torch.version.cuda]))"


# -- the recipe -------------------------------------------------------------------------------------------------------


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile as (instruction, arguments) pairs."""
    text = re.sub(r"\\\n\s*", " ", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(name, arguments) for name, arguments in (line.split(None, 1) for line in lines)]


def of_kind(kind: str) -> list[str]:
    """The arguments of all instructions of one name."""
    return [arguments for name, arguments in instructions() if name == kind]


def leaves_out(path: str | Path) -> bool:
    """Whether .dockerignore keeps a file (its path below the checkout) out of the image."""
    parts = Path(path).parts
    for pattern in (ROOT / ".dockerignore").read_text().split():
        anywhere, name = pattern.startswith("**/"), pattern.removeprefix("**/")
        starts = range(len(parts)) if anywhere else [0]
        if any(
            fnmatch("/".join(parts[start:end]), name) for start in starts for end in range(start + 1, len(parts) + 1)
        ):
            return True
    return False


def git_files() -> list[str]:
    """The files of the checkout, as paths below it."""
    listing = subprocess.run(
        ["git", "ls-files", "-zco", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    ).stdout.decode()
    return [name for name in listing.split("\0") if name and (ROOT / name).is_file()]


def lay_out(names: list[str], folder: Path) -> None:
    """Puts files of the checkout into a folder."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)


# -- the image --------------------------------------------------------------------------------------------------------


class Image:
    """The root of an image in a folder, and where the recipe stands in it: user, working folder, variables."""

    def __init__(self, folder: Path, python: Path, options: str) -> None:
        self.root, self.python, self.options = folder, python, options
        self.user, self.place, self.log = "root", "/", folder.parent / "log.txt"
        # pip's own variables of this machine hold: where its registry is, and whose certificates count.
        self.variables = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        self.variables |= {"PATH": PATH, "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}

    def words(self, command: list[str]) -> list[str]:
        """A command of this machine that runs one of the image's; the mounts it makes end with it."""
        root = shlex.quote(str(self.root))
        mounts = "".join(f"mount --rbind /{name} {root}/{name} && " for name in ("proc", "dev"))
        inside = f"cd {self.place} && exec {shlex.join(command)}"
        return [
            "unshare",
            "-m",
            "sh",
            "-c",
            f"{mounts}exec chroot --userspec={self.user} {root} sh -c {shlex.quote(inside)}",
        ]

    @property
    def environment(self) -> dict[str, str]:
        """The variables of its commands."""
        return {**self.variables, "HOME": "/root" if self.user == "root" else f"/home/{self.user}"}

    def run(self, *command: str) -> str:
        """What a command of the image prints. Raises ValueError with its last line where it fails."""
        process = subprocess.run(
            self.words(list(command)), env=self.environment, capture_output=True, text=True, check=False
        )
        with self.log.open("a") as log:
            log.write(f"$ {shlex.join(command)}\n{process.stdout}{process.stderr}\n")
        if process.returncode != 0:
            last = (process.stderr.strip() or process.stdout.strip() or "it says nothing").splitlines()[-1]
            raise ValueError(f"'{shlex.join(command)[:80]}' ended with status {process.returncode}: {last}")
        return process.stdout

    def begin(self) -> None:
        """Debian and Python, as the base image has them."""
        words = ["debootstrap", "--variant=minbase", f"--include={','.join(BASE)}", SUITE, str(self.root)]
        with self.log.open("a") as log:
            process = subprocess.run(words, stdout=log, stderr=log, env={**os.environ, "PATH": PATH}, check=False)
            if process.returncode != 0:
                raise ValueError(f"debootstrap failed:\n{self.log.read_text()[-2000:]}")
        for name in ("bin", "include", "lib"):
            leave = shutil.ignore_patterns("site-packages", "__pycache__", "test", "*.a")
            shutil.copytree(
                self.python / name, self.root / "usr/local" / name, symlinks=True, ignore=leave, dirs_exist_ok=True
            )
        for file in ("/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt"):
            shutil.copyfile(file, self.root / file[1:])
        self.run("ldconfig")
        self.run("python3", "-m", "ensurepip")
        for name in ("python", "pip"):
            link = self.root / "usr/local/bin" / name
            link.unlink(missing_ok=True)
            link.symlink_to(f"{name}3")

    def follow(self) -> None:
        """Every step of the recipe but the last ones, which say how the image is started."""
        for name, arguments in instructions():
            if name == "ARG":
                self.variables[arguments.partition("=")[0]] = self.options
            elif name == "RUN":
                self.run("sh", "-c", arguments)
            elif name == "WORKDIR":
                self.place = arguments
                (self.root / arguments[1:]).mkdir(parents=True, exist_ok=True)
            elif name == "COPY":
                files = (
                    [one for one in git_files() if not leaves_out(one)]
                    if arguments == ". ."
                    else [arguments.split()[0]]
                )
                lay_out(files, self.root / self.place[1:])
            elif name == "USER":
                self.user = arguments
            elif name == "ENV":
                self.variables |= dict(pair.split("=", 1) for pair in shlex.split(arguments))

    @contextlib.contextmanager
    def running_page(self, port: int) -> Iterator[subprocess.Popen]:
        """The image's command, on this port instead of its own, once the image calls itself healthy."""
        (command,) = of_kind("CMD")
        with self.log.open("a") as log:
            words = self.words([*json.loads(command), "--port", str(port)])
            page = subprocess.Popen(words, env=self.environment, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + STARTING
            while not self.healthy(port):
                if page.poll() is not None:
                    raise ValueError(f"the page ended with status {page.returncode}; --log says why")
                if time.monotonic() > deadline:
                    raise ValueError(f"the page did not answer within {STARTING} s")
            yield page
        finally:
            page.terminate()
            page.wait(60)

    def healthy(self, port: int) -> bool:
        """What the image's health check says."""
        (own,), (check,) = of_kind("EXPOSE"), of_kind("HEALTHCHECK")
        words = self.words(shlex.split(check.split("CMD", 1)[1].replace(own, str(port))))
        return subprocess.run(words, env=self.environment, capture_output=True, check=False).returncode == 0


def try_out(image: Image) -> dict[str, Any]:
    """What the page of an image answers, and what does not hold, a sentence each."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    app = image.root / image.place[1:]
    before = {path for path in app.rglob("*") if (app / "runs") not in path.parents}
    with image.running_page(port) as page, tempfile.TemporaryDirectory() as down:
        client = Client(f"http://127.0.0.1:{port}/", verbose=False, download_files=down)
        text = client.predict("Two dogs play.", api_name="/translate")["text"]
        examples = ROOT / "assets" / "examples"
        pictures = {
            name: handle_file(str(sorted((examples / kind).glob("*.jpg"))[0]))
            for name, kind in (("person", "people"), ("garment", "garments"))
        }
        files, _ = client.predict(**pictures, size="256x192", api_name="/try_on")
        with zipfile.ZipFile(files[-1]) as archive:
            has_picture = "result.png" in archive.namelist()
        status = Path(f"/proc/{page.pid}/status").read_text()
    after = {path for path in app.rglob("*") if (app / "runs") not in path.parents}
    failed = {
        "no translation": "Hunde" not in text,
        "no try-on": not has_picture,
        "the page runs as root": re.search(r"^Uid:\s+0\b", status, re.MULTILINE) is not None,
        f"files beside runs and uploads: {sorted(map(str, after - before))[:3]}": after != before,
        "a traceback in the log": "Traceback" in image.log.read_text(),
    }
    return {"translation": text, "try_on": has_picture, "failed": [what for what, holds in failed.items() if holds]}


def measure(python: Path, options: str = "", keep: Path | None = None) -> dict[str, Any]:
    """Builds the image and tries it out.

    Args:
        python: prefix of the Python that becomes the image's.
        options: the recipe's build argument.
        keep: a folder that the log is written to.

    Returns torch, cuda (None without), mb of the image, seconds of the build, and what `try_out` returns. Raises
    ValueError where a step fails.
    """
    with tempfile.TemporaryDirectory(prefix="atelier-image-") as folder:
        image = Image(Path(folder) / "root", python, options)
        image.root.mkdir()
        start = time.monotonic()
        try:
            image.begin()
            image.follow()
            seconds = time.monotonic() - start
            torch, cuda = json.loads(image.run("python", "-c", TORCH))
            size = subprocess.run(["du", "-sxm", image.root], capture_output=True, text=True, check=True).stdout
            figures = {"torch": torch, "cuda": cuda, "mb": int(size.split()[0]), "seconds": round(seconds)}
            return figures | try_out(image)
        finally:
            if keep is not None:
                shutil.copyfile(image.log, keep)


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = CommandLine(prog="python -m lab.checks.image", description="The container's image, built in a chroot.")
    parser.add_argument("--python", type=an_existing_folder, help="prefix of a Python; else that of the recipe")
    parser.add_argument("--options", default="", help="of pip: the recipe's build argument")
    parser.add_argument("--log", type=a_file_to_write(), help="a file for what the steps say")
    options = parser.parse_args(argv)
    missing = [name for name in ("debootstrap", "unshare", "chroot") if shutil.which(name, path=PATH) is None]
    if os.geteuid() != 0 or missing:
        parser.error(f"An image is built as root, with {', '.join(missing) or 'debootstrap'}.")
    (base,) = of_kind("FROM")
    release = f"python{base.split(':')[1].split('-')[0]}"
    if options.python is None and shutil.which(release) is None:
        parser.error(f"The image has {release}, which is not here: name the prefix of another with --python.")
    words = [release, "-c", "import sys; print(sys.base_prefix)"]
    python = options.python or Path(subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip())
    figures = measure(python, options.options, options.log)
    print(json.dumps(figures))
    return int(bool(figures["failed"]))


if __name__ == "__main__":
    raise SystemExit(main())
