"""Compilations of `torch.compile`: of what, why, how long each stage took, and graph breaks."""

from __future__ import annotations

from typing import NamedTuple

#: Why something was compiled.
FIRST_CALL, FIRST_BACKWARD = "first call", "first backward"
AGAIN, CUDA_GRAPH = "again", "CUDA graph"
#: How the name begins of the event of a compilation; the name of the function follows.
COMPILE_PREFIX = "torch.compile: "
#: How the name begins of the event that runs compiled code; the number of its compilation follows.
REGION_PREFIX = "Torch-Compiled Region: "


class GraphBreak(NamedTuple):
    """A line at which the compiler ended a graph; "" and 0 stand for what torch does not say."""

    file: str
    line: int
    #: The first line of torch's reason, its explanation, and its hints, a line each.
    reason: str
    explanation: str = ""
    hint: str = ""
    #: How often it was met, in this compilation.
    times: int = 1

    @property
    def first_hint(self) -> str:
        """The first of torch's hints, which is the most exact."""
        return self.hint.partition("\n")[0]


class Compilation(NamedTuple):
    """One compilation. Its event has its time and its place; the stages add up to that time."""

    #: Torch's number, as "0/1": of the function, and of its version.
    compile_id: str = ""
    function: str = ""
    file: str = ""
    line: int = 0
    #: `FIRST_CALL`, `FIRST_BACKWARD`, `AGAIN` or `CUDA_GRAPH`.
    cause: str = FIRST_CALL
    #: Torch's reason to compile again; "" for a first time.
    reason: str = ""
    dynamo_ns: int = 0
    aot_ns: int = 0
    inductor_ns: int = 0
    build_ns: int = 0
    #: Graphs that came from inductor's cache, or from AOT's, and graphs that did not.
    cache_hits: int = 0
    cache_misses: int = 0
    breaks: tuple[GraphBreak, ...] = ()
    #: Why it failed, and why CUDA graphs were not used; "" where neither is so.
    failure: str = ""
    cuda_graph_skipped: str = ""
