"""One recording window: its hooks, which start together and stop together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from mtprof_nb.capture.collector_watch import CollectorWatch, WatchedCollections
from mtprof_nb.capture.compile_watch import CompileWatch, WatchedCompilations
from mtprof_nb.capture.finish import StoppedWindow
from mtprof_nb.capture.hook import Hook, Request, SoFar
from mtprof_nb.capture.interrupts import interrupts_held_back, run_all, threads_without_signals
from mtprof_nb.capture.native.native_sampler import NativeSampler
from mtprof_nb.capture.native.recorder_cache import is_switched_off
from mtprof_nb.capture.native.recorder_loading import why_not
from mtprof_nb.capture.registry import HOOK_KINDS, SCOPES_ALONE, HookKind, default_hooks, hooks_for, preferred
from mtprof_nb.capture.samples.python_sampler import Sampler, started_sampler
from mtprof_nb.capture.samples.sampled_stacks import SampledStacks
from mtprof_nb.capture.torch_scope import Together, torch_scope
from mtprof_nb.errors import warn
from mtprof_nb.model.trace import Trace

_FALLBACK = (
    "PyTorch is recorded by torch.profiler (hook 'kineto'), because the native recorder is absent: {why}. Without it, "
    "lines inside functions of other files, other threads, samples of Python code and the progress of a cell are "
    "missing, and stacks have the lines of `def`. To have them, install a C++ compiler and run: "
    "python -m mtprof_nb build"
)
_has_warned = False


def _warn_of_fallback() -> None:
    """Warn once a process of what is missing where `auto` had to take torch's own profiler, against the user's wish."""
    global _has_warned
    why = why_not()
    if why is not None and not _has_warned and not is_switched_off():
        _has_warned = True
        warn(_FALLBACK.format(why=why))


class Window:
    """Hooks of one window. `stop` and a failed `start` leave none of them installed, whatever fails."""

    def __init__(self, hook: str, request: Request) -> None:
        self.request = request
        self.hooks: dict[str, Hook] = {
            kind.name: self._make(kind) for kind in hooks_for(hook, request) or [SCOPES_ALONE]
        }
        self._follows_imports = hook == "auto"
        if hook == "auto" and "kineto" in self.hooks:
            _warn_of_fallback()
        #: By the clock of the session; 0 before the start.
        self._began_ns = 0
        self._is_partial = "CPU" not in request.activities
        self._start_ns = 0
        self._sampler: Sampler | None = None
        #: When the sampler began, where that was not at the start.
        self._sampled_from_ns: int | None = None
        self._samples: SampledStacks | None = None
        self._watch = CollectorWatch()
        self._collections: WatchedCollections | None = None
        self._compile_watch = CompileWatch()
        self._compilations: WatchedCompilations | None = None

    def _make(self, kind: HookKind) -> Hook:
        recorded = (self.request.recorded_if_cheap if kind.is_cheap else None) or self.request.recorded
        made: Hook = kind.make(replace(self.request, recorded=recorded))
        return made

    def prepare(self) -> None:
        with threads_without_signals():
            for hook in self.hooks.values():
                hook.prepare()

    def start(self) -> None:
        """Start every hook, or none."""
        self._began_ns = self.request.clock.now_ns()
        try:
            self._compile_watch.start()  # first: Kineto would record what it calls of torch
            with threads_without_signals():
                for hook in self.hooks.values():
                    hook.start()
            if self.request.recorded.with_python:
                self._start_sampler(started_sampler)
            self._watch.start()
        except BaseException:
            with suppress(Exception):  # why it could not start is what the user needs to know
                self._stop_hooks()
            raise
        self._start_ns = self.request.clock.now_ns() - self._began_ns

    def attach_new_runtimes(self) -> None:
        """With hook `auto`, hook the runtimes that were imported since the start."""
        if not self._follows_imports:
            return
        hooked = {HOOK_KINDS[name].runtime for name in self.hooks if name in HOOK_KINDS}
        for default in default_hooks():
            if default.runtime not in hooked and default.runtime_is_imported:
                kind = preferred(default, self.request)
                self.hooks[kind.name] = hook = self._make(kind)
                if kind.name == "kineto":
                    _warn_of_fallback()
                try:
                    with threads_without_signals():
                        hook.start()
                except BaseException:
                    with suppress(Exception):
                        self.hooks.pop(kind.name).stop()
                    raise
        self._sample_from_here()

    def _sample_from_here(self) -> None:
        """Take the samples that could not be taken before: the native sampler needs torch."""
        if self._sampler is None and self.request.recorded_if_cheap and self.request.recorded_if_cheap.with_python:
            self._start_sampler(NativeSampler.started)
            self._sampled_from_ns = self.request.clock.now_ns() if self._sampler is not None else None

    def _start_sampler(self, start: Callable[[], Sampler | None]) -> None:
        with interrupts_held_back(), threads_without_signals():
            try:
                self._sampler = start()
            except (MemoryError, RuntimeError):
                warn("Python code is not sampled: the system has no thread or no memory left; end some threads")

    def scope(self, name: str, args: str | None = None) -> AbstractContextManager[Any]:
        """A named scope, recorded by the first hook. It reaches other listeners of torch too."""
        first = next(iter(self.hooks))
        scope = self.hooks[first].scope(name, args)
        reaches_torch = HOOK_KINDS.get(first, SCOPES_ALONE).reaches_torch
        theirs = None if reaches_torch else torch_scope(name, args)
        return scope if theirs is None else Together(scope, theirs)

    def so_far(self) -> SoFar | None:
        """Return the slowest ops and lines so far, by the first hook that knows them."""
        return next((state for hook in self.hooks.values() if (state := hook.so_far()) is not None), None)

    def toggle(self, enable: bool, activities: frozenset[str]) -> None:
        """Record, or leave out, these activities from now on."""
        self._is_partial |= not enable
        for hook in self.hooks.values():
            hook.toggle(enable, activities)

    def stop(self) -> StoppedWindow:
        """Stop every hook, then raise the first failure of one."""
        ended_ns = self.request.clock.now_ns()
        traces = self._stop_hooks()
        return StoppedWindow(
            request=self.request,
            traces=traces,
            hooks=tuple(traces),
            began_ns=self._began_ns,
            ended_ns=ended_ns,
            start_ns=self._start_ns,
            is_partial=self._is_partial,
            samples=self._samples,
            sampled_from_ns=self._sampled_from_ns,
            collections=self._collections,
            compilations=self._compilations,
        )

    def abandon(self) -> None:
        """Uninstall the hooks in a forked child; it is not recorded."""
        self._watch.stop()
        self._compile_watch.stop()
        if self._sampler is not None:
            self._sampler.abandon()
        for hook in self.hooks.values():
            with suppress(Exception):  # a failing hook must not end the child
                hook.abandon()

    def _stop_hooks(self) -> dict[str, Trace]:
        traces: dict[str, Trace] = {}

        def stop(name: str) -> None:
            traces[name] = self.hooks[name].stop()

        # The watch comes last, and leaves out what is late: Kineto may record Python code that runs here.
        hooks = (partial(stop, name) for name in reversed(self.hooks))
        run_all(self._stop_sampler, *hooks, self._stop_watch, self._stop_compile_watch)
        return {name: traces[name] for name in self.hooks}

    def _stop_watch(self) -> None:
        self._collections = self._watch.stop()

    def _stop_compile_watch(self) -> None:
        self._compilations = self._compile_watch.stop()

    def _stop_sampler(self) -> None:
        sampler = self._sampler
        if sampler is not None:
            try:
                with interrupts_held_back():
                    self._samples, self._sampler = sampler.stop(), None
            except MemoryError:
                self._sampler = None
                warn("the samples of Python code are lost: there was not enough memory to read them; free some")
