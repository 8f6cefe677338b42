"""All dialects of Chrome traces."""

from __future__ import annotations

from mtprof_nb.reading.dialects.ascend import ASCEND
from mtprof_nb.reading.dialects.kineto import KINETO
from mtprof_nb.reading.dialects.xla import XLA

#: The first dialect that recognises a file reads it. Kineto's, the last one, takes every file.
DIALECTS = (XLA, ASCEND, KINETO)
