"""The quick tests under other Pythons and other releases of torch.

`nox` runs them all, `nox -s "quick-3.12(torch='2.8')"` one session, in an environment of its own with the project's
dependencies and that torch; `-- PATHS` behind it runs these tests alone. A Python that is not here is skipped. pip's
own variables hold: an index of torch for CPUs alone saves 4 GB a session.
"""

import re

import nox

nox.options.error_on_missing_interpreters = False
PROJECT = nox.project.load_toml("pyproject.toml")["project"]
VISION = {"2.8": "0.23", "2.11": "0.26"}  # torch at the bounds of shared GPU Spaces, and its torchvision


@nox.session(python=["3.10", "3.11", "3.12"])
@nox.parametrize("torch", list(VISION))
def quick(session: nox.Session, torch: str) -> None:
    """The quick tests without the browser."""
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["test"]]
    # The looser bounds go: pip would look at a newer torch first, which it may have to download for that.
    wanted = [one for one in wanted if not re.match(r"torch(vision)?\b", one)]
    session.install("--no-compile", f"torch=={torch}.*", f"torchvision=={VISION[torch]}.*", *wanted)
    tests = session.posargs or ["tests", "--ignore=tests/e2e"]
    session.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, env={"PYTHONPATH": "."})
