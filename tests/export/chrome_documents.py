"""Chrome traces as a reader has them."""

import json
from pathlib import Path
from typing import Any

from mtprof_nb.export import chrome_trace
from mtprof_nb.model.trace import Trace


def written(trace: Trace, path: Path) -> dict[str, Any]:
    chrome_trace.write(trace, path)
    found: dict[str, Any] = json.loads(path.read_text("ascii"))
    return found


def events_of(document: dict[str, Any], **facts: Any) -> list[dict[str, Any]]:
    return [one for one in document["traceEvents"] if all(one.get(key) == value for key, value in facts.items())]
