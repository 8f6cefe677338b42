"""Recordings that others made: traces of Kineto, Ascend's, and exports of this package."""

from mtprof_nb.reading.chrome_file import read as read
from mtprof_nb.reading.clock_alignment import align as align
from mtprof_nb.reading.columns.recording_facts import rank_in_name as rank_in_name
