"""Tab completion of the flags, and of their values."""

from __future__ import annotations

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from mtprof_nb.cell.flags import CONFIG_PARSER, PARSER

_PARSERS = {"%%mtprofile": PARSER, "%mtprofile": PARSER, "%mtprofile_config": CONFIG_PARSER}


def offered(line: str, token: str) -> list[str]:
    """Completions of `token`, which ends `line`: values of the flag before it, or flags."""
    before = line.removesuffix(token).split()
    parser = _PARSERS.get(before[0]) if before else None
    if parser is None:
        return []
    values = next((option.values for option in parser.options if before[-1] in option.spellings), ())
    choices = values or (parser.spellings if token.startswith("-") else ())
    return [choice for choice in choices if choice.startswith(token)]


# A matcher, and not a `complete_command` hook, because Jedi takes `--with-` for an expression and completes it too.
@context_matcher(identifier="mtprof_nb.flags")  # type: ignore[untyped-decorator]
def match_flags(context: CompletionContext) -> SimpleMatcherResult:
    """Complete flags and their values, and suppress all other completions there."""
    texts = offered(context.text_until_cursor, context.token)
    return {"completions": [SimpleCompletion(text) for text in texts], "suppress": bool(texts), "ordered": True}
