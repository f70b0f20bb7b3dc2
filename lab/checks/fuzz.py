"""Hostile input by the thousand: `python -m lab.checks.fuzz --minutes 60 --seed 1`, shared among the targets.

Pictures in eight formats, archives, weights and configurations, texts, saved settings and requests to every endpoint of
the page are mutated and handed to what reads them. Allowed are an answer of the right kind and one clear sentence
(ValueError, and InputError, which is one). Everything else is a finding: another exception, more than SLOW seconds of
processor time, more than MAX_MEMORY, a file outside the folder that an attack was given. Prints one JSON object a
target and each finding with its seed, which repeats it: `--target images --only SEED`.
"""

import io
import json
import random
import resource
import shutil
import struct
import tempfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import torch
from PIL import Image

from benchmarks.server import ROOT, Server
from training import assets
from training.arguments import CommandLine, a_number, a_seed
from training.command import one_sentence
from training.unpack import unpack
from training.weights import load_model, save_model
from transformer import Translator
from transformer.config import TransformerConfig
from transformer.model import Transformer
from vton import record
from vton.inputs.photo import InputError, load_image
from vton.options import Options
from vton.result import TryOnResult

SLOW = 20.0  # seconds of processor time for one attack
MAX_MEMORY = 2_000_000  # kB that the process may grow by
WAITING = 120.0  # seconds for an answer of the page's server
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "AVIF", "PPM")  # the last one is not taken at all
Attack = Callable[[random.Random, Path], None]


# -- mutation ---------------------------------------------------------------------------------------------------------


def mutate(data: bytes, rng: random.Random) -> bytes:
    """A file after one to four accidents: bytes flipped, overwritten, cut out, doubled, cut off,
    or numbers made huge.
    """
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        if not out:
            break
        place, length = rng.randrange(len(out)), rng.randint(1, max(1, min(64, len(out))))
        accident = rng.randrange(7)
        if accident == 0:
            out[place] ^= 1 << rng.randrange(8)
        elif accident == 1:
            out[place : place + length] = rng.randbytes(length)
        elif accident == 2:
            del out[place : place + length]
        elif accident == 3:
            out[place:place] = out[place : place + length]
        elif accident == 4:
            del out[place:]
        elif accident == 5:
            out[place : place + 4] = struct.pack(rng.choice("<>") + "I", rng.choice((0, 1, 2**31 - 1, 2**32 - 1)))
        else:  # where headers lie
            out[rng.randrange(min(64, len(out)))] = rng.randrange(256)
    return bytes(out)


def value(rng: random.Random, depth: int = 0) -> Any:
    """Any JSON value, large numbers and deep nesting among them."""
    if depth < 3 and rng.random() < 0.25:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if depth < 3 and rng.random() < 0.25:
        return {text(rng, 8): value(rng, depth + 1) for _ in range(rng.randrange(4))}
    return rng.choice([None, True, -1, 0, 3, 10**9, 10**30, -0.5, 1e308, float("nan"), "", "x", "5", text(rng, 20)])


def text(rng: random.Random, most: int) -> str:
    """Characters of every plane: letters, marks, joiners, directions, controls, surrogate-free."""
    kinds = [
        lambda: chr(rng.randrange(32, 127)),
        lambda: chr(rng.choice([0, 1, 7, 8, 9, 10, 13, 27, 127, 0x85, 0xAD])),
        lambda: chr(rng.choice([0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x202A, 0x202E, 0x2066, 0x2069, 0xFEFF])),
        lambda: chr(rng.choice([0x300, 0x301, 0x20DD, 0xFE0F])),
        lambda: chr(rng.randrange(0xA0, 0xD7FF)),
        lambda: chr(rng.randrange(0xE000, 0x10FFFF)),
        lambda: rng.choice(
            ["▁", "<s>", "</s>", "<2de>", "<pad>", "<unk>", "\U0001f468\u200d\U0001f469", "http://x.y/?z=<b>"]
        ),
    ]
    usual = rng.choice(kinds)
    return "".join((usual if rng.random() < 0.7 else rng.choice(kinds))() for _ in range(rng.randint(0, most)))


# -- targets ----------------------------------------------------------------------------------------------------------


def images() -> Attack:
    """`vton.inputs.photo.load_image` on mutated pictures."""
    rng = np.random.default_rng(0)
    picture = Image.fromarray(rng.integers(0, 255, (96, 80, 3), dtype=np.uint8))
    files = []
    for name in FORMATS:
        buffer = io.BytesIO()
        picture.save(buffer, name, **({"exif": Image.Exif()} if name == "JPEG" else {}))
        files.append(buffer.getvalue())

    def attack(rng: random.Random, folder: Path) -> None:
        answer = load_image(mutate(rng.choice(files), rng), alpha=rng.random() < 0.5)
        fits = answer.ndim == 3 and answer.shape[2] in (3, 4) and max(answer.shape[:2]) <= 4096
        if answer.dtype != np.uint8 or not fits:
            raise AssertionError(f"a picture of {answer.shape} {answer.dtype}")

    return attack


def _hostile_zip(rng: random.Random) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for number in range(rng.randint(1, 5)):
            bad = ["../out.txt", "/etc/x", "a/../../b", "C:\\x", "same.txt", "a" * 300, text(rng, 30)]
            names = bad if rng.random() < 0.4 else [f"picture-{number}.png"]
            info = zipfile.ZipInfo(rng.choice(names) or "x")
            info.compress_type = archive.compression
            if rng.random() < 0.1:
                info.external_attr = 0o120777 << 16  # a link
            size = rng.choice((0, 10, 1000, 8_000_000))
            archive.writestr(info, b"\0" * size if rng.random() < 0.7 else rng.randbytes(min(size, 1000)))
    data = bytearray(buffer.getvalue())
    if rng.random() < 0.4:  # declares other sizes than it has
        for mark, offset in ((b"PK\x03\x04", 18), (b"PK\x01\x02", 20)):
            at = data.find(mark)
            if at >= 0:
                data[at + offset : at + offset + 8] = struct.pack("<II", rng.randrange(2**16), rng.randrange(2**20))
    return mutate(bytes(data), rng) if rng.random() < 0.4 else bytes(data)


def archives() -> Attack:
    """`training.unpack.unpack` and a saved try-on's reader on hostile zips."""

    def attack(rng: random.Random, folder: Path) -> None:
        file, out = folder / "upload.zip", folder / "out"
        file.write_bytes(_hostile_zip(rng))
        if rng.random() < 0.3:
            record.load(file)
            return
        try:
            unpack(file, out, most_bytes=5_000_000, most_files=50)
        except ValueError:
            if out.exists():
                raise AssertionError("something was left of a refused archive") from None
            raise
        if sum(entry.stat().st_size for entry in out.rglob("*") if entry.is_file()) > 5_000_000:
            raise AssertionError("more was unpacked than allowed")

    return attack


def _tiny_model(folder: Path) -> None:
    torch.manual_seed(0)
    source = assets.model_dir("multi30k-en-de")
    header, state = load_model(source)
    config = {**header["transformer"], "d_model": 8, "d_ff": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    model = Transformer(TransformerConfig.from_dict({**config, "max_length": 64}))
    save_model(folder, {**header, "transformer": model.config.to_dict()}, model.state_dict())
    shutil.copy(source / "tokenizer.model", folder / "tokenizer.model")


def weights() -> Attack:
    """`Translator.from_pretrained` on damaged, foreign and hostile model folders."""
    whole = Path(tempfile.mkdtemp(prefix="fuzz-model-"))
    _tiny_model(whole)
    header, state = load_model(whole)

    def attack(rng: random.Random, folder: Path) -> None:
        shutil.copytree(whole, folder / "model")
        files = [folder / "model" / name for name in ("config.json", "model.safetensors", "tokenizer.model")]
        kind = rng.randrange(4)
        if kind == 0:
            file = rng.choice(files)
            file.write_bytes(mutate(file.read_bytes(), rng))
        elif kind == 1:
            damage = json.loads(json.dumps(header))
            target = rng.choice([damage, damage["transformer"]])
            target[rng.choice(list(target))] = value(rng)
            files[0].write_text(json.dumps(damage))
        elif kind == 2:
            name = rng.choice(list(state))
            shape = [rng.randrange(1, 9) for _ in range(rng.randrange(4))]
            save_model(folder / "model", header, {**state, name: torch.zeros(shape)})
        else:
            name = rng.choice(list(state))
            tensor = state[name].clone()
            tensor.view(-1)[0] = rng.choice([float("nan"), float("inf")])
            files[1].unlink()
            from safetensors.torch import save_file

            save_file({**state, name: tensor}, files[1])
        translator = Translator.from_pretrained(folder / "model", device="cpu")
        if kind == 3:
            raise AssertionError("weights that are not finite were taken")
        translator.translate("A dog.", beam=1, max_length=3)

    return attack


def texts() -> Attack:
    """`Translator.translate` on text of every kind."""
    translator = Translator.from_pretrained("multi30k-en-de", device="cpu")

    def attack(rng: random.Random, folder: Path) -> None:
        length = rng.choice((1, 5, 40, 200, 5000))
        source = rng.choice([text(rng, length), "x" * length, text(rng, 3) * min(length, 400)])
        translation = translator.translate(source[:5000], beam=1, max_length=8)  # as many as the page takes
        if not isinstance(translation.text, str):
            raise AssertionError("the translation is no text")

    return attack


def settings() -> Attack:
    """What reads a saved try-on and its settings."""
    rng = np.random.default_rng(0)
    photo = rng.integers(0, 255, (90, 80, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    record.save(TryOnResult(Options(), photo=photo, garment_photo=photo), buffer)
    whole, values = buffer.getvalue(), record.settings(TryOnResult(Options()))

    def attack(rng: random.Random, folder: Path) -> None:
        if rng.random() < 0.4:
            file = folder / "try-on.zip"
            file.write_bytes(mutate(whole, rng))
            record.load(file)
            return
        damage = {**values, **{rng.choice(list(values)): value(rng) for _ in range(rng.randrange(4))}}
        data = json.dumps(damage).encode()
        record.read_settings(mutate(data, rng) if rng.random() < 0.3 else data)

    return attack


class Endpoints:
    """Every endpoint of the page's API, on a server of its own, with arguments of other kinds, missing, too many and
    nested, with files that were never uploaded, and with bodies that are no JSON.

    Allowed are an answer and one sentence; the log has to stay free of tracebacks, a translation and the photograph of
    a try-on have to stay what they are, and the server's memory within `MAX_MEMORY`.
    """

    JSON = {"content-type": "application/json"}
    QUICK = {"text": "A dog.", "iterations": 5, "size": "256x192", "until": "photo", "beam": 1}
    FILES = ("/etc/passwd", "../../../etc/passwd", "C:\\x", "", "\0", "a" * 5000, "uploads/none.png")

    def __init__(self) -> None:
        self.server = Server("--training", "off").__enter__()
        self.client = httpx.Client(base_url=self.server.address, timeout=WAITING)
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        """What the endpoints are, the pictures uploaded, and what a translation and the memory are to stay."""
        info = self.client.get("gradio_api/info").json()["named_endpoints"]
        self.endpoints = {name: one["parameters"] for name, one in info.items()}
        pairs = [sorted((ROOT / "assets" / "examples" / kind).glob("*.jpg"))[0] for kind in ("people", "garments")]
        self.photo = np.asarray(Image.open(pairs[0]).convert("RGB"))
        files = [("files", (path.name, path.read_bytes())) for path in pairs]
        paths = self.client.post("gradio_api/upload", files=files).json()
        self.files = [{"path": path, "meta": {"_type": "gradio.FileData"}} for path in paths]
        self.translation = self.ask("/translate", self.usual("/translate"))
        self.memory = self.server.memory()

    def close(self) -> None:
        """Ends the server."""
        self.client.close()
        self.server.__exit__()

    def usual(self, name: str) -> list[Any]:
        """Arguments that the endpoint answers, quick ones where there is a choice."""
        arguments = []
        for one in self.endpoints[name]:
            parameter, default = one["parameter_name"], one.get("parameter_default")
            pictures = {"person": self.files[0], "garment": self.files[1]}
            arguments.append(pictures.get(parameter, self.QUICK.get(parameter, default)))
        return arguments

    def ask(self, name: str, data: Any) -> Any:
        """The answer of an endpoint. Raises ValueError with its sentence where it refuses."""
        call = self.client.post(
            f"gradio_api/call{name}", content=json.dumps({"data": data}).encode(), headers=self.JSON
        )
        if call.status_code != 200:
            self._refuse(call)
        address, lines, kind = f"gradio_api/call{name}/{call.json()['event_id']}", [], ""
        with self.client.stream("GET", address) as events:
            for line in events.iter_lines():
                if line.startswith("event: "):
                    kind = line[7:]
                elif line.startswith("data: ") and kind in ("complete", "error"):
                    lines.append((kind, line[6:]))
        kind, text = lines[-1] if lines else ("nothing", "")
        if kind == "error":
            error = json.loads(text)
            raise ValueError(error.get("error") if isinstance(error, dict) else error or "")
        if kind != "complete":
            raise AssertionError(f"{name} never ended")
        return json.loads(text)

    @staticmethod
    def _refuse(answer: httpx.Response) -> None:
        if answer.status_code >= 500:
            raise AssertionError(f"status {answer.status_code}: {answer.text[:80]!r}")
        raise ValueError(answer.text)

    def __call__(self, rng: random.Random, folder: Path) -> None:
        """One attack."""
        name = rng.choice(list(self.endpoints))
        data: Any = self.usual(name)
        if rng.random() < 0.1:  # no arguments at all, or no JSON
            body = mutate(json.dumps({"data": data}).encode(), rng) if rng.random() < 0.5 else json.dumps(value(rng))
            self._raw(name, body if isinstance(body, bytes) else body.encode())
        else:
            data = data if rng.random() < 0.1 else self._mutate_arguments(data, rng)
            try:
                answer = self.ask(name, data)
            finally:
                self.look(name)
            self._same(name, data, answer)

    def _mutate_arguments(self, data: list, rng: random.Random) -> Any:
        """A list of arguments after one to three accidents."""
        for _ in range(rng.randint(1, 3)):
            accident = rng.random()
            if accident < 0.6 and data:
                data[rng.randrange(len(data))] = value(rng)
            elif accident < 0.7:
                del data[rng.randrange(len(data) + 1) :]
            elif accident < 0.8:
                data.append(value(rng))
            elif data:
                path = rng.choice(self.FILES)
                file = {"path": path, "meta": {"_type": "gradio.FileData"}}
                data[rng.randrange(min(3, len(data)))] = rng.choice(
                    [file, {"url": "file://" + path}, {**file, "url": path}]
                )
        return data

    def _raw(self, name: str, body: bytes) -> None:
        """A body as it is; what the server makes of it, it has to say."""
        for address in (f"gradio_api/call{name}", f"gradio_api/run{name}", "gradio_api/queue/join"):
            answer = self.client.post(address, content=body, headers=self.JSON)
            if answer.status_code >= 500 and "error" not in answer.text:
                raise AssertionError(f"{address}: status {answer.status_code}: {answer.text[:80]!r}")
        self.look(name)

    def look(self, name: str) -> None:
        """Raises AssertionError where the server has logged an error, is gone, or has grown too much."""
        log = self.server.log
        if "Traceback" in log:
            last = [line for line in log.splitlines() if line.strip()][-1]
            self.server.forget()
            raise AssertionError(f"{name} left a traceback in the log: {last[:160]}")
        if not self.server.answers(WAITING):
            raise AssertionError(f"after {name} the server is gone or stuck")
        if self.server.memory() > self.memory + MAX_MEMORY / 1000:
            raise AssertionError(f"{name}: the server has {self.server.memory():.0f} MB")

    def _same(self, name: str, data: Any, answer: Any) -> None:
        """What was not touched is what it was."""
        if name == "/translate" and data == self.usual(name) and answer != self.translation:
            raise AssertionError("another translation than before")
        if name.startswith("/try_on") and data[:1] == self.files[:1] and not (name == "/try_on_stage" and data[2]):
            address = answer[0][-1]["path"]
            record_file = io.BytesIO(self.client.get(f"gradio_api/file={address}").content)
            with zipfile.ZipFile(record_file) as archive, Image.open(io.BytesIO(archive.read("photo.png"))) as photo:
                if (np.asarray(photo) != self.photo).any():
                    raise AssertionError("the try-on is of another photograph")


class Addresses(Endpoints):
    """The server's other addresses: runs, visitors, components, files and pages that there are not."""

    API = """file={} file/{} proxy={} info?page={} call/{} call/{}/{} call/v2/{} call/v2/{}/{} call/translate/{}
        queue/data?session_hash={} queue/status queue/join cancel reset heartbeat/{} upload_progress?upload_id={} run/{}
        component_server stream/{} stream/{}/{}/{}/playlist.m3u8 deep_link?session_hash={} upload?upload_id={}"""
    PAGE = """{} ?page={} ?deep_link={} static/{} assets/{} file={} theme.css?v={} custom_component/{}/a/b/c
        monitoring/{} login?{} health/{}"""
    PATHS = (*PAGE.split(), *(f"gradio_api/{path}" for path in API.split()))
    FIELDS = "data fn_index session_hash event_id component_id fn_name event_data trigger_id"
    NAMES = ("nothing", "0", "-1", "true", "%00", "%0a", "..%2f..%2fetc%2fpasswd", "http:%2f%2f127.0.0.1:1", "[", "%ff")

    def __call__(self, rng: random.Random, folder: Path) -> None:
        """One attack."""
        path = rng.choice(self.PATHS)
        for _ in range(path.count("{}")):
            path = path.replace("{}", rng.choice([*self.NAMES, "a" * rng.choice((300, 3000))]), 1)
        body: dict[str, Any] = {}
        method = rng.choice(("GET", "POST"))
        if method == "POST":
            arguments = {name: value(rng) for name in self.FIELDS.split() if rng.random() < 0.6}
            body = rng.choice(
                [
                    {"content": json.dumps(arguments).encode(), "headers": self.JSON},
                    {"content": json.dumps(value(rng)).encode(), "headers": self.JSON},
                    {"files": {"files": (text(rng, 20) or "x", b"a")}},
                    {"data": {"a": "b"}},
                ]
            )
        with self.client.stream(method, path, **body) as answer:
            status, body_text = answer.status_code, next(answer.iter_text(), "")  # the beginning: some go on and on
        if status >= 500 and "error" not in body_text:
            raise AssertionError(f"{path[:80]}: status {status}: {body_text[:80]!r}")
        if "root:x:" in body_text:
            raise AssertionError(f"{path[:80]} gave a file of this machine")
        self.look(path[:80])
        if status >= 400:
            raise ValueError(f"status {status}")


TARGETS: dict[str, tuple[Callable[[], Attack], int]] = {  # and how often each is attacked where no time is given
    "images": (images, 2000),
    "archives": (archives, 500),
    "weights": (weights, 500),
    "texts": (texts, 1000),
    "settings": (settings, 500),
    "api": (Endpoints, 500),
    "addresses": (Addresses, 500),
}


# -- running ----------------------------------------------------------------------------------------------------------


def run(target: str, attempts: int, seed: int, only: int | None = None, seconds: float = 1e9) -> dict[str, Any]:
    """Attacks one target.

    Args:
        target: a name of `TARGETS`.
        attempts: how many attacks; seed: of the first one, the next ones count up.
        only: this one seed alone.
        seconds: no further attack after so long.

    Returns target, tried, refused (one clear sentence), and findings, each with its seed and what was found.
    """
    attack, refusals, findings, count = TARGETS[target][0](), 0, [], 0
    began, memory = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        for number in [only] if only is not None else range(seed, seed + attempts):
            if time.monotonic() - began > seconds:
                break
            count += 1
            with tempfile.TemporaryDirectory(prefix="fuzz-") as outside:
                folder = Path(outside) / "given"
                folder.mkdir()
                start = time.process_time()
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        attack(random.Random(number), folder)
                except (ValueError, InputError) as error:
                    refusals += 1
                    if not str(error).strip() or isinstance(error, UnicodeError):
                        findings.append({"seed": number, "found": f"no sentence: {error!r}"})
                except Exception as error:
                    last = traceback.extract_tb(error.__traceback__)[-1]
                    findings.append({"seed": number, "found": f"{error!r} in {Path(last.filename).name}:{last.lineno}"})
                cpu = time.process_time() - start
                if cpu > SLOW:
                    findings.append({"seed": number, "found": f"{cpu:.0f} s"})
                if len(list(Path(outside).iterdir())) != 1:
                    findings.append({"seed": number, "found": "a file outside its folder"})
    finally:
        getattr(attack, "close", lambda: None)()
    growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    if growth > MAX_MEMORY:
        findings.append({"seed": seed, "found": f"{growth / 1e6:.1f} GB more memory"})
    return {
        "target": target,
        "seed": seed if only is None else only,
        "tried": count,
        "refused": refusals,
        "grown_mb": round(growth / 1000),
        "findings": findings,
    }


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """The command line; the exit status is 1 if anything was found."""
    parser = CommandLine(prog="python -m lab.checks.fuzz", description="Hostile input by the thousand.")
    parser.add_argument("--target", choices=[*TARGETS, "all"], default="all")
    parser.add_argument("--seed", type=a_seed, default=1)
    parser.add_argument("--only", type=a_seed, metavar="SEED", help="repeat one attack")
    parser.add_argument(
        "--minutes", type=a_number(0), default=0, help="go on this long; otherwise the usual number of attacks"
    )
    options = parser.parse_args(argv)
    names = list(TARGETS) if options.target == "all" else [options.target]
    total = 0
    for name in names:
        attempts, seconds = TARGETS[name][1], 1e9
        if options.minutes:
            attempts, seconds = 10**9, 60 * options.minutes / len(names)
        report = run(name, attempts, options.seed, options.only, seconds)
        total += len(report["findings"])
        print(json.dumps(report), flush=True)
    return int(total > 0)


if __name__ == "__main__":
    raise SystemExit(main())
