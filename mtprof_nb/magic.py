"""`%%mtprofile`, `%mtprofile`, `%mtprofile_config` and `%mtcompare`: parse, capture, show."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from IPython.core import magic

from mtprof_nb.cell import statement
from mtprof_nb.cell.against import compared, recording_named
from mtprof_nb.cell.cell_recording import CellRecording
from mtprof_nb.cell.delivery import deliver
from mtprof_nb.cell.flags import CONFIG_PARSER, PARSER, Defaults, Flags
from mtprof_nb.cluster.rank_cell import RankCell
from mtprof_nb.comparing import Comparison
from mtprof_nb.profiler import profile

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


@magic.magics_class
class MtprofMagics(magic.Magics):  # type: ignore[misc]
    """The magics of one shell, and the flags that its notebook has set."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self.defaults = Defaults()
        self._recording: CellRecording | None = None

    @magic.no_var_expand
    @magic.output_can_be_silenced
    @magic.cell_magic("mtprofile")
    def profile_cell(self, line: str, cell: str | None) -> Any:
        __tracebackhide__ = True
        flags, rest = self.defaults.read(line)
        if rest:
            PARSER.error(f"{rest!r} stands after %%mtprofile: code begins on the next line")
        if flags.help:
            return print(PARSER.format_help())  # noqa: T201
        if flags.ranks:
            job = RankCell(self.shell, flags, self._against(flags)).run(cell or "")
            return job if flags.returns else None
        recording = self._recording_of(flags)
        if cell is not None:
            return self._run(recording, cell, self.shell.user_ns, flags)
        # This call replaced the cell's first line; the rest of the cell runs next.
        self._recording = recording
        recording.deliver_after_cell()
        return recording.begin()

    @magic.no_var_expand
    @magic.output_can_be_silenced
    @magic.needs_local_scope
    @magic.line_magic("mtprofile")
    def profile_statement(self, line: str, local_ns: dict[str, Any]) -> Any:
        __tracebackhide__ = True
        flags, code = self.defaults.read(line)
        if flags.help:
            return print(PARSER.format_help())  # noqa: T201
        if not code:
            PARSER.error("%mtprofile needs a statement: for a whole cell, %%mtprofile on its first line")
        if flags.ranks:
            PARSER.error("--ranks runs a whole cell: write %%mtprofile --ranks on its first line")
        return self._run(self._recording_of(flags), code, local_ns, flags)

    @magic.no_var_expand
    @magic.line_magic
    def mtprofile_config(self, line: str) -> None:
        if text := self.defaults.configure(line):
            print(text)  # noqa: T201

    @magic.no_var_expand
    @magic.line_magic
    def mtcompare(self, line: str) -> Comparison:
        """`%mtcompare before after`: compare two profiles or functions, each a variable, `last`, or a file."""
        return compared(line, self.shell.user_ns)

    def recorded(self) -> profile | None:
        """End the recording of the running cell and return its profile: the last line of a cell with `-r`."""
        return self._recording.end() if self._recording else None

    def _recording_of(self, flags: Flags) -> CellRecording:
        deliver_to = partial(deliver, self.shell, flags, self._against(flags))
        return CellRecording(self.shell, flags.profile_options, deliver_to, flags.recorded_if_cheap)

    def _against(self, flags: Flags) -> Any:
        return None if flags.against is None else recording_named(flags.against, self.shell.user_ns)

    def _run(self, recording: CellRecording, code: str, local_ns: dict[str, Any], flags: Flags) -> Any:
        __tracebackhide__ = True
        value, prof = recording.run(partial(statement.run, self.shell, code, local_ns)), recording.take()
        return prof if flags.returns else value


MtprofMagics.profile_cell.__doc__ = MtprofMagics.profile_statement.__doc__ = PARSER.format_help()
MtprofMagics.mtprofile_config.__doc__ = CONFIG_PARSER.format_help()
