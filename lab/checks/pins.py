"""Declared bounds and installed versions against known holes, without a network: `python -m lab.checks.pins`.

The list names what concerns this project: its own dependencies, and of what these bring what touches a visitor's input.
It knows what it lists and no more; with a network, pip-audit asks the whole advisory database. The exit status is 1
where a bound admits or the environment holds a version with a hole that is not among the accepted ones.
"""

import csv
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Hole:
    """A known one. release: the first without it; excuse: why an older one may be there nevertheless."""

    package: str
    release: str
    advisory: str
    excuse: str = ""


def read_holes() -> list[Hole]:
    """All of `holes.tsv`, whose columns are the fields of a hole."""
    with open(Path(__file__).with_name("holes.tsv"), encoding="utf-8", newline="") as file:
        return [Hole(**row) for row in csv.DictReader(file, restval="", delimiter="\t", quoting=csv.QUOTE_NONE)]


HOLES = read_holes()


def requirements() -> dict[str, Requirement]:
    """The requirements of `requirements.txt` by name; those of `pyproject.toml` are the same."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    bounds = [Requirement(line) for line in lines if line.strip() and not line.startswith("#")]
    return {one.name.lower(): one for one in bounds}


def admits(requirement: Requirement, hole: Hole) -> bool:
    """Whether a bound leaves room below the release without the hole."""
    exact = [Version(part.version) for part in requirement.specifier if part.operator in (">=", "==", "~=")]
    return not exact or max(exact) < Version(hole.release)


def findings(versions: dict[str, str], bounds: dict[str, Requirement]) -> list[str]:
    """A sentence for every hole that is not accepted.

    versions: installed releases by package; bounds: requirements by package. What neither names is left out.
    """
    sentences = []
    for hole in HOLES:
        if hole.excuse:
            continue
        if hole.package in bounds and admits(bounds[hole.package], hole):
            sentences.append(f"{bounds[hole.package]} admits {hole.advisory}, which {hole.release} mends.")
        if hole.package in versions and Version(versions[hole.package]) < Version(hole.release):
            sentences.append(
                f"{hole.package} {versions[hole.package]} has {hole.advisory}, which {hole.release} mends."
            )
    return sentences


def releases() -> dict[str, str]:
    """The releases of the listed packages in this environment."""
    versions = {}
    for package in {hole.package for hole in HOLES}:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def main() -> int:
    """The command line."""
    bounds, versions = requirements(), releases()
    outside = [
        f"{name} {versions[name]} is outside of {bounds[name]}."
        for name in sorted(bounds.keys() & versions.keys())
        if not bounds[name].specifier.contains(versions[name], prereleases=True)
    ]
    wrong = findings(versions, bounds) + outside
    for line in wrong:
        print(line)
    for hole in HOLES:
        if hole.excuse:
            print(f"Accepted: {hole.package} below {hole.release}, {hole.advisory}: {hole.excuse}.")
    print(f"{len(HOLES)} holes, {len(versions)} packages: {len(wrong) or 'nothing'} found.")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
