"""Removes marks: functions that were defined with marks get the code that they would have had without."""

from __future__ import annotations

import ast
import builtins
import codeop
import gc
import sys
import warnings
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cache
from itertools import compress
from traceback import walk_stack
from types import AsyncGeneratorType, CellType, CodeType, CoroutineType, FunctionType, GeneratorType
from typing import Any

from mtprof_nb.capture.marks.mark_transform import MARK, Function
from mtprof_nb.capture.samples.thread_names import frames_of_others

#: The name of a statement's code. It has run when the cell has, but IPython's traceback keeps it.
_WHOLE_CELL = "<module>"
_SUSPENDED = {GeneratorType: "gi", CoroutineType: "cr", AsyncGeneratorType: "ag"}


def compile_each(tree: ast.Module, file: str, flags: int) -> list[CodeType]:
    """The code of each statement of `tree`, compiled as IPython compiles them: one by one, futures remembered."""
    compiler = codeop.Compile()
    compiler.flags = flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    with warnings.catch_warnings():
        # The compiler warns again when IPython compiles the cell.
        warnings.simplefilter("ignore")
        return [compiler(ast.Module([stmt], []), file, "exec") for stmt in tree.body]  # type: ignore[arg-type]


def plain_code(marked: ast.Module, plain: ast.Module, file: str, flags: int) -> dict[CodeType, CodeType]:
    """For the code of every marked function, the code of the same function without marks."""
    pairs = _twins(compile_each(marked, file, flags), compile_each(plain, file, flags))
    return {code: twin for code, twin in pairs if _is_marked(code)}


def _twins(marked: Iterable[CodeType], plain: Iterable[CodeType]) -> Iterator[tuple[CodeType, CodeType]]:
    """Pairs of a function inside `marked` and the one inside `plain` of the same name and line."""
    twins = _functions_in(plain)
    for key, codes in _functions_in(marked).items():
        plain_codes = twins.get(key, [])
        if len(plain_codes) == 1:
            # Equal lambdas on one line are one constant, until marks make them differ.
            plain_codes = plain_codes * len(codes)
        # The compiler drops code that never runs, as below `if False`, perhaps in one of the two only.
        for code, twin in zip(codes, plain_codes, strict=True) if len(codes) == len(plain_codes) else ():
            yield code, twin
            yield from _twins([code], [twin])


def _functions_in(codes: Iterable[CodeType]) -> dict[tuple[str, int], list[CodeType]]:
    functions: dict[tuple[str, int], list[CodeType]] = {}
    for constant in (constant for code in codes for constant in code.co_consts):
        if isinstance(constant, CodeType):
            functions.setdefault((constant.co_name, constant.co_firstlineno), []).append(constant)
    return functions


def unmarked(
    namespace: Mapping[str, Any], wanted: Container[Function], plain: Mapping[CodeType, CodeType]
) -> Iterator[FunctionType]:
    """Give `wanted` functions of the namespace their plain code while the cell runs; yields each one."""
    for function in _functions_of(namespace):
        code = function.__code__
        if Function(code.co_name, code.co_firstlineno) in wanted and _give_plain_code(function, plain):
            yield function


def _functions_of(namespace: Mapping[str, Any]) -> Iterator[FunctionType]:
    """The functions of a namespace, also in its classes and under decorators. Runs no code of the user's."""
    seen: set[int] = set()
    left = list(namespace.values())
    while left:
        value = left.pop()
        if id(value) not in seen:
            seen.add(id(value))
            left += _inside(value, namespace.get("__name__"))
            if type(value) is FunctionType:
                yield value


def _inside(value: Any, module: str | None) -> list[Any]:
    """Values held by a function, a class of `module` or a descriptor, among which functions may be."""
    kind = type(value)
    if kind is FunctionType:
        return [content for cell in value.__closure__ or () for content in _content(cell)]
    if issubclass(kind, type):
        names = _NAMES_OF_CLASS(value)
        home = names.get("__module__")
        return list(names.values()) if type(home) is str and home == module else []
    if kind is property:
        return [value.fget, value.fset, value.fdel]
    if kind in (staticmethod, classmethod, _CACHED):
        return [value.__wrapped__]
    return []


def _content(cell: CellType) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:
        return []


_CACHED = type(cache(len))
_NAMES_OF_CLASS = type.__dict__["__dict__"].__get__


def restore(plain: Mapping[CodeType, CodeType]) -> None:
    """Give every function its plain code. Then remove the mark's name, unless marked code is still running."""
    is_running = any(map(_is_marked, _running_codes()))
    if plain or is_running or _kept_for_others:
        is_running |= _restore_all(plain)
    _kept_for_others[:] = [True] * is_running
    if not is_running:
        builtins.__dict__.pop(MARK, None)


#: Not empty where marked code ran on after its cell, and may still be running.
_kept_for_others: list[bool] = []


def _restore_all(plain: Mapping[CodeType, CodeType]) -> bool:
    """Give every function its plain code; True where marked code is left that may run."""
    is_left = False
    for thing in _functions_and_suspended():
        kind = type(thing)
        if kind is not FunctionType:
            frame, code = (getattr(thing, _SUSPENDED[kind] + part) for part in ("_frame", "_code"))
            is_left |= frame is not None and _is_marked(code)
        elif _is_marked(thing.__code__) and thing.__code__.co_name != _WHOLE_CELL:
            is_left |= not _give_plain_code(thing, plain)
    return is_left


def _functions_and_suspended() -> Iterator[Any]:
    """Functions, generators and coroutines of the process; no Python line runs for each of all the other objects."""
    things = gc.get_objects()
    return compress(things, map({FunctionType, *_SUSPENDED}.__contains__, map(type, things)))


def _give_plain_code(function: FunctionType, plain: Mapping[CodeType, CodeType]) -> bool:
    code = plain.get(function.__code__)
    if code is None:
        return False
    function.__code__ = code
    return True


def _is_marked(code: CodeType) -> bool:
    return MARK in code.co_names


def _running_codes() -> Iterator[CodeType]:
    for innermost in (sys._getframe(), *frames_of_others().values()):
        yield from (frame.f_code for frame, _ in walk_stack(innermost))
