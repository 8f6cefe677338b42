"""Both decoders give the same events, in whatever parts they come."""

import json
from typing import Any

import pytest

from mtprof_nb.reading.spans.span_facts import how_of
from mtprof_nb.reading.text.event_records import Decoder, Wanted
from mtprof_nb.reading.text.json_stream import best_decoder
from mtprof_nb.reading.text.plain_json import PlainDecoder


def _event(category: str | None = None, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "name": "mm", "args": args} | ({} if category is None else {"cat": category})


PARTS = [
    [_event("cpu_op", step=1)],
    [_event("cpu_op", step=2), _event(step=3), _event("cpu_op or another", step=4)],
    [_event("kernel", step=5), _event("cpu_op", flops=6), _event("kernel", step=7)],
    [_event("cpu_op or another"), _event(), _event("kernel", stream=8)],
]


@pytest.mark.parametrize("decoder", [best_decoder(), PlainDecoder()], ids=["best", "plain"])
def test_events_keep_their_category_and_their_members(decoder: Decoder) -> None:
    for part in PARTS:
        batches = decoder.batches(json.dumps(part).encode(), how_of, Wanted())

        found = {
            int(row): (batch.category, {key: column[at] for key, column in batch.args.items() if column[at] != -1})
            for batch in batches
            for at, row in enumerate(batch.rows)
        }
        assert found == {row: (one.get("cat"), one["args"]) for row, one in enumerate(part)}
