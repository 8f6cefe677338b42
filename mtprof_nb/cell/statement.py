"""Runs a statement, or a cell's text, in the user's namespace, for a magic that is called as a function."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def run(ip: InteractiveShell, text: str, local_ns: dict[str, Any]) -> Any:
    """The value of the last expression of `text`, or None; an exception of the user's code passes through."""
    __tracebackhide__ = True
    source = ip.transform_cell(text)
    if ip.should_run_async(text, transformed_cell=source):
        msg = "a statement cannot await here: put %%mtprofile on the first line of the cell instead"
        raise UsageError(msg)
    name = ip.compile.cache(source, ip.displayhook.prompt_count, raw_code=text)
    tree = ip.transform_ast(ip.compile.ast_parse(source, filename=name))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(ip.compile(tree, name, "exec"), ip.user_ns, local_ns)  # noqa: S102
    if last is None:
        return None
    return eval(ip.compile(ast.Expression(last.value), name, "eval"), ip.user_ns, local_ns)  # noqa: S307
