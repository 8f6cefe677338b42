"""Every error that is this package's own. Each message states the problem, then the next step."""


class MtprofError(Exception):
    """Base of the package's own errors."""


class HookError(MtprofError, RuntimeError):
    """A runtime cannot be listened to: it is missing, too old, or its hook is unknown."""


class SessionError(MtprofError, RuntimeError):
    """A profiler is used outside its session, or while another one is active."""


class ExportError(MtprofError, OSError):
    """A file could not be written. The file that was there before is whole."""


class MtprofWarning(UserWarning):
    """Something was recorded incompletely, and the message says what."""
