"""Both decoders give the same events, in whatever parts they come."""

import json
from typing import Any

import pytest

from mtprof_nb.reading.spans.span_facts import how_of
from mtprof_nb.reading.text.event_records import Decoder, Wanted
from mtprof_nb.reading.text.json_stream import best_decoder
from mtprof_nb.reading.text.plain_json import PlainDecoder


def _event(category: str | None = None, **args: Any) -> dict[str, Any]:
    members = {key.replace("_", " "): value for key, value in args.items()}
    return {"ph": "X", "name": "mm", "args": members} | ({} if category is None else {"cat": category})


PARTS = [
    [_event("cpu_op", External_id=1)],
    [_event("cpu_op", External_id=2), _event(External_id=3), _event("cpu_op or another", External_id=4)],
    [_event("kernel", External_id=5), _event("cpu_op", Sequence_number=6), _event("kernel", External_id=7)],
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
