"""The container's recipe and the Space's card, followed step by step where neither Docker nor a Space is at hand."""

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
from importlib import metadata
from pathlib import Path

import pytest
from gradio_client import Client
from packaging.requirements import Requirement
from packaging.version import Version

from lab.checks import image
from lab.checks.image import git_files, instructions, lay_out, leaves_out, of_kind
from training import assets

ROOT = Path(__file__).resolve().parents[1]
NOBODY = 65534


def test_the_image_has_a_user_of_its_own_its_weights_and_a_health_check():
    (base,) = of_kind("FROM")
    assert Version(base.split(":")[1].split("-")[0]) in Requirement(f"x{python_bounds()}").specifier
    made = re.search(r"useradd .*?(\w+)$", " ".join(of_kind("RUN")[:1]))
    (user,) = of_kind("USER")
    order = [name for name, _ in instructions()]
    assert made and user == made[1] != "root" and order.index("USER") > order.index("COPY")
    assert order.index("USER") < order.index("CMD")
    system = (ROOT / "packages.txt").read_text().split()
    assert set(system) <= set(of_kind("RUN")[0].split())
    assert of_kind("COPY") == ["requirements.txt .", ". ."]  # libraries first: they change less often
    # Which torch comes, for CPUs or for a CUDA, is a build argument.
    (argument,) = of_kind("ARG")
    (install,) = [run for run in of_kind("RUN") if "pip install" in run]
    assert "$" + argument.rstrip("=") in install and "-r requirements.txt" in install
    (port,), (check,), (command,) = of_kind("EXPOSE"), of_kind("HEALTHCHECK"), of_kind("CMD")
    assert f":{port}/health" in check and "--interval" in check
    assert json.loads(command)[:2] == ["python", "app.py"] and "0.0.0.0" in json.loads(command)
    for name in assets.list_models():
        for file in assets.model_dir(name).rglob("*"):
            assert not leaves_out(file.relative_to(ROOT)), file
    carried = [name for name in git_files() if not leaves_out(name)]
    assert {"app.py", "requirements.txt", "vton/data/pack.py", "ui/theme.py"} <= set(carried)
    assert not any(name.startswith(("tests/", ".git/", "runs/")) for name in carried)
    assert (
        leaves_out("vton/data/__pycache__/pack.pyc")
        and leaves_out(".git/config")
        and leaves_out("runs/one/recipe.json")
    )


def test_the_recipe_is_followed_step_by_step(tmp_path, monkeypatch):
    monkeypatch.setattr(
        image, "git_files", lambda: ["app.py", "requirements.txt", "tests/conftest.py", ".dockerignore"]
    )
    steps = []

    class Watched(image.Image):
        def run(self, *command):
            steps.append((self.user, self.place, command, self.environment))
            return super().run(*command)

        def words(self, command):
            return ["true"]

    built = Watched(tmp_path / "root", tmp_path, "--index-url x")
    built.follow()
    assert [command for _, _, command, _ in steps] == [("sh", "-c", arguments) for arguments in of_kind("RUN")]
    assert {user for user, *_ in steps} == {"root"} and built.user == of_kind("USER")[0]
    (_, place, _, variables) = next(step for step in steps if "pip install" in step[2][2])
    assert place == built.place == of_kind("WORKDIR")[0] and variables["PIP_OPTIONS"] == "--index-url x"
    assert built.environment["HOME"].endswith(built.user) and "GRADIO_TEMP_DIR" in built.environment
    files = {path.name for path in (tmp_path / "root").rglob("*") if path.is_file()}
    assert files == {"app.py", "requirements.txt", ".dockerignore"}


def test_a_step_that_fails_is_told_with_its_last_words(tmp_path, monkeypatch):
    monkeypatch.setattr(image.Image, "words", lambda self, command: list(command))
    built = image.Image(tmp_path / "root", tmp_path, "")
    assert built.run("echo", "a") == "a\n"
    with pytest.raises(ValueError, match="^'sh -c .*' ended with status 3: second$"):
        built.run("sh", "-c", "echo first >&2; echo second >&2; exit 3")
    assert "$ echo a\na\n" in built.log.read_text()


def python_bounds():
    return re.search(r'requires-python = "(.+?)"', (ROOT / "pyproject.toml").read_text())[1]


def as_nobody():
    """Words before a command that make it a user without rights but to read; none where that cannot be done."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return []
    words = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    # The checkout and its Python may lie in folders of root alone, which an image has not.
    words += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    tried = subprocess.run([*words, sys.executable, "-c", "import numpy"], capture_output=True)
    return words if tried.returncode == 0 else []


@pytest.mark.slow
def test_the_image_s_command_serves_the_page_as_its_user(tmp_path, served, free_port):
    app, home = tmp_path / "app", tmp_path / "home"
    for folder in (app, home, app / "runs"):
        folder.mkdir()
    lay_out([name for name in git_files() if not leaves_out(name)], app)
    user = as_nobody()
    if user:
        os.chown(home, NOBODY, NOBODY)
        os.chown(app / "runs", NOBODY, NOBODY)
    (port,), (check,), (command,), (variables,) = (of_kind(kind) for kind in ("EXPOSE", "HEALTHCHECK", "CMD", "ENV"))
    environment = dict(pair.split("=", 1) for pair in shlex.split(variables))
    environment |= {"GRADIO_TEMP_DIR": str(home / "uploads"), "HOME": str(home), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, *json.loads(command)[1:], "--port", str(free_port)]  # its own may be taken here
    before = {path.relative_to(app) for path in app.rglob("*")}
    with served([*user, *words], free_port, tmp_path, app, environment) as address:
        healthy = shlex.split(check.split("CMD", 1)[1].replace(port, str(free_port)))
        assert subprocess.run([sys.executable, *healthy[1:]], timeout=60).returncode == 0
        found = Client(address, verbose=False).predict("Two dogs play.", api_name="/translate")
        assert "Hunde" in found["text"]
        if user:
            (owner,) = {line.split()[1] for line in status_of(words) if line.startswith("Uid:")}
            assert int(owner) == NOBODY
    assert {path.relative_to(app) for path in app.rglob("*")} == before  # nothing but runs and uploads is written


def status_of(words):
    """Lines of /proc/PID/status of the process that runs this command."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cmdline").read_bytes().split(b"\0")[:-1] == [word.encode() for word in words]:
                return (process / "status").read_text().splitlines()
        except OSError:
            continue
    return []


def closure(requirements):
    """Names of the distributions that pip installs for these requirements, in this environment."""
    found, waiting = set(), [Requirement(one) for one in requirements]
    seen = set()
    while waiting:
        wanted = waiting.pop()
        key = (wanted.name.lower().replace("_", "-"), tuple(sorted(wanted.extras)))
        if key in seen or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        seen.add(key)
        found.add(key[0])
        for line in metadata.requires(wanted.name) or []:
            needed = Requirement(line)
            extras = [{"extra": extra} for extra in (wanted.extras or [""])] + [{"extra": ""}]
            if needed.marker is None or any(needed.marker.evaluate(one) for one in extras):
                needed.marker = None
                waiting.append(needed)
    return found


GUARD = """
import os, sys
from importlib.machinery import PathFinder

HIDDEN = frozenset(os.environ["HIDDEN_MODULES"].split(","))


class Declared(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in HIDDEN else super().find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Declared
"""


@pytest.mark.slow
def test_a_space_needs_nothing_but_what_its_card_and_lists_name(tmp_path, served, free_port):
    """Only what requirements.txt brings can be imported; host, port and rights are those of a Space."""
    space, guard = tmp_path / "space", tmp_path / "guard"
    guard.mkdir()
    (guard / "sitecustomize.py").write_text(GUARD)
    lay_out([name for name in git_files() if not name.startswith(("tests/", "benchmarks/", "docs/", ".ci/"))], space)
    card = dict(re.findall(r"^(\w+): (.+)$", (space / "README.md").read_text().split("---\n")[1], re.MULTILINE))
    assert card["sdk"] == "gradio"
    assert Version(card["python_version"].strip('"')) in Requirement(f"x{python_bounds()}").specifier
    lines = [line for line in (space / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    brought = closure(lines) | {"atelier-workshop"}  # the project itself may be installed from its checkout
    owners = metadata.packages_distributions()
    hidden = {
        module for module, names in owners.items() if not {name.lower().replace("_", "-") for name in names} & brought
    }
    assert {"pytest", "playwright", "mcp"} <= hidden and not {"torch", "gradio", "cv2", "numpy", "PIL"} & hidden
    environment = {
        "PYTHONPATH": str(guard), "HIDDEN_MODULES": ",".join(hidden), "SPACE_ID": "somebody/atelier",
        "GRADIO_SERVER_PORT": str(free_port), "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    with served([sys.executable, card["app_file"]], free_port, tmp_path, space, environment) as address:
        page = urllib.request.urlopen(address, timeout=60).read().decode()
        assert "Three neural networks to use and to take apart" in page
        client = Client(address, verbose=False)
        assert "Hunde" in client.predict("Two dogs play.", api_name="/translate")["text"]


def test_the_page_listens_where_a_space_looks_for_it(monkeypatch):
    import app
    from ui import page

    asked = {}

    class Built:
        def launch(self, **options):
            asked.update(options)

    monkeypatch.setattr(page, "build", lambda services: Built())
    monkeypatch.setattr("training.memory.keep_memory", lambda: None)
    for name in ("GRADIO_SERVER_PORT", "SPACE_ID", "SYSTEM", "SPACES_ZERO_GPU"):
        monkeypatch.delenv(name, raising=False)
    app.main([])
    assert (asked["server_name"], asked["server_port"]) == ("127.0.0.1", 7860)
    monkeypatch.setenv("SPACE_ID", "somebody/atelier")
    app.main([])
    assert (asked["server_name"], asked["server_port"], asked["share"]) == ("0.0.0.0", 7860, False)
    monkeypatch.setenv("GRADIO_SERVER_PORT", "8001")
    app.main([])
    assert asked["server_port"] == 8001


LENDING = """
import pickle

calls = []


def GPU(function=None, duration=60):
    def asks(function):
        def there(*arguments):
            calls.append((function.__name__, duration))
            if len(calls) > 1:
                raise RuntimeError("the visitor's time is spent")
            # Another process does the work: what goes in and out is pickled.
            return pickle.loads(pickle.dumps(function(*pickle.loads(pickle.dumps(arguments)))))

        return there

    return asks(function) if function else asks
"""

ASKING = """
import sys

from ui import shared_gpu

assert "torch" not in sys.modules
from training.assets import examples_dir
from ui.services import Services
from vton import TryOn

tryon = Services(device="cpu").tryon()
same = []
lent = shared_gpu.is_shared_space()
if lent:
    names = [examples_dir() / name for name in ("person-1.png", "garment-stripes.png")]
    made = tryon.run(*names, size=(256, 192), mirror=False)  # on the lent GPU
    again = tryon.resume(made, "synthesis")  # refused there
    plain = TryOn.from_pretrained("tryon-lite", "cpu").resume(made, "synthesis")
    same = [bool((one.result == plain.result).all()) for one in (made, again)]
print(repr({"lent": lent, "calls": shared_gpu.spaces.calls if shared_gpu.spaces else [], "same": same}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("package, zero", [(True, True), (True, False), (False, True)])
def test_only_the_synthesis_asks_for_a_lent_gpu_and_only_where_one_is_lent(tmp_path, package, zero):
    """With a stand-in for the package `spaces`: arguments survive pickling, a refusal leaves the work to the CPU."""
    if package:
        (tmp_path / "spaces.py").write_text(LENDING)
    path = f"{tmp_path}{os.pathsep}{ROOT}"
    environment = {**os.environ, "PYTHONPATH": path, "SPACES_ZERO_GPU": "true" if zero else ""}
    done = subprocess.run(
        [sys.executable, "-c", ASKING], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=540
    )
    assert done.returncode == 0, done.stderr
    told = ast.literal_eval(done.stdout.splitlines()[-1])
    lent = package and zero
    calls = [("synthesise_there", 20)] * 2 if lent else []
    assert told == {"lent": lent, "calls": calls, "same": [True, True] if lent else []}
    assert ("No GPU was lent (RuntimeError)" in done.stderr) == lent
