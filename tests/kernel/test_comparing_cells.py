"""`%%mtprofile --against` and `%mtcompare` in a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Kernel, Ran

BEFORE = "%%mtprofile -o before\nx = torch.ones(8, 8)\ny = x @ x\nz = y + y"
AFTER = "%%mtprofile --against {}\nx = torch.ones(8, 8)\ny = x @ x\nz = y * 2"


def _comparison(ran: Ran) -> str:
    """The text that a cell showed, with its panel or without."""
    return "\n".join(content["data"]["text/plain"] for content in ran.of("display_data"))


def test_the_difference_is_a_part_of_the_panel(kernel: Kernel) -> None:
    kernel.run(BEFORE)

    ran = kernel.run(AFTER.format("before"))

    assert len(ran.panels) == 1
    text = _comparison(ran)
    assert "against before: cannot tell" in text
    assert "op aten::mul" in text
    edited = next(line for line in text.splitlines() if line.startswith("line z = y * 2"))
    assert edited.endswith("edited")


def test_the_last_profile_is_the_one_before_this_cell(kernel: Kernel) -> None:
    kernel.run(BEFORE)

    assert "op aten::mul" in _comparison(kernel.run(AFTER.format("last")))


def test_a_file_can_be_compared_with(kernel: Kernel, tmp_path: Path) -> None:
    kernel.run(BEFORE)
    kernel.run(f"before.save({str(tmp_path / 'b.mtp')!r}); del before")

    assert "op aten::mul" in _comparison(kernel.run(AFTER.format(tmp_path / "b.mtp")))


@pytest.mark.parametrize(
    ("name", "said"), [("nothing_there", "neither a variable nor a file"), ("torch", "cannot compare")]
)
def test_what_cannot_be_compared_with_is_said_before_the_cell_runs(kernel: Kernel, name: str, said: str) -> None:
    ran = kernel.run(f"%%mtprofile --against {name}\nran = True")

    assert said in ran.stderr + ran.traceback
    assert kernel.value("'ran' in globals()") is False


def test_two_profiles_are_compared_by_name(kernel: Kernel) -> None:
    kernel.run(BEFORE)
    kernel.run(AFTER.format("before").replace("--against before", "-q -o after"))

    ran = kernel.run("%mtcompare before after")

    assert ran.result is not None
    assert ran.result.startswith("after against before: cannot tell")
    assert {"text/html", "text/markdown"} < set(ran.of("execute_result")[0]["data"])


def test_the_page_of_a_cell_has_the_comparison_too(kernel: Kernel, tmp_path: Path) -> None:
    kernel.run(BEFORE)

    kernel.run(AFTER.format(f"before -H {tmp_path / 'page.html'} -q"))

    text = (tmp_path / "page.html").read_text()
    assert all(f'data-mtprof="first-{tab}"' in text for tab in ("operators", "differences", "two_timelines"))


def test_a_comparison_can_be_kept(kernel: Kernel) -> None:
    kernel.run(BEFORE)

    ran = kernel.run("import mtprof_nb\nkept = mtprof_nb.compare(before, before)\nkept.verdict.answer")

    assert (ran.result, _comparison(ran)) == ("'cannot tell'", "")


def test_a_comparison_needs_two_names(kernel: Kernel) -> None:
    ran = kernel.run("%mtcompare before")

    assert "needs two names" in ran.stderr + ran.traceback


def test_somebody_at_a_notebook_gets_the_panel(kernel: Kernel) -> None:
    kernel.run(BEFORE)

    ran = kernel.run("%mtcompare before before", allow_stdin=True)

    page, widget, _script = (content["data"] for content in ran.of("display_data"))
    assert "b against a: cannot tell" in page["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in widget


def test_a_method_that_another_cell_replaced_is_among_the_changed_lines(kernel: Kernel) -> None:
    kernel.run(
        "class Net(torch.nn.Module):\n    def forward(self, x):\n        h = x @ x\n        return self.last(h)\n\n"
        "    def last(self, h):\n        return h + h\n\nnet, x = Net(), torch.ones(8, 8)"
    )
    profiled = "%%mtprofile -q --with-stack -o {}\ny = net(x)"
    kernel.run(profiled.format("before"))
    kernel.run("def forward(self, x):\n    h = x.mm(x)\n    return self.last(h)\n\nNet.forward = forward")
    kernel.run(profiled.format("after"))
    kernel.run("from mtprof_nb import compare\nfrom mtprof_nb.comparison.side_by_side import side_by_side")
    kernel.run("found = side_by_side(compare(before, after).compared.sides)")

    changed = (
        "[(row.a.text.strip(), row.b.text.strip()) for file in found for row in file.rows if row.change == 'edited']"
    )
    assert kernel.value(changed) == [("h = x @ x", "h = x.mm(x)")]
