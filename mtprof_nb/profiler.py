"""`profile`: the interface of torch.profiler, over one session and its finished traces."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from traceback import clear_frames
from typing import Any, ParamSpec, TypeVar, cast

from mtprof_nb.capture import session as sessions
from mtprof_nb.capture.activities import DEVICES, as_activity, resolve_activities, supported_activities, with_cuda
from mtprof_nb.capture.decorated import decorated
from mtprof_nb.capture.finish import finish
from mtprof_nb.capture.hook import EventTimes, Request, SoFar
from mtprof_nb.capture.interrupts import GuardedExit, interrupts_held_back, run_all, when_left
from mtprof_nb.capture.machine.available_memory import give_back
from mtprof_nb.capture.schedule import RECORDING, ProfilerAction, Transitions, as_action, record_always, transitions
from mtprof_nb.capture.session import Options, Session
from mtprof_nb.capture.torch_private.compiled_code import has_cudagraphs
from mtprof_nb.capture.torch_scope import observer_from_environment
from mtprof_nb.capture.trace_metadata import TraceMetadata
from mtprof_nb.capture.window import Window
from mtprof_nb.errors import SessionError, warn
from mtprof_nb.model.merge import merge
from mtprof_nb.model.trace import STEP_PREFIX, Columns, Recorded, Trace, empty_trace
from mtprof_nb.recording import Recording, Results

P = ParamSpec("P")
R = TypeVar("R")

_OUT_OF_MEMORY = (
    "there is not enough memory to read the recording, which is lost: free memory, or record less "
    "(a schedule, a smaller max_events, fewer flags)"
)

_last: profile | Recording | None = None


def last() -> profile | Recording | None:
    """The profile that was stopped last, or the recording of ranks that was made last, or None."""
    return _last


def remember(recording: Recording) -> None:
    """Make a recording of ranks the last one."""
    global _last
    _last = recording


def active() -> profile | None:
    """The profile that is recording, or is prepared to, or None."""
    session = sessions.active()
    return cast("profile | None", session.owner()) if session is not None else None


class profile(TraceMetadata, Results):
    """Records ops of the imported tensor runtimes between `start()` and `stop()`. A context manager and a decorator.

    The parameters and defaults are those of `torch.profiler.profile`, and `with_python` (samples of Python stacks
    divide the time outside ops among functions), `hook` ("auto", or the name of one), `max_events` (recording stops
    there) and `name` (a label for titles and messages).
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
        with_python: bool = False,
        hook: str = "auto",
        max_events: int = 5_000_000,
        name: str = "profile",
    ) -> None:
        if schedule is not None and not callable(schedule):
            msg = f"schedule must be callable, such as mtprof_nb.schedule(wait=1, warmup=1, active=3): got {schedule!r}"
            raise TypeError(msg)
        super().__init__(custom_trace_id_callback)
        usable, filters = resolve_activities(with_cuda(activities, use_cuda))
        self.name = name
        self.activities = {as_activity(activity) for activity in usable}
        self.activity_filters = {as_activity(name): set(kinds) for name, kinds in filters.items()}
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops, self.with_modules, self.acc_events = with_flops, with_modules, acc_events
        self.max_events, self.experimental_config, self.with_python = max_events, experimental_config, with_python
        #: Torch's observer that writes an execution trace meanwhile, None where there is none.
        self.execution_trace_observer: Any = execution_trace_observer or observer_from_environment()
        self.post_processing_timeout_s = post_processing_timeout_s
        self.on_trace_ready = on_trace_ready
        #: Called for each finished window with its trace, to add lines to it; set before `start()`.
        self.annotate: Callable[[Trace, EventTimes], Columns] | None = None
        self.schedule: Callable[[int], Any] = schedule or record_always
        self.record_steps = schedule is not None
        self.step_num = 0
        self.current_action = as_action(self.schedule(0))
        self.has_cudagraphs = False
        request = Request(
            activities=usable,
            activity_filters=dict(filters),
            recorded=Recorded(record_shapes, profile_memory, with_stack, with_flops, with_modules, with_python),
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
        #: The `__exit__` that a `with` statement looked up last, and the reference that reacts to its release.
        self.looked_up_exit: weakref.ref[Any] | None = None
        self._block: weakref.ref[Any] | None = None

    def __repr__(self) -> str:
        return f"<profile {self.name!r}: {len(self.trace):,} events>"

    @property
    def action_map(self) -> Transitions:
        """The calls between two steps, by the action of the step that ends and of the one that begins."""
        # Made anew: a profile that holds its own bound methods is a cycle, and lives on when nobody else holds it.
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
        """The recorder of the present window, which is torch's low-level profiler with hook `kineto`.

        After a window, its events, which answer as torch's profiler does then. None before the first window.
        """
        window = self._session.window if self._session else None
        hook = window.hooks.get("kineto") if window else None
        recorded = self.events() if self._trace is not None else None
        return getattr(hook, "profiler", None) or window or recorded

    @property
    def use_device(self) -> str | None:
        """Torch's name of the first recorded device other than the CPU, None where there is none."""
        there = self.activities & supported_activities()
        return next((name.lower() for name in DEVICES if as_activity(name) in there), None)

    def start(self) -> None:
        """Start recording. `SessionError` where another profiler is active, ours or torch's; that one goes on."""
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
        """Begin the next step. `SessionError` outside a session."""
        if not self._is_started:
            msg = "step() needs a started profiler: call it between start() and stop(), or inside the with block"
            raise SessionError(msg)
        if self._is_delivering:
            msg = "step() inside on_trace_ready: the step that ended is being delivered; call it in the loop"
            raise SessionError(msg)
        session, following = self._session, as_action(self.schedule(self.step_num + 1))
        goes_on = self.current_action is ProfilerAction.RECORD and following in RECORDING
        if session is not None and not goes_on:
            session.check_thread()
        self._leave_step()
        previous, self.step_num = self.current_action, self.step_num + 1
        self.current_action = following
        if self._session is not None:
            self._session.begin_step(self.step_num)
        try:
            self._transit(previous, self.current_action)
        finally:
            if self._session is session:  # on_trace_ready may have stopped it
                self._enter_step()

    def stop(self) -> None:
        """Stop recording and make `trace`. Nothing stays installed, whatever fails."""
        if not self._is_started and self._session is None:
            msg = "stop() without start(): the profiler is not running"
            raise SessionError(msg)
        if self._session is not None:
            self._session.check_thread()
        self._stop()

    def _stop(self) -> None:
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
            warn("0 steps recorded: call step() at the end of each iteration, or drop the schedule")

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
        # The block may have stopped it itself, as torch allows.
        run_all(self._stop if self._is_started else None, partial(self._observe, "cleanup"))

    __exit__ = GuardedExit(_leave)

    def _stop_if_started(self) -> None:
        try:
            self._leave(None, None, None)
        except Exception as failure:  # the user's exception is the one that must arrive
            warn(f"the profiler could not finish: {failure}")

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """`function` with each call recorded to its end; coroutines and generators too."""
        return decorated(lambda: self, function, with_generators=True)

    def prepare_trace(self) -> None:
        """Open the next window, and warm it up."""
        self.has_cudagraphs = has_cudagraphs()
        self._open_session().prepare(self._new_trace_id())

    def start_trace(self) -> None:
        """Record in the prepared window; `AssertionError` before `prepare_trace`."""
        session = self._prepared_session("starting")
        self._note_threads()
        self._observe("start")
        try:
            session.start()
        except BaseException:
            with suppress(Exception):  # why it could not start is what the user needs to know
                self._observe("stop")
            raise
        self._add_metadata_of_start()

    def stop_trace(self) -> None:
        """Stop the window and make `trace` of it."""
        session = self._prepared_session("stopping")
        run_all(
            partial(self._observe, "stop") if session.is_recording else None,
            partial(self._keep_window, session),
            None if self._is_started else self._close_session,
        )

    def _observe(self, action: str) -> None:
        """Call this method of torch's execution-trace observer, if there is one."""
        if self.execution_trace_observer is not None:
            getattr(self.execution_trace_observer, action)()

    def _prepared_session(self, doing: str) -> Session:
        if self._session is None or self._session.window is None:
            msg = f"Profiler must be initialized before {doing} trace"
            raise AssertionError(msg)
        return self._session

    def _end_window(self) -> None:
        """Call `stop_trace`, unless the user has called it already, or an interrupted `stop()` has."""
        if self._session is None or self._session.window is not None:
            self.stop_trace()

    def _recording_window(self) -> Window | None:
        """The window that is recording now."""
        return self._session.window if self._session is not None and self._session.is_recording else None

    def record_if_cheap(self, recorded: Recorded) -> None:
        """Record these facts, before it starts, with a hook that records everything at little cost."""
        request = replace(self._options.request, recorded_if_cheap=recorded)
        self._options = replace(self._options, request=request)

    def attach_new_runtimes(self) -> None:
        """Hook runtimes that were imported since the recording began."""
        if (window := self._recording_window()) is not None:
            window.attach_new_runtimes()

    def so_far(self) -> SoFar | None:
        """The slowest ops and lines of the present window; None if the hook does not know yet."""
        window = self._recording_window()
        return window.so_far() if window is not None else None

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[Any]) -> None:
        """Record ops of these activities from now on, or leave them out."""
        chosen = frozenset(as_activity(item).value for item in activities)
        if (window := self._recording_window()) is not None:
            window.toggle(enable, chosen)

    def _open_session(self) -> Session:
        session = self._session or Session(self._options, weakref.ref(self), self.step_num)
        sessions.activate(session)  # again, where another profile has replaced one that was only prepared
        self._session = session
        return session

    def _close_session(self) -> None:
        with interrupts_held_back():
            self._is_started, self._block = False, None
            session, self._session = self._session, None
            if session is None:
                return
            run_all(
                partial(self._observe, "stop") if session.is_recording else None,
                session.stop if session.window is not None else None,
                partial(sessions.deactivate, session),
            )

    def _keep_window(self, session: Session) -> None:
        try:
            stopped = session.stop()
            self._add_metadata_of_end()
            trace = finish(*stopped, label=self.name, metadata=self._metadata, annotate=self.annotate)
            if self.acc_events and self._trace is not None:
                trace = merge([self._trace, trace])
        except MemoryError as error:
            clear_frames(error.__traceback__)  # they hold what was read of the recording
            raise MemoryError(_OUT_OF_MEMORY) from None
        self._trace = trace
        del stopped
        give_back(len(trace))

    def _discard_window(self) -> None:
        """Stop a window that was warmed up and never recorded; `trace` stays that of the window before."""
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
        window = self._recording_window()
        if self.record_steps and window is not None:
            self._step_scope = window.scope(f"{STEP_PREFIX}{self.step_num}")
            self._step_scope.__enter__()

    def _leave_step(self) -> None:
        scope, self._step_scope = self._step_scope, None
        if scope is not None:
            scope.__exit__(None, None, None)

    def _transit(self, previous: ProfilerAction, current: ProfilerAction | None) -> None:
        if previous is ProfilerAction.RECORD and current in RECORDING:
            return  # nothing is to be done in most steps, and making the map takes longer than all else
        failure, session = None, self._session
        for action in self.action_map.get((previous, current), ()):
            try:
                action()
            except BaseException as error:
                # A failure of the user's callback must not keep the next window from its start.
                if action != self._trace_ready:
                    raise
                failure = error
            if self._session is not session:  # the user's callback has stopped it
                break
        if failure is not None:
            raise failure
