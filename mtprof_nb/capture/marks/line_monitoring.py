"""Lines of the user's functions that carry no marks, by `sys.monitoring` of Python 3.12 and later.

Code that is not the user's causes one event, which disables its events: from then on it costs nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container
from traceback import walk_stack
from types import CodeType, FrameType
from typing import Any

from mtprof_nb.capture.marks.mark_buffers import MarkBuffers, cost_ns
from mtprof_nb.capture.marks.mark_transform import ENTER, LEAVE, LINE, MARK, Function, Place, Places
from mtprof_nb.capture.shared.garbage_collector import frames_of_others
from mtprof_nb.capture.shared.python_stacks import line_of
from mtprof_nb.model.source_files import is_user_file

_TOOL_NAME = "mtprof_nb"
#: Tool numbers that Python reserves for no kind of tool.
_TOOL_IDS = (3, 4)

#: None before Python 3.12.
_python: Any = getattr(sys, "monitoring", None)


class LineMonitor:
    """Turns events of `sys.monitoring` into marks, from `start` to `stop`, in the user's functions without marks."""

    def __init__(self, places: Places, buffers: MarkBuffers, unit_of_file: Callable[[str], int]) -> None:
        self._places = places
        self._buffers = buffers
        self._unit_of_file = unit_of_file
        self._tool: int | None = None
        #: Followed code and its scope, by identity: comparing equal code would compare all its constants.
        self._followed: dict[int, tuple[CodeType, int]] = {}
        #: Code that must not be followed, or no longer, by identity.
        self._left_out: dict[int, CodeType] = {}
        self._numbers: dict[tuple[int, int, int], int] = {}

    def start(self) -> bool:
        """Follow lines from now on; False before Python 3.12, or where other tools use both numbers."""
        if _python is None:
            return False
        self._tool = next((tool for tool in _TOOL_IDS if _python.get_tool(tool) is None), None)
        if self._tool is None:
            return False
        _python.use_tool_id(self._tool, _TOOL_NAME)
        events = _python.events
        for event, callback in (
            (events.PY_START, self._entered),
            (events.PY_RESUME, self._resumed),
            (events.LINE, self._line_began),
            (events.PY_RETURN, self._left),
            (events.PY_YIELD, self._left),
        ):
            _python.register_callback(self._tool, event, callback)
        # Enable again what an earlier recording disabled.
        _python.restart_events()
        _python.set_events(self._tool, events.PY_START | events.PY_RESUME)
        return True

    def stop(self) -> None:
        """Follow no more; a second call does nothing."""
        if self._tool is None:
            return
        tool, self._tool = self._tool, None
        events = _python.events
        _python.set_events(tool, events.NO_EVENTS)
        for code, _ in self._followed.values():
            _python.set_local_events(tool, code, events.NO_EVENTS)
        for event in (events.PY_START, events.PY_RESUME, events.LINE, events.PY_RETURN, events.PY_YIELD):
            _python.register_callback(tool, event, None)
        _python.free_tool_id(tool)

    def never_follow(self, code: CodeType) -> None:
        """Do not follow a function that has just got this code."""
        self._left_out[id(code)] = code

    def leave_out(self, scopes: Container[int]) -> list[str]:
        """Stop following the functions of `scopes`, and return their names.

        A function that is running on another thread, or below a followed one, is kept: its return would be missed.
        """
        wanted = {id(code): code for code, scope in self._followed.values() if scope in scopes}
        left = {key: code for key, code in wanted.items() if key not in self._left_out}
        ending = self._ending_frames(left)
        for frame in ending:
            self._buffers.add(self._number(frame.f_code, frame.f_code.co_firstlineno, LEAVE))
        self._left_out |= left
        for code in left.values():
            _python.set_local_events(self._tool, code, _python.events.NO_EVENTS)
        return [code.co_qualname for code in left.values()]

    def _ending_frames(self, codes: dict[int, CodeType]) -> list[FrameType]:
        """The running calls of `codes` that can end now, innermost first. Removes from `codes` what must be kept."""
        ending: list[FrameType] = []
        goes_on = False
        for frame, _ in walk_stack(sys._getframe()):
            key = id(frame.f_code)
            if key in codes and not goes_on:
                ending.append(frame)
            elif key in codes:
                del codes[key]
            elif key in self._followed or MARK in frame.f_code.co_names:
                goes_on = True
        for innermost in frames_of_others().values():
            for frame, _ in walk_stack(innermost):
                codes.pop(id(frame.f_code), None)
        return [frame for frame in ending if id(frame.f_code) in codes]

    def _entered(self, code: CodeType, _offset: int) -> Any:
        if not self._follows(code):
            return _python.DISABLE
        return self._mark(code, code.co_firstlineno, ENTER)

    def _resumed(self, code: CodeType, offset: int) -> Any:
        if not self._follows(code):
            return _python.DISABLE
        return self._mark(code, line_of(code, offset), LINE)

    def _line_began(self, code: CodeType, line: int) -> Any:
        return self._mark(code, line, LINE)

    def _left(self, code: CodeType, _offset: int, _value: object) -> Any:
        return self._mark(code, code.co_firstlineno, LEAVE)

    def _follows(self, code: CodeType) -> bool:
        """Whether this is a function of the user's without marks. If so, its line events are on from now on."""
        if id(code) in self._left_out:
            return False
        if id(code) in self._followed:
            return True
        if self._tool is None or MARK in code.co_names or code.co_name == "<module>":
            return False
        if not is_user_file(code.co_filename):
            return False
        function = Function(code.co_name, code.co_firstlineno, is_marked=False)
        self._followed[id(code)] = (code, self._places.add_scope(function))
        events = _python.events
        _python.set_local_events(self._tool, code, events.LINE | events.PY_RETURN | events.PY_YIELD)
        return True

    def _mark(self, code: CodeType, line: int, kind: int) -> Any:
        if self._buffers.note:
            return _python.DISABLE
        mark, number = self._buffers.mark, self._numbers.get((id(code), line, kind))
        if number is None:
            number = self._number(code, line, kind)
        now = -mark
        # Reading the clock may have inspected the marks, and left this function out.
        return _python.DISABLE if id(code) in self._left_out else mark.here[now, number]

    def _number(self, code: CodeType, line: int, kind: int) -> int:
        _, scope = self._followed[id(code)]
        number = self._places.number(Place(self._unit_of_file(code.co_filename), line, scope, kind))
        self._numbers[id(code), line, kind] = number
        return number


def monitored_cost_ns() -> int:
    """The gap between two marks of `sys.monitoring` where nothing runs in between."""

    def marking(buffers: MarkBuffers) -> Callable[[], Any]:
        places = Places()
        monitor = LineMonitor(places, buffers, lambda _file: 0)
        code = marking.__code__
        monitor._followed[id(code)] = (code, places.add_scope(Function("", 1)))
        return lambda: monitor._line_began(code, 1)

    return cost_ns(marking)
