"""Columns from buffers are those that pyarrow makes of arrays and lists."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2osc.data.arrow import number_column, text_column


@pytest.mark.parametrize("kind", [np.int64, np.float32, np.float64, bool, np.uint8])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 1_000])
def test_numbers(kind, n):
    random = np.random.default_rng(n)
    values, missing = random.integers(0, 2, n).astype(kind), random.random(n) < 0.3
    for column, wanted in (
        (number_column(values), pa.array(values)),
        (number_column(values, missing), pa.array(values, mask=missing)),
        (number_column(np.repeat(values, 2)[::2]), pa.array(values)),
    ):
        column.validate(full=True)
        assert column.equals(wanted)


@given(st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]))))
def test_texts(texts):
    column = text_column(texts)
    column.validate(full=True)
    assert column.equals(pa.array(texts, pa.string()))


def test_pandas_is_not_imported():
    code = (
        "import sys, io, numpy as np, pyarrow as pa\n"
        "from s2osc.app.answer_tables import write_csv\n"
        "from s2osc.data.arrow import number_column, text_column\n"
        "columns = [number_column(np.arange(3)), text_column(['a', '=b', None])]\n"
        "write_csv(pa.Table.from_arrays(columns, ['x', 'y']), io.BytesIO())\n"
        "assert 'pandas' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
