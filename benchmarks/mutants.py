"""Wrong versions of the code that the tests have to notice: `python -m benchmarks.mutants`.

Each mutant below changes one place of one module, as a slip of the pen could. In a copy of the project it is made by
itself, and the tests that belong to the module run until one fails. A mutant that no test notices has survived: the
tests are mended, not the list. Prints a line for each, and a Markdown table; the exit status is 1 if one survived.

    python -m benchmarks.mutants --only warping agnostic     those whose module's path holds one of these words

The libraries are imported once; each mutant runs in a fork of that process (Linux and macOS), so it costs seconds.
"""

# ruff: noqa: E501 - both versions of a place stand on one line

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from training.arguments import CommandLine
from training.command import one_sentence

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 300  # seconds of one mutant's tests; one that never ends is noticed, too


@dataclass(frozen=True)
class Mutant:
    """One change.

    file: of the project; old: text that occurs once in it; new: what stands there instead; tests: paths that should notice.
    """

    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def of(file: str, tests: str, *changes: tuple[str, str]) -> list[Mutant]:
    """Mutants of one module. tests: paths, with blanks between."""
    return [Mutant(file, old, new, tuple(tests.split())) for old, new in changes]


MUTANTS = [
    *of(
        "transformer/data.py",
        "tests/transformer/test_transformer_data.py",
        ("* longest + part, start)", "* longest, start)"),
        ("int(self.src_mask[indices].sum(-1).max())", "int(self.src_mask.sum(-1).max())"),
        ("labels = labels[:, :height].flatten()", "labels = labels[:, : height - 1].flatten()"),
    ),
    *of(
        "transformer/attention.py",
        "tests/transformer/test_attention.py tests/transformer/test_transformer_model.py",
        (" / math.sqrt(query.shape[-1])", ""),
        ("masked_fill(~mask, torch.finfo", "masked_fill(mask, torch.finfo"),
        ("return weights.masked_fill(~mask, 0.0).to(query.dtype)", "return weights.to(query.dtype)"),
        ("F.dropout(weights, dropout) @ value, weights", "weights @ value, weights"),
        ("device=device).tril()", "device=device).triu()"),
        (".abs() <= neighbourhood // 2", ".abs() < neighbourhood // 2"),
        ("(tokens != pad)", "(tokens >= pad)"),
        ("return self.split(query), self.split(key), self.split(value)",
         "return self.split(key), self.split(query), self.split(value)"),
        ("rows = (self.widths[0], sum(self.widths))", "rows = (0, sum(self.widths[1:]))"),
        ("context = context * gate[..., None, None]", "context = context * (1 - gate[..., None, None])"),
        ("dropout = self.dropout if self.training else 0.0", "dropout = self.dropout"),
    ),
    *of(
        "transformer/search.py",
        "tests/transformer/test_search.py",
        (" and going[0][2] / penalty <= row.finished[-1].score", ""),
        ("for parent, token, total in extensions[:beam]", "for parent, token, total in extensions"),
        ("((5.0 + length) / 6.0) **", "((6.0 + length) / 6.0) **"),
        ("length_penalty(len(c.ids) + c.finished, alpha)", "length_penalty(len(c.ids), alpha)"),
        ("if front.length < min_length else", "if front.length <= min_length else"),
        ("[[*row.ids[parent], token] for", "[[*row.ids[0], token] for"),
        ("total = row.sums[parent] + logprob", "total = logprob"),
        ("(scores / temperature)", "(scores * temperature)"),
        ("    if length >= row.limit:\n        row.finish(", "    if length > row.limit:\n        row.finish("),
        ("blocks.amax(-1).topk", "blocks.mean(-1).topk"),
        ("[prefix.logprob]) for", "[0.0]) for"),
    ),
    *of(
        "vton/networks/alias.py",
        "tests/vton/test_alias.py tests/vton/test_patches.py",
        (".clamp(min=0)  # eq. 3", ".abs()"),
        ("divided[:, UPPER : UPPER + 1] -= misalign", "divided[:, UPPER : UPPER + 1] -= 0 * misalign"),
        ("bias = 1 + cast(", "bias = cast("),
        ("variance + EPS * pixels / size", "variance + EPS"),
        ("for region in (mask, 1 - mask):", "for region in (mask,):"),
        ("            if self.training:\n                with torch.no_grad", "            if not self.training:\n                with torch.no_grad"),
        ("torch.lerp(rendered, source.to(rendered.dtype), share)", "torch.lerp(source.to(rendered.dtype), rendered, share)"),
        ('misalign if norm == "alias" else None', 'misalign if norm == "instance" else None'),
    ),
    *of(
        "vton/networks/warping.py",
        "tests/vton/test_warping.py",
        ("EXTENT = 0.9 ", "EXTENT = 1.0 "),
        ("return r2 * np.log", "return np.sqrt(r2) * np.log"),
        ('axis, axis, indexing="ij"', 'axis, axis, indexing="xy"'),
        ("targets = points + theta.reshape(-1, 2, n * n).transpose(1, 2)", "targets = points + theta.reshape(-1, n * n, 2)"),
        ("a * d - b * c", "a * d + b * c"),
        ("person.permute(0, 3, 2, 1)", "person.permute(0, 2, 3, 1)"),
        ('padding: str = "border"', 'padding: str = "zeros"'),
        ("(n, n)).transpose(1, 2).reshape(", "(n, n)).reshape("),
        ("(cloth_region, pose, agnostic)", "(cloth_region, agnostic, pose)"),
    ),
    *of(
        "vton/inputs/agnostic.py",
        "tests/vton/test_agnostic.py tests/vton/test_rules_on_photographs.py",
        ("radius = 40 if joint == chain[-1] else 150", "radius = 150"),
        ("removed = np.isin(parse, (*labels.UPPER_LIP, labels.NECK_LIP))", "removed = np.isin(parse, labels.UPPER_LIP)"),
        ("(*labels.HEAD_LIP, *labels.LOWER_LIP)", "labels.HEAD_LIP"),
        ("TRUNK_LENGTH = 1.45", "TRUNK_LENGTH = 2.0"),
        ("/ hips * shoulders for", "/ shoulders * hips for"),
        ("(labels.LEFT_ARM_LIP, (RIGHT", "(labels.RIGHT_ARM_LIP, (RIGHT"),
        ("self.scale = picture.width / 768", "self.scale = 1.0"),
        ("disc(8 * person.shape[1] / 768)", "disc(2 * person.shape[1] / 768)"),
    ),
    *of(
        "training/checkpoint.py",
        "tests/training/test_checkpoint.py",
        ("[:-keep_last]", "[:-keep_last - 1]"),
        ("if step_of(folder) != best", "if step_of(folder) == best"),
        ("folders[max(folders) if", "folders[min(folders) if"),
        (' and (f / "state.json").is_file()', ""),
        ("value.double() / n", "value.double() / (n + 1)"),
        ("{})[field] = value", "{})[field] = value * 0"),
        ("step_of(f) <= last", "step_of(f) < last"),
        ('k.startswith("generator/") and k.count("/") == 1', 'k.startswith("generator/") and k.count("/") == 2'),
        ("        shutil.rmtree(part, ignore_errors=True)\n        raise", "        raise"),
    ),
    *of(
        "vton/recipes/adversarial.py",
        "tests/vton/test_adversarial.py",
        ("over_scales(loss.d, real_out, fake_out)", "over_scales(loss.d, fake_out, real_out)"),
    ),
    *of(
        "vton/recipes/segmentation.py",
        "tests/vton/test_adversarial.py",
        ("torch.cat((x, real), 1), torch.cat((x, fake), 1), share", "torch.cat((x, fake), 1), torch.cat((x, real), 1), share"),
    ),
    *of(
        "vton/recipes/alias.py",
        "tests/vton/test_adversarial.py",
        ("self.critic_input(divided, real), self.critic_input(divided, fake), share)", "self.critic_input(divided, fake), self.critic_input(divided, real), share)"),
    ),
    *of("vton/rules/neckline.py", "tests/vton/test_neckline.py tests/vton/test_rules_on_photographs.py", ("HALF_WIDTH, HALF_HEIGHT, ABOVE = 0.21", "HALF_WIDTH, HALF_HEIGHT, ABOVE = 0.30")),
    *of("vton/rules/sleeves.py", "tests/vton/test_sleeves.py tests/vton/test_rules_on_photographs.py", ("REACH = 0.36", "REACH = 0.5"), ("BESIDE = 0.6", "BESIDE = 1.2"), ('"short": 0.8', '"short": 1.1')),
    *of("vton/attributes.py", "tests/vton/test_attributes.py tests/vton/test_rules_on_photographs.py", ("CERTAIN = 0.6", "CERTAIN = 1.2")),
    *of("transformer/text/verbatim.py", "tests/transformer/test_verbatim.py", ("(3 if size >= 4 else 4)", "(3 if size >= 4 else 5)")),
]  # fmt: skip


@contextlib.contextmanager
def copy_of_project() -> Iterator[Path]:
    """A copy of the project's code and tests; what is large and stays, the weights and examples, is linked."""
    with tempfile.TemporaryDirectory(prefix="atelier-mutants-") as temporary:
        folder = Path(temporary)
        for name in ("transformer", "vton", "gan", "training", "ui", "lab", "tests", "benchmarks"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("app.py", "pyproject.toml", "README.md", "requirements.txt"):
            shutil.copy(ROOT / name, folder)
        for name in ("assets", "docs"):
            (folder / name).symlink_to(ROOT / name)
        yield folder


def first_failure(folder: Path, tests: tuple[str, ...], log: Path) -> str:
    """What the tests say of the code in `folder`: "" if all pass, else the first failure. They run in a fork."""
    log.write_text("")
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            output = os.open(log, os.O_WRONLY | os.O_TRUNC)
            os.dup2(output, 1), os.dup2(output, 2)
            os.chdir(folder)
            sys.path[:] = [str(folder), *(entry for entry in sys.path if Path(entry or ".").resolve() != ROOT)]
            import pytest

            # -m "" runs the slow tests of these files too.
            status = pytest.main(["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-m", "", *tests])
            sys.stdout.flush()
            os._exit(int(status))
        os._exit(99)
    deadline = time.monotonic() + LONGEST
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            break
        time.sleep(0.05)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return "did not end"
    if os.waitstatus_to_exitcode(status) == 0:
        return ""
    names = [line.split(" ")[1] for line in log.read_text().splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return names[0].rpartition("::")[2] if names else "does not run"


def check(mutants: list[Mutant]) -> dict[Mutant, str]:
    """What noticed each mutant, "" = nothing. Raises RuntimeError if the unchanged code fails, ValueError for a mutant
    whose place is not to be found.
    """
    sys.dont_write_bytecode = True
    import pytest  # noqa: F401  (every fork has these from here)
    import torch
    import torchvision  # noqa: F401

    torch.set_num_threads(1)  # a fork has no threads but its own
    results = {}
    with copy_of_project() as folder:
        log = folder / "log.txt"
        tests = tuple(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
        wrong = [test for test in tests if first_failure(folder, (test,), log)]
        if wrong:
            raise RuntimeError(f"The unchanged code fails in {', '.join(wrong)}:\n{log.read_text()}")
        for mutant in mutants:
            path = folder / mutant.file
            text = path.read_text(encoding="utf-8")
            if text.count(mutant.old) != 1:
                raise ValueError(f"{mutant.file}: {mutant.old!r} occurs {text.count(mutant.old)} times.")
            path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
            results[mutant] = first_failure(folder, mutant.tests, log)
            path.write_text(text, encoding="utf-8")
            outcome = f"noticed by {results[mutant]}" if results[mutant] else "SURVIVED"
            print(f"{mutant.file}: {one_line(mutant.old)} -> {one_line(mutant.new)}: {outcome}", flush=True)
    return results


def one_line(code: str) -> str:
    """Code on one line."""
    return " ".join(code.split()) or "(nothing)"


def table(results: dict[Mutant, str]) -> str:
    """Markdown: module, mutants, noticed."""
    files = dict.fromkeys(mutant.file for mutant in results)
    rows = []
    for file in files:
        own = [bool(test) for mutant, test in results.items() if mutant.file == file]
        rows.append(f"| `{file}` | {len(own)} | {sum(own)} |")
    return "\n".join(["| Module | Mutants | Noticed |", "|---|---|---|", *rows])


@one_sentence
def main(argv: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = CommandLine(description="Check that the tests notice wrong versions of the code.")
    parser.add_argument("--only", nargs="+", default=[""], help="words of a module's path")
    options = parser.parse_args(argv)
    results = check([mutant for mutant in MUTANTS if any(word in mutant.file for word in options.only)])
    print(table(results))
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
