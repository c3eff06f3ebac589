"""Numbers with more places than a decimal has: they end no process, and only those in decimals are bad."""

import json

import pyarrow as pa
import pytest

from joinlib.source.kafka.bad import Bad
from joinlib.source.kafka.encodings import column
from joinlib.source.kafka.keys import key_columns
from joinlib.source.parse import CsvFormat, csv_table, json_table
from joinlib.source.payloads import Payloads
from joinlib.source.places import check_all, refused

KIND = pa.decimal128(38, 5)
WANT = pa.schema([("d", KIND), ("f", pa.float64()), ("s", pa.string())])
TINY = ["1e-99999999", "0E-99999999", "-1.5e-080", "0." + "0" * 39 + "1", "+.1e-38", "1e-2147483648"]
CSV = CsvFormat(header=False, delimiter=",", quote='"', null="")


@pytest.mark.parametrize("text", TINY)
def test_no_decimal_is_made_of_them(text: str) -> None:
    with pytest.raises(pa.ArrowInvalid):
        csv_table(f"1,2,x\n{text},2,x".encode(), WANT, WANT.names, CSV)
    with pytest.raises(pa.ArrowInvalid):
        json_table(f'{{"d":"{text}"}}'.encode(), WANT)
    with pytest.raises(Bad):
        key_columns(Payloads.of([text.encode()]), pa.schema([("d", KIND)]))
    with pytest.raises(pa.ArrowInvalid):
        check_all(pa.array(["1", None, text]))
    with pytest.raises(Bad):
        column(WANT.field("d"), [text], None, "micros")


@pytest.mark.parametrize("text", TINY)
def test_other_columns_may_have_them(text: str) -> None:
    """Beside decimals."""
    made = [
        csv_table(f"1,,{text}".encode(), WANT, WANT.names, CSV),
        json_table(f'{{"d":1,"s":"{text}"}}'.encode(), WANT),
    ]
    assert [table.column("s").to_pylist() for table in made] == [[text]] * 2
    assert csv_table(f"1,{text},x".encode(), WANT, WANT.names, CSV).column("f").to_pylist() == [float(text)]


@pytest.mark.parametrize(
    "text",
    [
        "1e-38",
        "0." + "1" * 38,
        "3f8e-123456",
        "e-99",
        "1-1e-5",
        "a-1e-999",
        "0" * 50,
        "1e99",
        json.dumps({"d": 1e-5}),
    ],
)
def test_what_is_none(text: str) -> None:
    assert refused(text.encode()) is None
