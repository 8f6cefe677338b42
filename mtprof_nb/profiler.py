"""`profile`: the surface of torch.profiler over one session and the traces it leaves."""

from __future__ import annotations

import json
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, ParamSpec, TypeVar, cast

from mtprof_nb.capture import session as sessions
from mtprof_nb.capture.activities import as_activity, resolve_activities, supported_activities, with_cuda
from mtprof_nb.capture.decorated import decorated
from mtprof_nb.capture.distributed import distributed_info
from mtprof_nb.capture.execution_trace import observer_from_environment
from mtprof_nb.capture.finish import finish
from mtprof_nb.capture.hook import EventTimes, Request
from mtprof_nb.capture.interrupts import GuardedExit, interrupts_held_back, run_all, when_left
from mtprof_nb.capture.schedule import ProfilerAction, Transitions, as_action, record_always, transitions
from mtprof_nb.capture.session import Options, Session
from mtprof_nb.errors import SessionError, check_metadata, warn
from mtprof_nb.model.merge import merge
from mtprof_nb.model.trace import STEP_PREFIX, Recorded, Trace, empty_trace, with_metadata
from mtprof_nb.results.recording_results import Results

P = ParamSpec("P")
R = TypeVar("R")

_last: profile | None = None


def last() -> profile | None:
    """The profile that was stopped last, or None."""
    return _last


def active() -> profile | None:
    """The profile that is recording, or is prepared to, or None."""
    session = sessions.active()
    return cast("profile | None", session.owner()) if session is not None else None


class profile(Results):
    """Records ops of the imported tensor runtimes between `start()` and `stop()`; a context manager, or a decorator.

    The parameters are torch's, with torch's defaults, and: `hook` ("auto", "kineto", "dispatch", "mindtorch_v2",
    "candle"), `max_events` (recording stops there) and `name` (a label for messages and titles).
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Any = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        hook: str = "auto",
        max_events: int = 5_000_000,
        name: str = "profile",
    ) -> None:
        if schedule is not None and not callable(schedule):
            msg = f"schedule must be callable, such as mtprof_nb.schedule(wait=1, warmup=1, active=3): got {schedule!r}"
            raise TypeError(msg)
        if isinstance(max_events, bool) or not isinstance(max_events, int) or max_events < 1:
            msg = f"max_events must be a whole number of at least 1, got {max_events!r}"
            raise ValueError(msg)
        if post_processing_timeout_s is not None and post_processing_timeout_s < 0:
            msg = "post_processing_timeout_s must be non-negative"
            raise ValueError(msg)
        usable, filters = resolve_activities(with_cuda(activities, use_cuda))
        self.name = name
        self.activities = {as_activity(activity) for activity in usable}
        self.activity_filters = {as_activity(name): set(kinds) for name, kinds in filters.items()}
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops, self.with_modules, self.acc_events = with_flops, with_modules, acc_events
        self.max_events, self.experimental_config = max_events, experimental_config
        self.execution_trace_observer = execution_trace_observer or observer_from_environment()
        self.post_processing_timeout_s = post_processing_timeout_s
        self.custom_trace_id_callback = custom_trace_id_callback
        self.on_trace_ready = on_trace_ready
        #: Adds to each finished window what was learnt of it elsewhere; set before `start()`.
        self.annotate: Callable[[Trace, EventTimes], Trace] | None = None
        self.schedule: Callable[[int], Any] = schedule or record_always
        self.record_steps = schedule is not None
        self.step_num = 0
        self.current_action = as_action(self.schedule(0))
        self.has_cudagraphs = False
        self.preset_metadata: dict[str, str] = {}
        self._metadata: dict[str, str] = {}
        request = Request(
            activities=usable,
            activity_filters=dict(filters),
            recorded=Recorded(record_shapes, profile_memory, with_stack, with_flops, with_modules),
            max_events=max_events,
            post_processing_timeout_s=post_processing_timeout_s,
            experimental_config=experimental_config,
            has_execution_trace=self.execution_trace_observer is not None,
        )
        self._options = Options(name, hook, request)
        self._session: Session | None = None
        self._is_started = False
        #: True while `on_trace_ready` runs.
        self._is_delivering = False
        self._step_scope: Any = None
        #: What the `with` statement was given last, and what tells that it let go of it.
        self.looked_up_exit: weakref.ref[Any] | None = None
        self._block: weakref.ref[Any] | None = None
        self._trace_id = ""
        self._trace: Trace | None = None

    def __repr__(self) -> str:
        return f"<profile {self.name!r}: {len(self.trace):,} events>"

    @property
    def action_map(self) -> Transitions:
        """The calls of each transition, by the action of the step that ends and of the one that begins."""
        # Not kept: a profile that holds its own methods would live on, when lost, until a garbage collection.
        return transitions(
            prepare=self.prepare_trace,
            start=self.start_trace,
            stop=self._end_window,
            deliver=self._trace_ready,
            discard=self._discard_window,
        )

    @property
    def trace(self) -> Trace:
        """The finished recording: of the last window, or of all with `acc_events`."""
        return self._trace if self._trace is not None else empty_trace(label=self.name)

    @property
    def profiler(self) -> Any:
        """The recorder of the present window: torch's low-level profiler where Kineto is hooked.

        After one, its events, which answer as torch's profiler does then; None before the first.
        """
        window = self._session.window if self._session else None
        hook = window.hooks.get("kineto") if window else None
        recorded = self.events() if self._trace is not None else None
        return getattr(hook, "profiler", None) or window or recorded

    @property
    def use_device(self) -> str | None:
        """The device beside the CPU that is recorded, in torch's spelling; None where there is none."""
        there = self.activities & supported_activities()
        return next((name.lower() for name in ("CUDA", "XPU", "NPU") if as_activity(name) in there), None)

    def start(self) -> None:
        """Begin. `SessionError` where another profiler is active, ours or torch's; that one goes on."""
        if self._is_started:
            msg = f"profiler {self.name!r} is already started: stop it first"
            raise SessionError(msg)
        try:
            with interrupts_held_back():
                self._open_session().is_started = self._is_started = True
                self._transit(ProfilerAction.NONE, self.current_action)
                self._enter_step()
        except BaseException:
            with suppress(Exception):  # why it could not start is what the user needs to know
                self._close_session()
            raise

    def step(self) -> None:
        """Say that the next step begins. `SessionError` outside a session."""
        if not self._is_started:
            msg = "step() needs a started profiler: call it between start() and stop(), or inside the with block"
            raise SessionError(msg)
        if self._is_delivering:
            msg = "step() inside on_trace_ready: the step that ended is being delivered; call it in the loop"
            raise SessionError(msg)
        session = self._session
        self._leave_step()
        previous, self.step_num = self.current_action, self.step_num + 1
        self.current_action = as_action(self.schedule(self.step_num))
        if self._session is not None:
            self._session.begin_step(self.step_num)
        try:
            self._transit(previous, self.current_action)
        finally:
            if self._session is session:  # on_trace_ready may have stopped it
                self._enter_step()

    def stop(self) -> None:
        """End, and freeze what was recorded. Nothing stays installed, whatever fails."""
        if not self._is_started and self._session is None:
            msg = "stop() without start(): the profiler is not running"
            raise SessionError(msg)
        global _last
        if self._is_delivering or not self._is_started:  # its window is over, or was only prepared
            self._close_session()
            _last = self
            return
        try:
            self._leave_step()
            self._transit(self.current_action, None)
        finally:
            self._close_session()
            _last = self
        if self.record_steps and self.step_num == 0:
            msg = "0 steps recorded: call step() at the end of each iteration, or drop the schedule"
            warn(msg)

    def __enter__(self) -> profile:
        try:
            self.start()
            self._block = when_left(self.looked_up_exit, self._stop_if_started)
            return self
        except BaseException:
            self._stop_if_started()
            raise

    def _leave(self, _kind: Any, error: BaseException | None, _traceback: Any) -> None:
        if error is not None:
            self._stop_if_started()
            return
        with self._observer_cleaned_up():
            if self._is_started:  # the block may have stopped it itself, as torch allows
                self.stop()

    __exit__ = GuardedExit(_leave)

    def _stop_if_started(self) -> None:
        try:
            with self._observer_cleaned_up():
                if self._is_started:
                    self.stop()
        except Exception as failure:  # the user's exception is the one that must arrive
            warn(f"the profiler could not finish: {failure}")

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """`function`, each call of it recorded to its end, also of one that is awaited or iterated over."""
        return decorated(self, function)

    def prepare_trace(self) -> None:
        """Warm up the next window."""
        inductor = sys.modules.get("torch._inductor.config")
        self.has_cudagraphs = bool(inductor and inductor.triton.cudagraphs)
        session = self._open_session()
        self._trace_id = (self.custom_trace_id_callback or sessions.new_trace_id)()
        session.prepare(self._trace_id)

    def start_trace(self) -> None:
        """Record in the prepared window; `AssertionError` before `prepare_trace`."""
        if self._session is None or self._session.window is None:
            msg = "Profiler must be initialized before starting trace"
            raise AssertionError(msg)
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.start()
        try:
            self._session.start()
        except BaseException:
            with suppress(Exception):  # why it could not start is what the user needs to know
                self._stop_observer()
            raise
        self._metadata |= self.preset_metadata
        if info := distributed_info():
            self._metadata["distributedInfo"] = info

    def stop_trace(self) -> None:
        """End the window and freeze it into `trace`."""
        if self._session is None or self._session.window is None:
            msg = "Profiler must be initialized before stopping trace"
            raise AssertionError(msg)
        run_all(
            self._stop_observer if self._session.is_recording else None,
            partial(self._keep_window, self._session),
            None if self._is_started else self._close_session,
        )

    def _end_window(self) -> None:
        """Call `stop_trace`, unless the user has called it already, or an interrupted `stop()` has."""
        if self._session is None or self._session.window is not None:
            self.stop_trace()

    def _stop_observer(self) -> None:
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.stop()

    @contextmanager
    def _observer_cleaned_up(self) -> Iterator[None]:
        try:
            yield
        finally:
            if self.execution_trace_observer is not None:
                self.execution_trace_observer.cleanup()

    def attach_new_runtimes(self) -> None:
        """Hook runtimes that were imported since the recording began."""
        if self._session is not None and self._session.window is not None and self._session.is_recording:
            self._session.window.attach_new_runtimes()

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[Any]) -> None:
        """Leave ops of these activities out of the recording, or take them in again."""
        chosen = frozenset(as_activity(item).value for item in activities)
        if self._session is not None and self._session.window is not None and self._session.is_recording:
            self._session.window.toggle(enable, chosen)

    def add_metadata(self, key: str, value: str) -> None:
        """Add a string to the exported trace."""
        # A value that is no string is an AttributeError in torch, and scripts rely on it.
        self.add_metadata_json(key, json.dumps(value.replace("", "")))

    def add_metadata_json(self, key: str, value: str) -> None:
        """Add JSON text to the exported trace; text that is no JSON is exported as a string."""
        check_metadata(key, value)
        self._metadata[key] = value
        if self._trace is not None:
            self._trace = with_metadata(self._trace, {key: value})

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Add JSON text as `add_metadata_json` does, before the recording starts."""
        check_metadata(key, value)
        self.preset_metadata[key] = value

    def get_trace_id(self) -> str | None:
        """The present or last window's id, None before the first."""
        return self._trace_id or None

    def set_custom_trace_id_callback(self, callback: Callable[[], str] | None) -> None:
        """Let `callback` name the windows from the next one on."""
        self.custom_trace_id_callback = callback

    def _open_session(self) -> Session:
        session = self._session or Session(self._options, weakref.ref(self), self.step_num)
        sessions.activate(session)  # one that was only prepared may have given way to another
        self._session = session
        return session

    def _close_session(self) -> None:
        with interrupts_held_back():
            self._is_started, self._block = False, None
            session, self._session = self._session, None
            if session is None:
                return
            run_all(
                self._stop_observer if session.is_recording else None,
                session.stop if session.window is not None else None,
                partial(sessions.deactivate, session),
            )

    def _keep_window(self, session: Session) -> None:
        trace = finish(*session.stop(), label=self.name, metadata=self._metadata, annotate=self.annotate)
        if self.acc_events and self._trace is not None:
            trace = merge([self._trace, trace])
        self._trace = trace

    def _discard_window(self) -> None:
        """End a window that was warmed up and never recorded, and keep the one before."""
        if self._session is not None and self._session.window is not None:
            self._session.stop()

    def _trace_ready(self) -> None:
        if self.on_trace_ready is None:
            return
        self._is_delivering = True
        try:
            self.on_trace_ready(self)
        finally:
            self._is_delivering = False

    def _enter_step(self) -> None:
        session = self._session
        if self.record_steps and session is not None and session.window is not None and session.is_recording:
            self._step_scope = session.window.scope(f"{STEP_PREFIX}{self.step_num}")
            self._step_scope.__enter__()

    def _leave_step(self) -> None:
        scope, self._step_scope = self._step_scope, None
        if scope is not None:
            scope.__exit__(None, None, None)

    def _transit(self, previous: ProfilerAction, current: ProfilerAction | None) -> None:
        failure, session = None, self._session
        for action in self.action_map.get((previous, current), ()):
            try:
                action()
            except BaseException as error:
                # The user's callback may fail without harm to the windows that follow.
                if action != self._trace_ready:
                    raise
                failure = error
            if self._session is not session:  # the user's callback has stopped it
                break
        if failure is not None:
            raise failure
