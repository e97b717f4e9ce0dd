"""Ways to damage a file. Each takes a generator and a path, and damages that file in place."""

import io
import json
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from safetensors.numpy import load, save

Mutation = Callable[[np.random.Generator, Path], None]


# Bytes


def cut(rng: np.random.Generator, path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: rng.integers(len(content) + 1)])


def flip(rng: np.random.Generator, path: Path) -> None:
    content = bytearray(path.read_bytes())
    for place in rng.integers(len(content), size=rng.integers(1, 9)):
        content[place] ^= 1 << rng.integers(8)
    path.write_bytes(content)


def flip_head(rng: np.random.Generator, path: Path) -> None:
    """Where formats keep what everything else depends on."""
    content = bytearray(path.read_bytes())
    for place in rng.integers(min(len(content), 200), size=rng.integers(1, 4)):
        content[place] = rng.integers(256)
    path.write_bytes(content)


def swap(rng: np.random.Generator, path: Path) -> None:
    content = path.read_bytes()
    a, b, c, d = sorted(rng.integers(len(content) + 1, size=4))
    path.write_bytes(content[:a] + content[c:d] + content[b:c] + content[a:b] + content[d:])


def insert(rng: np.random.Generator, path: Path) -> None:
    content, place = path.read_bytes(), int(rng.integers(path.stat().st_size + 1))
    path.write_bytes(content[:place] + rng.bytes(int(rng.integers(1, 64))) + content[place:])


def drop(rng: np.random.Generator, path: Path) -> None:
    content = path.read_bytes()
    start, end = sorted(rng.integers(len(content) + 1, size=2))
    path.write_bytes(content[:start] + content[end:])


def blank(rng: np.random.Generator, path: Path) -> None:
    content = bytearray(path.read_bytes())
    start, end = sorted(rng.integers(len(content) + 1, size=2))
    content[start:end] = bytes(end - start)
    path.write_bytes(content)


def empty(rng: np.random.Generator, path: Path) -> None:
    path.write_bytes(b"")


BYTES: tuple[Mutation, ...] = (cut, flip, flip_head, swap, insert, drop, blank, empty)


# What is no plain file


def pipe(rng: np.random.Generator, path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(rng: np.random.Generator, path: Path) -> None:
    path.unlink()
    path.mkdir()


def dangling(rng: np.random.Generator, path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def circle(rng: np.random.Generator, path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def endless(rng: np.random.Generator, path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


PLACES: tuple[Mutation, ...] = (pipe, folder, dangling, circle, endless)


# JSON

RAW = "@raw@"
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 0.5, 2, 10**6, -(10**9), 2**40, 1e300, "", "x", "x" * 5_000),
    *("\x00", "nan", "../../x", "\ud800", "=1+1", "a\nb", [], {}, [None], {"a": None}, [[1], "a"]),
    *(f"{RAW}{token}{RAW}" for token in ("1e400", "-1e400", "NaN", "Infinity", "9" * 400)),
    *(f"{RAW}{'[' * n}{']' * n}{RAW}" for n in (60, 900, 100_000)),
    RAW + '{"a":' * 20_000 + "1" + "}" * 20_000 + RAW,
)


def places_in(found: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value, as the keys that lead to it."""
    pairs: Any = ()
    if isinstance(found, dict):
        pairs = found.items()
    elif isinstance(found, list):
        pairs = enumerate(found)
    below = [place for key, value in pairs for place in places_in(value, (*above, key))]
    return [above, *below] if above else below


def put(found: Any, place: tuple[Any, ...], value: Any) -> None:
    for key in place[:-1]:
        found = found[key]
    found[place[-1]] = value


def remove(found: Any, place: tuple[Any, ...]) -> None:
    for key in place[:-1]:
        found = found[key]
    del found[place[-1]]


def dump(found: Any) -> bytes:
    """JSON, with what no value of Python stands for written as it is."""
    text = json.dumps(found).replace(f'"{RAW}', "").replace(f'{RAW}"', "")
    return text.replace('\\"a\\":', '"a":').encode()


def edited(rng: np.random.Generator, content: bytes) -> bytes:
    """JSON with a few values removed, replaced or made huge."""
    found = json.loads(content)
    for _ in range(rng.integers(1, 3)):
        places = places_in(found)
        if not places:
            break
        # A place near the top is as likely as one of thousands further down.
        depth = rng.choice(sorted({len(place) for place in places}))
        place = [place for place in places if len(place) == depth][
            rng.integers(sum(len(place) == depth for place in places))
        ]
        if rng.random() < 0.35:
            remove(found, place)
        else:
            put(found, place, ODD[rng.integers(len(ODD))])
    return dump(found)


def edit_json(rng: np.random.Generator, path: Path) -> None:
    path.write_bytes(edited(rng, path.read_bytes()))


def other_json(rng: np.random.Generator, path: Path) -> None:
    path.write_bytes(dump(ODD[rng.integers(len(ODD))]))


JSON: tuple[Mutation, ...] = (edit_json, edit_json, edit_json, edit_json, other_json, *BYTES[:4])


def edit_header(rng: np.random.Generator, path: Path) -> None:
    """Of a safetensors file: its length, and JSON that says where each array lies."""
    content = path.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header = edited(rng, content[8 : 8 + size])
    path.write_bytes(struct.pack("<Q", len(header)) + header + content[8 + size :])


def huge_header(rng: np.random.Generator, path: Path) -> None:
    path.write_bytes(struct.pack("<Q", 2 ** int(rng.integers(20, 64))) + path.read_bytes()[8:])


def _largest(dtype):
    """A number that its type holds and hardly any sum of such."""
    return np.finfo(dtype).max if dtype.kind == "f" else np.iinfo(dtype).max


def odd_tensors(rng: np.random.Generator, path: Path) -> None:
    """Well-formed arrays of other shapes, kinds and values than they should be."""
    arrays = load(path.read_bytes())
    for name in rng.choice(sorted(arrays), size=min(2, len(arrays)), replace=False):
        array = arrays[name]
        odd = (
            *(
                np.ravel(array)[:0],
                array[..., None],
                array.ravel(),
                array.astype("f8"),
                array.astype("i8"),
            ),
            *(np.full_like(array, np.nan if array.dtype.kind == "f" else 99), array * 0),
            *(np.concatenate([array, array]) if array.ndim else array[None], array.T),
            np.full_like(array, _largest(array.dtype)),
        )
        arrays[name] = np.ascontiguousarray(odd[rng.integers(len(odd))])
    if rng.random() < 0.2:
        arrays.pop(sorted(arrays)[0])
    path.write_bytes(save(arrays))


TENSORS: tuple[Mutation, ...] = (edit_header, odd_tensors, odd_tensors, huge_header, *BYTES)


# Arrays


def _odd_array(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    n = len(array)
    if array.dtype.kind in "US":
        odd: tuple[Any, ...] = (
            *(np.array([""] * n), np.array(["\ud800"] * n), np.array(["a\nb", "\x00b"] * n)[:n]),
            *(array[:-1], array[:, None], np.arange(n), np.full(n, -1), np.full(n, np.nan)),
            *(np.array(["x" * 3_000] * n), np.array(["unknown"] * n), np.array(["=1+1"] * n)),
            *(array.astype("S"), np.array([b"\xff\xfe"] * n), np.arange(n) + 0.5),
            *(np.arange(n).astype("M8[s]"), np.array([None, "a"] * n, object)[:n], array[:1]),
        )
    else:
        worst = array.astype("f8")
        values = (np.nan, np.inf, -np.inf, 3e38, 1e300, -3e38, 1e30)
        worst[rng.integers(n)] = values[rng.integers(len(values))]
        odd = (
            *(worst, worst.astype("f8"), array * 1e30, array * 1e-40, array * 0, array[:1]),
            *(array[:0], array[:, :0], array[0], array[..., None], array[:, None, None]),
            *(array.astype("c8"), array.astype("U4"), array.astype("S4"), array > 0),
            *(array.astype("i4").view("m8[s]").repeat(2, 1), array.astype(object), array.T),
            *(np.asfortranarray(array), array.astype(">f4"), array.astype("f2"), array.astype("O")),
            *(np.array(1.0), np.array([]), array.repeat(40, 1), array.astype("u8") + 2**63),
            np.zeros(n, [("a", "f4"), ("b", "f4")]),
        )
    return odd[rng.integers(len(odd))]


def odd_array(rng: np.random.Generator, path: Path) -> None:
    np.save(path, _odd_array(rng, np.load(path)), allow_pickle=True)


def odd_arrays(rng: np.random.Generator, path: Path) -> None:
    with np.load(path) as file:
        arrays: dict[str, Any] = dict(file)
    name = sorted(arrays)[rng.integers(len(arrays))]
    match rng.integers(5):
        case 0:
            del arrays[name]
        case 1:
            arrays["classes"] = (["a", "a"], [1, 2], [[1]], "x", ["a"], [None])[rng.integers(6)]
        case _:
            arrays[name] = _odd_array(rng, arrays[name])
    np.savez(path, **arrays)


def odd_header(rng: np.random.Generator, path: Path) -> None:
    """Of an array file: the dictionary of Python that says shape and kind."""
    content = path.read_bytes()
    lines = (
        *(b"(600000000000, 8)", b"(-1, 8)", b"(2, 2, 2)", b"()", b"(8" + b"," * 500 + b")"),
        *(b"(1e9, 8)", b"([], 8)", b"'x'", b"(((((" + b"(" * 3_000, b"(99999999999999999999, 8)"),
    )
    shape = content[content.index(b"'shape': ") + 9 : content.index(b", }")]
    odd = lines[rng.integers(len(lines))].ljust(len(shape))
    if rng.random() < 0.3:
        content = content.replace(b"<f4", (b"|O8", b"<f9", b"<q1", b"\xff\xff4")[rng.integers(4)])
    path.write_bytes(content.replace(shape, odd, 1))


def odd_zip(rng: np.random.Generator, path: Path) -> None:
    """The same arrays, packed in another way or under other names."""
    packed = io.BytesIO()
    methods = (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, zipfile.ZIP_DEFLATED)
    with (
        zipfile.ZipFile(path) as old,
        zipfile.ZipFile(packed, "w", methods[rng.integers(3)]) as new,
    ):
        for row, name in enumerate(old.namelist()):
            content = old.read(name)
            if rng.random() < 0.5:
                content = content[: rng.integers(len(content))]
            new.writestr(
                (name, name, f"../{name}", name[:-1], f"y{row}.npy")[rng.integers(5)], content
            )
    path.write_bytes(packed.getvalue())


NPY: tuple[Mutation, ...] = (odd_array, odd_array, odd_array, odd_header, odd_header, *BYTES)
NPZ: tuple[Mutation, ...] = (odd_arrays, odd_arrays, odd_arrays, odd_zip, *BYTES)


# Tables


def edit_cells(rng: np.random.Generator, path: Path) -> None:
    """Of a CSV file: cells that nobody expects."""
    odd = (
        *(b"", b"nan", b"-1", b"=1+1", b"@x", b"\x00", b"caf\xe9", b'"', b'"a\nb"', b"x" * 9_000),
        *(b"../../../etc/passwd", b"/dev/zero", b",,,", b"\xef\xbb\xbfa", b"\r", b" ", b"1e400"),
        *("\u202e\u200b".encode(), b"\xed\xa0\x80", b"00012", b"group 1", b"ignore", b"unknown"),
    )
    lines = path.read_bytes().splitlines()
    for _ in range(rng.integers(1, 4)):
        row = rng.integers(len(lines)) if rng.random() < 0.7 else 0
        cells = lines[row].split(b",")
        cells[rng.integers(len(cells))] = odd[rng.integers(len(odd))]
        lines[row] = b",".join(cells)
    path.write_bytes((b"\n", b"\r\n", b"\r")[rng.integers(3)].join(lines))


def edit_rows(rng: np.random.Generator, path: Path) -> None:
    lines = path.read_bytes().splitlines()
    match rng.integers(7):
        case 0:
            lines += lines[1:]
        case 1:
            del lines[0]
        case 2:
            lines = lines[:1]
        case 3:
            lines = [line.replace(b",", b";") for line in lines]
        case 4:
            lines = [line.rpartition(b",")[0] for line in lines]
        case 5:
            lines = [line + b"," + line for line in lines]
        case _:
            path.write_bytes(b"\n".join(lines).decode("utf-8", "replace").encode("utf-16"))
            return
    path.write_bytes(b"\n".join(lines))


CSV: tuple[Mutation, ...] = (edit_cells, edit_cells, edit_cells, edit_rows, edit_rows, *BYTES)


def odd_columns(rng: np.random.Generator, path: Path) -> None:
    """Of a Parquet file: columns of other kinds and values, missing or double ones."""
    table = pq.read_table(path)
    n, place = table.num_rows, int(rng.integers(table.num_columns))
    whole = list(range(n))
    odd = (
        pa.array([None] * n),
        pa.array([None] * n, pa.float32()),
        pa.array([float("nan")] * n),
        pa.array([3e38] * n),
        pa.array(whole, pa.timestamp("us", "Nowhere/Else")),
        pa.array([2**62] * n, pa.timestamp("us")),
        pa.array([[1.0]] * n),
        pa.array([[]] * n, pa.list_(pa.float32())),
        pa.array([{"a": 1}] * n),
        pa.array([b"\xff"] * n),
        pa.array(["\x00"] * n),
        pa.array([""] * n),
        pa.array(["same"] * n),
        pa.array(whole, pa.decimal128(30, 2)),
        pa.array(whole, pa.duration("ns")),
        pa.array(["a"] * n).dictionary_encode(),
        pa.array([2**63] * n, pa.uint64()),
        pa.array([-5] * n),
        pa.array([True] * n),
    )
    match rng.integers(6):
        case 0:
            table = table.remove_column(place)
        case 1:
            table = table.append_column(table.column_names[place], table.column(place))
        case 2:
            table = table.slice(0, int(rng.integers(2)))
        case _:
            name = table.column_names[place]
            table = table.set_column(place, name, odd[rng.integers(len(odd))])
    pq.write_table(table, path)


PARQUET: tuple[Mutation, ...] = (odd_columns, odd_columns, odd_columns, odd_columns, *BYTES)


# Images


def other_picture(rng: np.random.Generator, path: Path) -> None:
    mode = ("1", "P", "RGBA", "CMYK", "I;16", "F", "LA", "I")[rng.integers(8)]
    size = ((1, 1), (9, 300), (1_000, 1), (8, 8))[rng.integers(4)]
    kind = "TIFF" if mode in ("CMYK", "F") else "PNG"
    Image.new(mode, size).save(path, format=kind)


def huge_picture(rng: np.random.Generator, path: Path) -> None:
    """A header that promises gigapixels."""
    content = bytearray(path.read_bytes())
    content[16:24] = struct.pack(">II", *(int(2 ** rng.integers(10, 31)) for _ in range(2)))
    path.write_bytes(content)


PICTURES: tuple[Mutation, ...] = (other_picture, other_picture, huge_picture, *BYTES)
