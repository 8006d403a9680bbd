"""A small reader and writer of GGUF files, to make split and broken ones. Shares no code with src/.

Source: the GGUF specification, version 3, little-endian.
"""
import struct

SCALAR_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY = 8, 9
U16, I32 = 2, 5
ALIGNMENT = 32


class Tensor:
    def __init__(self, name, shape, type_id, data):
        self.name, self.shape, self.type_id, self.data = name, shape, type_id, data


class Model:
    """Keys as (name, type, encoded value); tensors in the order of the file."""

    def __init__(self, keys, tensors):
        self.keys, self.tensors = keys, tensors

    def tensor(self, name):
        return next(t for t in self.tensors if t.name == name)

    def set_string(self, name, text):
        value = string_bytes(text)
        self.keys = [(k, t, value if k == name else v) for k, t, v in self.keys]


def string_bytes(text):
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        self.at += count
        return self.data[self.at - count:self.at]

    def number(self, form):
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))[0]

    def string(self):
        return self.take(self.number("Q")).decode()

    def skip_value(self, kind):
        if kind == STRING:
            self.take(self.number("Q"))
        elif kind == ARRAY:
            element, count = self.number("I"), self.number("Q")
            if element in SCALAR_BYTES:
                self.take(SCALAR_BYTES[element] * count)
            else:
                for _ in range(count):
                    self.skip_value(element)
        else:
            self.take(SCALAR_BYTES[kind])


def read(path):
    cursor = Cursor(path.read_bytes())
    assert cursor.take(4) == b"GGUF" and cursor.number("I") == 3
    tensor_count, key_count = cursor.number("Q"), cursor.number("Q")
    keys = []
    for _ in range(key_count):
        name, kind = cursor.string(), cursor.number("I")
        begin = cursor.at
        cursor.skip_value(kind)
        keys.append((name, kind, cursor.data[begin:cursor.at]))
    infos = []
    for _ in range(tensor_count):
        name = cursor.string()
        shape = [cursor.number("Q") for _ in range(cursor.number("I"))]
        infos.append((name, shape, cursor.number("I"), cursor.number("Q")))
    base = -(-cursor.at // ALIGNMENT) * ALIGNMENT
    # Tensors lie in the order of their offsets; what lies between two is padding.
    offsets = sorted(offset for *_, offset in infos) + [len(cursor.data) - base]
    end = dict(zip(offsets, offsets[1:]))
    return Model(keys, [Tensor(name, shape, kind, cursor.data[base + at:base + end[at]])
                        for name, shape, kind, at in infos])


def write(path, model):
    out = bytearray(b"GGUF" + struct.pack("<IQQ", 3, len(model.tensors), len(model.keys)))
    for name, kind, value in model.keys:
        out += string_bytes(name) + struct.pack("<I", kind) + value
    offset = 0
    for tensor in model.tensors:
        out += string_bytes(tensor.name) + struct.pack("<I", len(tensor.shape))
        out += b"".join(struct.pack("<Q", n) for n in tensor.shape)
        out += struct.pack("<IQ", tensor.type_id, offset)
        offset += -(-len(tensor.data) // ALIGNMENT) * ALIGNMENT
    for tensor in model.tensors:
        out += bytes(-len(out) % ALIGNMENT) + tensor.data
    path.write_bytes(out)


def part_path(folder, number, count):
    return folder / f"model-{number:05}-of-{count:05}.gguf"


def split(model, folder, count, first_holds_tensors=True):
    """Writes `count` parts as llama.cpp names and marks them; returns their paths."""
    holders = list(range(count)) if first_holds_tensors else list(range(1, count))
    share = -(-len(model.tensors) // len(holders))
    paths = []
    for number in range(count):
        keys = [("split.no", U16, struct.pack("<H", number)),
                ("split.count", U16, struct.pack("<H", count)),
                ("split.tensors.count", I32, struct.pack("<i", len(model.tensors)))]
        tensors = []
        if number in holders:
            at = holders.index(number) * share
            tensors = model.tensors[at:at + share]
        path = part_path(folder, number + 1, count)
        write(path, Model((model.keys if number == 0 else []) + keys, tensors))
        paths.append(path)
    return paths
