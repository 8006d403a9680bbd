#!/usr/bin/env python3
"""Asks jinja2 what templates render to, and writes the answers for src/chat/jinja_cases_test.cc.

    tools/make_jinja_cases.py [--seed N] [--generated N] [--output FILE] [--corpus FOLDER]

jinja2 is set up as transformers sets it up for chat templates. Needs jinja2 3.1. Run it
with other seeds and point chat_test at the file with TOPKNOT_JINJA_CASES to look for differences.
--corpus also writes the chat templates as files, for fuzz/corpus/template.
"""

import argparse
import datetime
import json
import pathlib
import random
import re
import sys
import warnings

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

sys.path.insert(0, str(pathlib.Path(__file__).parent / "jinja"))
import chat_templates  # noqa: E402
import expressions  # noqa: E402
import generator  # noqa: E402
import library  # noqa: E402
import snippets  # noqa: E402

ROOT = pathlib.Path(__file__).parent.parent
NOW = datetime.datetime(2025, 3, 9, 14, 5, 7)
CONTEXT = {
    "s": "Hello World!",
    "t": "<|user|> a b ",
    "uni": "né😀x",
    "n": 5,
    "fl": 2.5,
    "flag": True,
    "nothing": None,
    "xs": [1, 2, 3],
    "ys": ["apple", "Banana", "cherry"],
    "d": {"name": "zed", "count": 4, "tags": ["x", "y"]},
    "clash": {"items": 1, "keys": "k", "get": None},
    "recs": [
        {"name": "ann", "age": 30, "tags": ["p", "q"]},
        {"name": "bob", "age": 25, "tags": []},
        {"name": "cy", "age": 25, "tags": ["r"]},
    ],
}
# What two engines cannot agree on: addresses, and integers over 64 bits.
UNSTABLE = re.compile(
    r" at 0x[0-9a-f]+|<built-in|<bound method|<class|<function|<jinja2|<generator|<Cycler"
    r"|<LoopContext|\d{19,}|<list_reverse"
)


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_through"), [], [], body).set_lineno(line)

    def _through(self, caller):
        return caller()


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(
            x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )

    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: NOW.strftime(form)
    return env


def render(env, source, variables):
    """The text, or None when jinja2 refuses the template or fails on it."""
    try:
        text = env.from_string(source).render(**json.loads(json.dumps(variables)))
        text.encode("utf-8")
        return text
    except RecursionError:
        raise
    except Exception:
        return None


def hand_written(env):
    for line in (
        (expressions.EXPRESSIONS + library.EXPRESSIONS.lstrip("\n")).strip("\n").split("\n")
    ):
        yield "{{ " + line + " }}", "plain"
    for line in snippets.TEMPLATES.replace("\\\n", "").strip("\n").split("\n"):
        # Newlines of the template, except where the text itself spells an escape within quotes.
        parts = re.split(r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")", line)
        source = "".join(
            p if i % 2 else p.replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t")
            for i, p in enumerate(parts)
        )
        yield source, "plain"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--generated", type=int, default=1300)
    parser.add_argument("--output", default=str(ROOT / "tests/data/jinja_cases.json"))
    parser.add_argument("--corpus", type=pathlib.Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    env = environment()
    contexts = {"plain": CONTEXT}
    templates = dict(chat_templates.TEMPLATES)
    golden = json.loads((ROOT / "tests/data/golden/chat_template_cases.json").read_text())
    templates["tiny"] = golden["chat_template"]
    special = {"bos_token": "<s>", "eos_token": "</s>"}
    cases = []
    skipped = 0

    def add(source, name, key=None):
        nonlocal skipped
        expected = render(env, source, contexts[name])
        if expected is not None and UNSTABLE.search(expected):
            skipped += 1
            return False
        cases.append([key if key else source, name, expected])
        return True

    for source, name in hand_written(env):
        add(source, name)
    hand = len(cases)
    for name, conversation in chat_templates.CONVERSATIONS.items():
        contexts[name] = special | conversation
        for key, source in templates.items():
            add(source, name, "@" + key)
    styled = len(cases) - hand
    make = generator.Generator(random.Random(options.seed))
    seen = set()
    failures = 0
    while len(cases) < hand + styled + options.generated:
        source = make.template()
        if source in seen or len(source) > 500:
            continue
        seen.add(source)
        # Errors are a third of what comes out; they test less than text does, so most are left out.
        if render(env, source, CONTEXT) is None:
            failures += 1
            if failures % 6:
                continue
        add(source, "plain")
    document = {
        "jinja2": jinja2.__version__,
        "seed": options.seed,
        "now": NOW.isoformat(),
        "templates": templates,
        "contexts": contexts,
        "cases": cases,
    }
    lines = ",\n".join(
        json.dumps(case, ensure_ascii=False, separators=(",", ":"))
        for case in document.pop("cases")
    )
    head = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    pathlib.Path(options.output).write_text(head[:-1] + ',"cases":[\n' + lines + "\n]}\n")
    if options.corpus:
        for name, source in chat_templates.TEMPLATES.items():
            (options.corpus / f"style-{name}.jinja").write_text(source)
    errors = sum(case[2] is None for case in cases)
    print(
        f"{hand} hand-written, {styled} styled, {options.generated} generated; "
        f"{errors} errors, {skipped} skipped"
    )


main()
