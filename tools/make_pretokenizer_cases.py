#!/usr/bin/env python3
"""Writes tests/data/pretokenizer_cases.json: random Unicode texts and how each family cuts them.

The oracle is the `regex` module with the patterns as their authors published them, class
intersections
and `\\s+$` included, so that what the C++ tables rewrite for PCRE2 is tested against the original.
Needs: pip install regex. Usage: make_pretokenizer_cases.py [OUTPUT]
"""

import json
import pathlib
import random
import sys
import unicodedata

import regex

SEED = 20260
TEXTS = 260
OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "tests/data/pretokenizer_cases.json"

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"


def three_digits(digits):
    return [
        CONTRACTIONS
        + r"|[^\r\n\p{L}\p{N}]?\p{L}+|"
        + digits
        + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|"
        + SPACES
    ]


CASED = (
    r"\u0041-\u005a\u0061-\u007a\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf"
    r"\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a"
    r"\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5"
    r"\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77"
    r"\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b"
    r"\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3"
    r"\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115"
    r"\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149"
    r"\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d"
    r"\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06"
    r"\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3"
    r"\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df"
    r"\U0001e900-\U0001e943"
)
UPPER = r"[[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]&&[^\p{Han}]]"
LOWER = r"[[\p{Ll}\p{Lm}\p{Lo}\p{M}]&&[^\p{Han}]]"

PASSES = {
    "glm4": three_digits(r"\p{N}{1,3}"),
    "qwen2": three_digits(r"\p{N}"),
    "gpt-2": [r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"],
    "deepseek-v3": [
        r"\p{N}{1,3}",
        r"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
        r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}\~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"
        r" ?[\p{P}\p{S}]+[\r\n]*|" + SPACES,
    ],
    "deepseek-llm": [
        r"[\r\n]",
        r"\s?[" + CASED + r"]+",
        r"\s?[!-/:-\~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
        r"\s+$",
        r"[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+",
        r"\p{N}+",
    ],
    "kimi-k2": [
        r"[\p{Han}]+|"
        r"[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + "+" + CONTRACTIONS + "?|"
        r"[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER + "*" + CONTRACTIONS + "?|"
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + SPACES
    ],
}

# Where implementations have been seen to differ: white space and its look-alikes, case folds
# beyond ASCII, marks, letters without case, numbers that are not digits, joined emoji.
TROUBLE = (
    list("    \n\n\r\t'''aAbBsStTlLmMdDrRvVeE0123456789.,!?-_/\\(){}[]<>|@#$%^&*+=~`\"")
    + [
        "\r\n",
        "\n\n\n",
        "   ",
        "'s",
        "'LL",
        "'Re",
        " don't",
        "DON'T",
        "helloWorld",
        "1234567",
        "\u017f",
        "'\u017f",
    ]
    + list(
        "\u0085\u00a0\u1680\u180e\u2003\u200b\u2028\u2029\u202f"
        "\u205f\u3000\ufeff\x00\x0b\x0c\x1c\x1f\x7f\xad"
    )
    + list(
        "\u212a\u01c5\u02b0\u0301\u0488\u2167\u00bd\u00b2"
        "\u0661\u3007\u3005\u2126\u1fbe\u1f7d\u1fd3\u1fdb"
    )
    + list(
        "\u4e2d\u6587\u9fa5\u9fa6\u3042\u30a2\u30fc\ud55c\uac00"
        "\u0e01\u0e31\u0915\u093f\u05d0\u0627\u10d0\u0561"
    )
    + list("\uff01\uff10\uff21\uff5e\u2018\u201c\u3001\u3002\u20ac\u00a3\u00d7\u00aa")
    + [
        "\U0001f469\u200d\U0001f469\u200d\U0001f467",
        "\U0001f1e9\U0001f1ea",
        "\U0001d400",
        "\U00020000",
        "\U00010400",
        "\ue000",
    ]
)


def same_everywhere(char):
    """Assigned long ago, and of one category in both Unicode versions at hand."""
    old = unicodedata.ucd_3_2_0.category(char)
    return (
        old not in ("Cn", "Cs")
        and old == unicodedata.category(char)
        and regex.match(rf"\p{{{old}}}", char)
    )


def cut(pattern, piece):
    done = 0
    for match in regex.finditer(pattern, piece, regex.V1):
        yield piece[done : match.start()]
        yield match.group()
        done = match.end()
    yield piece[done:]


def pieces_of(name, text):
    pieces = [text]
    for pattern in PASSES[name]:
        pieces = [part for piece in pieces for part in cut(pattern, piece) if part]
    assert "".join(pieces) == text
    return pieces


def main():
    rng = random.Random(SEED)
    anywhere = [chr(c) for c in range(0x20000) if same_everywhere(chr(c))]
    cases = []
    for i in range(TEXTS):
        parts = [
            (
                rng.choice(anywhere)
                if rng.random() < 0.2
                else rng.choice(TROUBLE) * rng.choice((1, 1, 1, 1, 2, 5))
            )
            for _ in range(rng.randint(1, 60))
        ]
        text = "".join(parts)
        lengths = {name: [len(p.encode()) for p in pieces_of(name, text)] for name in PASSES}
        cases.append({"text": text, "piece_bytes": lengths})
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else OUTPUT
    head = {"made_by": "tools/make_pretokenizer_cases.py", "regex": regex.__version__, "seed": SEED}
    lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
    out.write_text(json.dumps(head)[:-1] + ', "cases": [\n' + lines + "\n]}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
