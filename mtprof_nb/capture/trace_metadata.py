"""Metadata and ids of a profile's traces, by torch's methods."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import replace

from mtprof_nb.capture.distributed import distributed_info
from mtprof_nb.capture.machine.thread_counts import counts_text, thread_counts
from mtprof_nb.errors import check_metadata
from mtprof_nb.model.trace import Trace
from mtprof_nb.model.tracks import THREADS, with_metadata


class TraceMetadata:
    """The part of `profile` that describes its traces: texts for the exported file, and the id of each window."""

    def __init__(self, custom_trace_id_callback: Callable[[], str] | None) -> None:
        self.custom_trace_id_callback = custom_trace_id_callback
        self.preset_metadata: dict[str, str] = {}
        self._metadata: dict[str, str] = {}
        self._threads_at_start: dict[str, float] | None = None
        self._trace_id = ""
        self._trace: Trace | None = None

    def add_metadata(self, key: str, value: str) -> None:
        """Add a string to the exported trace."""
        # As in torch, a value that is no string is an AttributeError, and scripts rely on it.
        self.add_metadata_json(key, json.dumps(value.replace("", "")))

    def add_metadata_json(self, key: str, value: str) -> None:
        """Add JSON text to the exported trace; text that is no JSON is exported as a string."""
        check_metadata(key, value)
        self._metadata[key] = value
        if self._trace is not None:
            processes = with_metadata(self._trace.processes, {key: value})
            self._trace = replace(self._trace, processes=processes)

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Add JSON text as `add_metadata_json` does, before the recording starts."""
        check_metadata(key, value)
        self.preset_metadata[key] = value

    def get_trace_id(self) -> str | None:
        """The id of the present or last window, None before the first."""
        return self._trace_id or None

    def set_custom_trace_id_callback(self, callback: Callable[[], str] | None) -> None:
        """Let `callback` give each window its id, from the next one on."""
        self.custom_trace_id_callback = callback

    def _new_trace_id(self) -> str:
        """The id of a window that begins: the callback's, or a random one as torch writes it."""
        callback = self.custom_trace_id_callback
        self._trace_id = f"{uuid.uuid4().int:032X}" if callback is None else callback()
        return self._trace_id

    def _add_metadata_of_start(self) -> None:
        self._metadata |= self.preset_metadata
        if info := distributed_info():
            self._metadata["distributedInfo"] = info

    def _note_threads(self) -> None:
        self._threads_at_start = thread_counts()

    def _add_metadata_of_end(self) -> None:
        """Add the numbers of threads and processors, if they were the same throughout."""
        self._metadata.pop(THREADS, None)
        if (text := counts_text(self._threads_at_start)) is not None:
            self._metadata[THREADS] = text
