"""A table as a pandas DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mtprof_nb.tables.table import Table

if TYPE_CHECKING:
    import pandas as pd


def as_dataframe(table: Table) -> pd.DataFrame:
    """A DataFrame with a column for each column of the table, under its key."""
    return data_frame(table.rows, columns=[column.key for column in table.columns])


def data_frame(content: Any, **options: Any) -> pd.DataFrame:
    """`content` as a pandas DataFrame; an `ImportError` with the remedy where pandas is missing."""
    try:
        import pandas as pd
    except ImportError as error:
        msg = "to_dataframe() needs pandas, which is not installed: pip install pandas"
        raise ImportError(msg) from error
    return pd.DataFrame(content, **options)
