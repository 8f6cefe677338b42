"""A cell's syntax tree with a mark before each statement, so that a recording knows which line began when.

A mark is one statement that calls nothing: in ``del M[-M, 7]`` the slot behind ``-M`` reads the clock and the one
behind ``del M[…]`` keeps the pair. No frame is entered, no tracer sees a call, nothing is left on the stack.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

#: The name of the object that takes marks. It is no identifier, so no program can mean it and no class mangles it.
MARK = "mtprof_nb mark"

LINE, ENTER, LEAVE = range(3)

#: The first number of each recording, with more room between them than a recording has places.
_firsts = count(0, 1 << 24)

#: Python's name for code that is in no function.
_CELL = "<module>"


class Place(NamedTuple):
    """The meaning of one mark: a line begins (LINE), it is the first of a call (ENTER), or the call ends (LEAVE)."""

    unit: int
    line: int
    scope: int
    kind: int


class Function(NamedTuple):
    """A function whose lines are marked, or the top level of a cell: its name, and the first line of its code."""

    name: str
    first_line: int

    @property
    def is_cell(self) -> bool:
        """Whether this is the top level of a cell."""
        return self.name == _CELL


class Places:
    """The marks of a recording by number, and the functions (scopes) that they stand in."""

    def __init__(self) -> None:
        self._numbers: dict[Place, int] = {}
        #: The number of the first place. No two recordings share numbers, for code of one may run on in the next.
        self.first = next(_firsts)
        #: Every place, in order of their numbers.
        self.table: list[Place] = []
        self.functions: list[Function] = []

    def number(self, place: Place) -> int:
        """The number that stands in the marked code for `place`."""
        if place not in self._numbers:
            self._numbers[place] = self.first + len(self.table)
            self.table.append(place)
        return self._numbers[place]

    def add_scope(self, function: Function) -> int:
        """The number of a new scope, for a function or for the top level of a cell."""
        self.functions.append(function)
        return len(self.functions) - 1


@dataclass(frozen=True)
class _Scope:
    number: int
    #: Code at the top level of a cell runs on the cell's thread; a function may run on any thread.
    any_thread: bool


def mark_tree(
    tree: ast.Module,
    places: Places,
    unit: int,
    transparent: frozenset[str] | None,
    skip: int = 0,
    is_compiled_in_parts: bool = False,
) -> None:
    """Put marks into `tree` after its first `skip` statements; inside functions too, unless `transparent` is None.

    `transparent` names the decorators that leave a function's own code to run as it is written.
    `is_compiled_in_parts`: each statement of `tree` is compiled alone, and not `tree` as a whole.
    """
    _Marker(places, unit, transparent).mark_module(tree, skip, is_compiled_in_parts)


class _Marker:
    def __init__(self, places: Places, unit: int, transparent: frozenset[str] | None) -> None:
        self._places = places
        self._unit = unit
        self._transparent = transparent

    def mark_module(self, tree: ast.Module, skip: int, is_compiled_in_parts: bool) -> None:
        scope = _Scope(self._places.add_scope(Function(_CELL, 1)), any_thread=False)
        while skip < len(tree.body) and _must_be_first(tree.body[skip]):
            skip += 1
        if skip == len(tree.body):
            return
        opened = ast.Call(ast.Attribute(_name(), "open", ast.Load()), [ast.Constant(self._unit)], [])
        *earlier, last = tree.body[skip:]
        marked = [_at_line(ast.Expr(opened), tree.body[skip].lineno)]
        for stmt in earlier:
            # Between two statements of a cell, the shell runs: it compiles the next one.
            marked += [*self._block([stmt], scope, None), self._mark(scope, stmt.lineno, LEAVE)]
        # After a mark, the value of the last statement would not be displayed.
        marked += self._block([last], scope, None)
        tree.body[skip:] = (
            map(_with_global_mark, marked) if is_compiled_in_parts else [_global_mark(tree.body[skip].lineno), *marked]
        )

    def _block(self, body: Iterable[ast.stmt], scope: _Scope, loop: int | None) -> list[ast.stmt]:
        """`body` with a mark before each statement. `loop` is the line of the loop that `continue` goes on with.

        `loop` is None where the user's code runs between the `continue` and the loop's header.
        """
        marked: list[ast.stmt] = []
        for stmt in body:
            if isinstance(stmt, ast.Continue) and loop is not None:
                marked.append(self._mark(scope, loop))
            elif not _runs_nothing(stmt):
                marked.append(self._mark(scope, stmt.lineno))
            self._mark_inside(stmt, scope, loop)
            marked.append(stmt)
        return marked

    def _mark_inside(self, stmt: ast.stmt, scope: _Scope, loop: int | None) -> None:
        self._mark_expressions(stmt, scope, stmt.lineno)
        if isinstance(stmt, ast.FunctionDef | ast.AsyncFunctionDef):
            self._mark_function(stmt)
        elif isinstance(stmt, ast.ClassDef):
            self._mark_class(stmt, scope)
        else:
            self._mark_blocks(stmt, scope, loop)

    def _mark_blocks(self, owner: Any, scope: _Scope, loop: int | None) -> None:
        """Mark the blocks of a compound statement. Code of its header that runs after a block is the header's line."""
        if _runs_code_when_left(owner):
            loop = None
        for field, value in ast.iter_fields(owner):
            if not isinstance(value, list) or not value:
                continue
            if isinstance(value[0], ast.stmt):
                has_header = field == "body" and isinstance(owner, _LOOPS | _WITH)
                setattr(owner, field, self._body(owner, scope) if has_header else self._block(value, scope, loop))
            elif isinstance(value[0], ast.ExceptHandler | ast.match_case):
                for part in value:
                    self._mark_guard(part, scope)
                    self._mark_blocks(part, scope, loop)

    def _body(self, owner: Any, scope: _Scope) -> list[ast.stmt]:
        """The body of a loop or `with`, and a mark of the header's line where its code runs after the body.

        A `with` runs it however the body is left.
        """
        line, body = owner.lineno, owner.body
        if isinstance(owner, _WITH) or (_header_runs_code(owner) and _continues_through_code(body)):
            block = self._block(body, scope, None)
            return [_at_line(ast.Try(block, [], [], [self._last_mark(scope, line, LINE)]), body[0].lineno)]
        after = [self._mark(scope, line)] if _header_runs_code(owner) else []
        return [*self._block(body, scope, line), *after]

    def _mark_guard(self, part: ast.ExceptHandler | ast.match_case, scope: _Scope) -> None:
        guard = getattr(part, "guard", None)
        if guard is not None:
            both = ast.Tuple([self._subscript(scope, guard.lineno, LINE), guard], ast.Load())
            part.guard = _at_location_of(ast.Subscript(both, ast.Constant(1), ast.Load()), guard)  # type: ignore[union-attr]

    def _mark_class(self, node: ast.ClassDef, scope: _Scope) -> None:
        docstring = _docstring(node.body)
        # A metaclass may give a class body any namespace: a global name is not looked up there.
        outside = _global_mark(node.lineno)
        block = self._block(node.body[len(docstring) :], scope, None)
        node.body = [*docstring, outside, *block, self._mark(scope, node.lineno)]

    def _mark_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if self._transparent is None or any(_last_name(one) not in self._transparent for one in node.decorator_list):
            return
        docstring = _docstring(node.body)
        body = node.body[len(docstring) :]
        if all(map(_runs_nothing, body)):
            return
        first_line = min((decorator.lineno for decorator in node.decorator_list), default=node.lineno)
        scope = _Scope(self._places.add_scope(Function(node.name, first_line)), any_thread=True)
        enter = self._mark(scope, body[0].lineno, ENTER)
        leave = self._last_mark(scope, body[-1].lineno, LEAVE)
        block = self._block(body, scope, None)
        if not _runs_nothing(body[0]):
            block = block[1:]
        node.body = [*docstring, enter, _at_line(ast.Try(block, [], [], [leave]), body[0].lineno)]

    def _last_mark(self, scope: _Scope, line: int, kind: int) -> ast.stmt:
        """A mark in a `finally`, which adds no `RecursionError` of its own to the user's."""
        ignored = ast.ExceptHandler(ast.Name("RecursionError", ast.Load()), None, [ast.Pass()])
        return _at_line(ast.Try([self._mark(scope, line, kind)], [ignored], [], []), line)

    def _mark_expressions(self, owner: ast.AST, scope: _Scope, line: int) -> None:
        """Mark a function as left where it awaits or yields, and as running again where it resumes."""
        left = self._subscript(scope, line, LEAVE) if scope.any_thread else None
        expressions = _Expressions(left, self._subscript(scope, line, LINE), self._mark_lambda)
        for field, value in ast.iter_fields(owner):
            if isinstance(value, _EXPRESSIONS):
                setattr(owner, field, expressions.visit(value))
            elif isinstance(value, list):
                value[:] = [expressions.visit(part) if isinstance(part, _EXPRESSIONS) else part for part in value]

    def _mark_lambda(self, node: ast.Lambda) -> None:
        if self._transparent is None:
            return
        scope = _Scope(self._places.add_scope(Function("<lambda>", node.lineno)), any_thread=True)
        line = node.body.lineno
        parts = [self._subscript(scope, line, ENTER), node.body, self._subscript(scope, line, LEAVE)]
        node.body = _at_location_of(ast.Subscript(ast.Tuple(parts, ast.Load()), ast.Constant(1), ast.Load()), node.body)

    def _mark(self, scope: _Scope, line: int, kind: int = LINE) -> ast.stmt:
        subscript = self._subscript(scope, line, kind)
        subscript.ctx = ast.Del()
        return _at_line(ast.Delete([subscript]), line)

    def _subscript(self, scope: _Scope, line: int, kind: int) -> ast.Subscript:
        number = self._places.number(Place(self._unit, line, scope.number, kind))
        sink = ast.Attribute(_name(), "here", ast.Load()) if scope.any_thread else _name()
        pair = ast.Tuple([ast.UnaryOp(ast.USub(), _name()), ast.Constant(number)], ast.Load())
        return ast.Subscript(sink, pair, ast.Load())


class _Expressions(ast.NodeTransformer):
    """Marks in an expression: around every `await` and `yield`, and in every lambda."""

    def __init__(self, left: ast.expr | None, resumed: ast.expr, mark_lambda: Callable[[ast.Lambda], None]) -> None:
        self._left = left
        self._resumed = resumed
        self._mark_lambda = mark_lambda
        self._is_inner = False

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Lambda | ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp):
            return self._visit_inner(node)
        if isinstance(node, ast.Await | ast.Yield | ast.YieldFrom) and not self._is_inner:
            return self._visit_suspension(node)
        return self.generic_visit(node)

    def _visit_inner(self, node: ast.expr) -> ast.expr:
        """Visit a lambda or comprehension: an `await` in it does not suspend the function around it."""
        was_inner, self._is_inner = self._is_inner, True
        self.generic_visit(node)
        self._is_inner = was_inner
        if isinstance(node, ast.Lambda):
            self._mark_lambda(node)
        return node

    def _visit_suspension(self, node: Any) -> ast.expr:
        value = self.visit(node.value) if node.value is not None else _at_location_of(ast.Constant(None), node)
        node.value = value if self._left is None else _followed_by(value, self._left)
        return _followed_by(node, self._resumed)


_EXPRESSIONS = (ast.expr, ast.withitem, ast.arguments, ast.keyword)


def _followed_by(value: ast.expr, mark: ast.expr) -> ast.expr:
    """The value of `value`, with a mark made after it: ``(value, mark)[0]``."""
    both = ast.Tuple([value, mark], ast.Load())
    return _at_location_of(ast.Subscript(both, ast.Constant(0), ast.Load()), value)


def _name() -> ast.Name:
    return ast.Name(MARK, ast.Load())


def _global_mark(line: int) -> ast.stmt:
    """``global`` for the mark's name: the interpreter caches where a global is, which makes marks faster."""
    return _at_line(ast.Global([MARK]), line)


def _with_global_mark(stmt: ast.stmt) -> ast.stmt:
    """`stmt`; one with blocks, which may hold loops, goes below ``if True:`` and a `_global_mark` of its own."""
    if not isinstance(stmt, _BLOCKS):
        return stmt
    return _at_line(ast.If(ast.Constant(True), [_global_mark(stmt.lineno), stmt], []), stmt.lineno)


_LOOPS = ast.For | ast.AsyncFor | ast.While
_WITH = ast.With | ast.AsyncWith
_BLOCKS = _LOOPS | _WITH | ast.If | ast.Try | ast.TryStar | ast.Match


def _at_line(stmt: ast.stmt, line: int) -> ast.stmt:
    stmt.lineno = stmt.end_lineno = line
    stmt.col_offset = stmt.end_col_offset = 0
    return ast.fix_missing_locations(stmt)


def _at_location_of(expr: ast.expr, like: ast.expr) -> ast.expr:
    return ast.fix_missing_locations(ast.copy_location(expr, like))


def _docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    return body[:1] if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else []


def _must_be_first(stmt: ast.stmt) -> bool:
    is_text = isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant)
    return is_text or (isinstance(stmt, ast.ImportFrom) and stmt.module == "__future__")


def _runs_nothing(stmt: ast.stmt) -> bool:
    return _must_be_first(stmt) or isinstance(stmt, ast.Pass | ast.Break | ast.Continue | ast.Global | ast.Nonlocal)


def _header_runs_code(stmt: ast.stmt) -> bool:
    """Whether the header of a loop runs the user's code, or ops, after its body."""
    if isinstance(stmt, ast.For):
        call = stmt.iter
        return not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range")
    return isinstance(stmt, ast.AsyncFor | ast.While)


def _runs_code_when_left(stmt: ast.AST) -> bool:
    """Whether the user's code runs when the statement is left, also by `continue`."""
    return isinstance(stmt, _WITH) or bool(getattr(stmt, "finalbody", None))


def _continues_through_code(body: Iterable[ast.AST], runs_code: bool = False) -> bool:
    """Whether a `continue` of the loop around `body` leaves a statement that runs code then."""
    return any(
        (isinstance(stmt, ast.Continue) and runs_code)
        or _continues_through_code(_parts_in_same_loop(stmt), runs_code or _runs_code_when_left(stmt))
        for stmt in body
    )


def _parts_in_same_loop(stmt: ast.AST) -> Iterable[ast.AST]:
    """The statements, handlers and cases in a statement to which a `continue` in it may belong."""
    if isinstance(stmt, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.expr):
        return []
    return stmt.orelse if isinstance(stmt, _LOOPS) else ast.iter_child_nodes(stmt)


def _last_name(decorator: ast.expr) -> str:
    """`no_grad` of ``@torch.no_grad()``."""
    if isinstance(decorator, ast.Call):
        return _last_name(decorator.func)
    if isinstance(decorator, ast.Attribute):
        return decorator.attr
    return decorator.id if isinstance(decorator, ast.Name) else ""
