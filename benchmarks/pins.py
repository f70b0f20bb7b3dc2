"""Declared bounds and installed versions against known holes, without a network: `python -m benchmarks.pins`.

The list names what concerns this project: its own dependencies, and of what these bring what touches a visitor's input.
It knows what it lists and no more; with a network, pip-audit asks the whole advisory database. The exit status is 1
where a bound admits or the environment holds a version with a hole that is not among the accepted ones.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Hole:
    """A known one. release: the first without it; excuse: why an older one may be there nevertheless."""

    package: str
    release: str
    advisory: str
    excuse: str = ""


HOLES = (
    Hole("gradio", "6.6.0", "PYSEC-2026-65"),
    Hole("gradio", "6.15.0", "PYSEC-2026-2178"),
    Hole("gradio", "6.16.0", "PYSEC-2026-2179"),
    Hole("python-multipart", "0.0.22", "CVE-2026-24486"),
    Hole("python-multipart", "0.0.26", "CVE-2026-40347"),
    Hole("python-multipart", "0.0.27", "CVE-2026-42561"),
    Hole("python-multipart", "0.0.30", "CVE-2026-53538"),
    Hole("pillow", "10.3.0", "CVE-2024-28219"),
    Hole("pillow", "11.3.0", "CVE-2025-48379"),
    Hole("pillow", "12.2.0", "CVE-2026-40192"),
    Hole("pillow", "12.3.0", "CVE-2026-54058"),
    Hole("pillow", "12.3.0", "CVE-2026-59197"),
    Hole("pillow", "12.3.0", "CVE-2026-59200"),
    Hole("opencv-python", "4.8.1.78", "CVE-2023-4863"),
    Hole("opencv-contrib-python", "4.8.1.78", "CVE-2023-4863"),
    Hole("sentencepiece", "0.2.1", "CVE-2026-1260"),
    Hole("transformers", "5.0.0", "PYSEC-2025-217"),
    Hole("torch", "2.6.0", "CVE-2025-32434"),
    Hole(
        "torch",
        "2.10.0",
        "CVE-2026-24747",
        "shared GPUs need 2.8; of pickled files, only those that the operator or a local page's visitor names are read",
    ),
    Hole("protobuf", "4.25.8", "CVE-2025-4565"),
    Hole("protobuf", "5.29.6", "CVE-2026-0994", "MediaPipe needs one below 5; JSON is never read with it here"),
)


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
