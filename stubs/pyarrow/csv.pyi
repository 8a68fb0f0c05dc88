"""What we use of `pyarrow.csv`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from pyarrow.lib import Schema, Table, _AnyType, _Source

class InvalidRow(NamedTuple):
    expected_columns: int
    actual_columns: int
    number: int | None
    text: str

class ReadOptions:
    use_threads: bool
    block_size: int
    skip_rows: int
    skip_rows_after_names: int
    column_names: list[str]
    autogenerate_column_names: bool
    encoding: str
    def __init__(
        self,
        use_threads: bool | None = None,
        *,
        block_size: int | None = None,
        skip_rows: int | None = None,
        skip_rows_after_names: int | None = None,
        column_names: Sequence[str] | None = None,
        autogenerate_column_names: bool | None = None,
        encoding: str = "utf8",
    ) -> None: ...

class ParseOptions:
    delimiter: str
    def __init__(
        self,
        delimiter: str | None = None,
        *,
        quote_char: str | Literal[False] | None = None,
        double_quote: bool | None = None,
        escape_char: str | Literal[False] | None = None,
        newlines_in_values: bool | None = None,
        ignore_empty_lines: bool | None = None,
        invalid_row_handler: Callable[[InvalidRow], Literal["skip", "error"]] | None = None,
    ) -> None: ...

class ConvertOptions:
    def __init__(
        self,
        check_utf8: bool | None = None,
        *,
        column_types: Schema | Mapping[str, _AnyType] | None = None,
        default_column_type: _AnyType | None = None,
        null_values: Sequence[str] | None = None,
        true_values: Sequence[str] | None = None,
        false_values: Sequence[str] | None = None,
        decimal_point: str | None = None,
        strings_can_be_null: bool | None = None,
        quoted_strings_can_be_null: bool | None = None,
        include_columns: Sequence[str] | None = None,
        include_missing_columns: bool | None = None,
        auto_dict_encode: bool | None = None,
        auto_dict_max_cardinality: int | None = None,
        timestamp_parsers: Sequence[str] | None = None,
    ) -> None: ...

def read_csv(
    input_file: _Source,
    read_options: ReadOptions | None = None,
    parse_options: ParseOptions | None = None,
    convert_options: ConvertOptions | None = None,
) -> Table: ...
