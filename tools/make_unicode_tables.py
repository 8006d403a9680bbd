#!/usr/bin/env python3
"""Writes src/chat/unicode_tables.inc: character classes and case mappings of the Python it runs in.

Rows are {first, last, stride} for classes and {first, last, stride, delta} for mappings, so that a
binary search over `first` answers a question. Templates are written for Python's str methods, so
Python's own tables are the reference.
"""

import sys
import unicodedata

CODE_POINTS = [c for c in range(0x80, 0x110000) if not 0xD800 <= c <= 0xDFFF]


def runs(points):
    """Groups ascending (code point, delta) pairs into rows of one stride (1 or 2) and one delta."""
    rows = []
    for point, delta in points:
        if rows:
            first, last, stride, row_delta = rows[-1]
            step = point - last
            if delta == row_delta and (step == stride or (first == last and step in (1, 2))):
                rows[-1] = (first, point, step, delta)
                continue
        rows.append((point, point, 1, delta))
    return rows


def write_class(out, name, test):
    rows = runs([(c, 0) for c in CODE_POINTS if test(chr(c))])
    write_rows(
        out,
        f"constexpr ClassRow k{name}[] = {{",
        [f"{{{a:#x}, {b:#x}, {s}}}" for a, b, s, _ in rows],
    )


def write_mapping(out, name, convert):
    points = [
        (c, ord(convert(chr(c))) - c)
        for c in CODE_POINTS
        if len(convert(chr(c))) == 1 and convert(chr(c)) != chr(c)
    ]
    rows = runs(points)
    write_rows(
        out,
        f"constexpr CaseRow k{name}[] = {{",
        [f"{{{a:#x}, {b:#x}, {s}, {d}}}" for a, b, s, d in rows],
    )


def write_special(out, name, convert):
    rows = []
    for c in CODE_POINTS:
        text = convert(chr(c))
        if len(text) > 1:
            rows.append(f'{{{c:#x}, {{{", ".join(f"{ord(x):#x}" for x in text)}}}}}')
    write_rows(out, f"constexpr SpecialRow k{name}[] = {{", rows)


def write_rows(out, head, rows):
    out.write(head + "\n")
    line = "    "
    for row in rows:
        if len(line) + len(row) + 2 > 100:
            out.write(line.rstrip() + "\n")
            line = "    "
        line += row + ", "
    out.write(line.rstrip() + "\n};\n")


def main():
    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write("// clang-format off\n")
        out.write(
            "// Written by tools/make_unicode_tables.py from Unicode "
            f"{unicodedata.unidata_version}; do not edit.\n"
        )
        write_class(out, "Alpha", str.isalpha)
        write_class(out, "Numeric", str.isnumeric)
        write_class(out, "Digit", str.isdigit)
        write_class(out, "Decimal", str.isdecimal)
        write_class(out, "Lowercase", str.islower)
        write_class(out, "Uppercase", str.isupper)
        write_class(out, "Unprintable", lambda c: not c.isprintable())
        write_mapping(out, "ToLower", str.lower)
        write_mapping(out, "ToUpper", str.upper)
        write_mapping(out, "ToTitle", str.title)
        write_special(out, "SpecialUpper", str.upper)
        write_special(out, "SpecialTitle", str.title)


main()
