"""What the fields of a recipe mean: the comments beside them in its source, for whoever asks on the command line."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import io
import textwrap
import tokenize


def explanations(recipe_class: type) -> dict[str, str]:
    """The comment of each field of a dataclass, inherited fields included; "" where there is none.

    A comment stands on the field's own lines. A class that sets a field anew without a comment keeps the older one.
    """
    found: dict[str, str] = {}
    for cls in reversed(recipe_class.__mro__):
        if dataclasses.is_dataclass(cls):
            found |= {name: text for name, text in _comments(cls).items() if text or name not in found}
    return {field.name: found.get(field.name, "") for field in dataclasses.fields(recipe_class)}


def _comments(cls: type) -> dict[str, str]:
    """The comments beside the fields that one class sets itself."""
    try:
        source = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):  # no source to be read: a class of an interactive session, or run by another program
        return {}
    (definition,) = ast.parse(source).body
    by_line = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    return {
        node.target.id: " ".join(by_line[n] for n in range(node.lineno, (node.end_lineno or 0) + 1) if n in by_line)
        for node in getattr(definition, "body", [])
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
