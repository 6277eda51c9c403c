"""Reads and writes GGUF version 3 files as far as the demo models need it (numpy only).

  write(path, metadata, tensors)   metadata: [(key, type, value)]; tensors: [(name, array, "F32" | "F16" | "Q8_0")]
  read(path)                       -> ({key: value}, {name: float32 array}); Q8_0 comes back as libllama sees it

Array shapes are those of numpy; the file has them in reverse. `python3 gguf.py FILE` prints what is inside."""
import os
import struct
import sys

import numpy as np

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
SCALAR = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q", I64: "q", F64: "d"}
TENSOR_TYPE = {"F32": 0, "F16": 1, "Q8_0": 8}
FILE_TYPE = {"F32": 0, "F16": 1, "Q8_0": 7}
ALIGN, BLOCK, BLOCK_BYTES = 32, 32, 34


def strings():
    return (ARRAY, STRING)


def ints():
    return (ARRAY, I32)


def pack_string(text):
    raw = text.encode("utf-8")
    return struct.pack("<Q", len(raw)) + raw


def pack_value(kind, value):
    """Type tag and value; `kind` is a scalar type, STRING, or (ARRAY, element type)."""
    if isinstance(kind, tuple):
        element = kind[1]
        body = b"".join(map(pack_string, value)) if element == STRING else b"".join(struct.pack("<" + SCALAR[element],
                                                                                                v) for v in value)
        return struct.pack("<IIQ", ARRAY, element, len(value)) + body
    return struct.pack("<I", kind) + (pack_string(value) if kind == STRING else struct.pack("<" + SCALAR[kind], value))


def to_q8_0(array):
    """Blocks of 32: one float16 scale and 32 signed bytes."""
    x = np.ascontiguousarray(array, np.float32).reshape(-1, BLOCK)
    scale = np.abs(x).max(1, keepdims=True) / 127
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
    out = np.empty((len(x), BLOCK_BYTES), np.uint8)
    out[:, :2] = scale.astype("<f2").view(np.uint8)
    out[:, 2:] = np.rint(x * inverse).astype(np.int8).view(np.uint8)
    return out.tobytes()


def from_q8_0(raw, shape):
    blocks = np.frombuffer(raw, np.uint8).reshape(-1, BLOCK_BYTES)
    scale = blocks[:, :2].copy().view("<f2").astype(np.float32)
    return (blocks[:, 2:].view(np.int8).astype(np.float32) * scale).reshape(shape)


def pack_tensor(array, kind):
    if kind == "Q8_0":
        return to_q8_0(array)
    return np.ascontiguousarray(array, np.float32).astype({"F32": "<f4", "F16": "<f2"}[kind]).tobytes()


def write(path, metadata, tensors):
    """Through a temporary name, so that nobody ever loads half a file."""
    packed = [(name, array.shape, kind, pack_tensor(array, kind)) for name, array, kind in tensors]
    with open(path + ".tmp", "wb") as f:
        f.write(b"GGUF" + struct.pack("<IQQ", 3, len(packed), len(metadata)))
        for key, kind, value in metadata:
            f.write(pack_string(key) + pack_value(kind, value))
        offset = 0
        for name, shape, kind, data in packed:
            f.write(pack_string(name) + struct.pack("<I", len(shape)))
            f.write(struct.pack(f"<{len(shape)}Q", *reversed(shape)) + struct.pack("<IQ", TENSOR_TYPE[kind], offset))
            offset += len(data) + -len(data) % ALIGN
        f.write(b"\0" * (-f.tell() % ALIGN))
        for _, _, _, data in packed:
            f.write(data + b"\0" * (-len(data) % ALIGN))
    os.replace(path + ".tmp", path)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values if len(values) > 1 else values[0]

    def string(self):
        n = self.take("Q")
        self.at += n
        return bytes(self.data[self.at - n:self.at]).decode("utf-8", "replace")

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            element, n = self.take("IQ")
            return [self.value(element) for _ in range(n)]
        return self.take(SCALAR[kind])


def read(path):
    with open(path, "rb") as f:
        r = Reader(f.read())
    assert r.data[:4] == b"GGUF"
    r.at = 4
    _, n_tensors, n_keys = r.take("IQQ")
    metadata = {}
    for _ in range(n_keys):
        key = r.string()
        metadata[key] = r.value(r.take("I"))
    found = []
    for _ in range(n_tensors):
        name, dims = r.string(), r.take("I")
        shape = tuple(r.take("Q") for _ in range(dims))[::-1]
        found.append((name, shape) + r.take("IQ"))
    start, tensors = r.at + -r.at % ALIGN, {}
    for name, shape, kind, offset in found:
        n, at = int(np.prod(shape)), start + offset
        if kind == TENSOR_TYPE["Q8_0"]:
            tensors[name] = from_q8_0(r.data[at:at + n // BLOCK * BLOCK_BYTES], shape)
        else:
            form = {0: "<f4", 1: "<f2"}[kind]
            tensors[name] = np.frombuffer(r.data, form, n, at).astype(np.float32).reshape(shape)
    return metadata, tensors


if __name__ == "__main__":
    keys, arrays = read(sys.argv[1])
    for key, value in keys.items():
        print(key, f"[{len(value)}] {value[:4]}" if isinstance(value, list) else repr(value)[:100])
    for name, array in arrays.items():
        print(name, array.shape)
