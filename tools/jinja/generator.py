"""Random templates from a grammar, for make_jinja_cases.py."""

STRINGS = [
    "''",
    "'a'",
    "'b c'",
    "' pad '",
    "'A-b'",
    "'é😀'",
    "'x,y,z'",
    "'12'",
    "'3.5'",
    "'<t>'",
    "'it\\'s'",
    "'l1\\nl2'",
]
ATOMS = {
    "str": STRINGS + ["s", "t", "uni", "d.name", "d['name']", "recs[0].name", "ys[1]", "loopvar"],
    "int": [
        "0",
        "1",
        "2",
        "-3",
        "7",
        "n",
        "xs[0]",
        "xs | length",
        "s | length",
        "recs[1].age",
        "d.count",
    ],
    "float": ["0.5", "2.0", "-1.25", "fl", "1e3"],
    "list": [
        "xs",
        "ys",
        "[]",
        "[1, 'a', none]",
        "recs",
        "d.tags",
        "range(3) | list",
        "s.split()",
        "(1, 2)",
    ],
    "dict": ["d", "recs[0]", "{}", "{'a': 1, 'b': [2]}", "clash"],
    "bool": ["true", "false", "flag"],
    "none": ["none", "nothing"],
    "undef": ["missing", "d.nope", "xs[9]"],
}
KINDS = (
    ["str"] * 5
    + ["int"] * 4
    + ["float", "list", "list", "list", "dict", "dict", "bool", "bool", "none", "undef"]
)
CASE_FILTERS = ['upper', 'lower', 'trim', 'title', 'capitalize', 'string', 'reverse', 'e']
STRING_METHODS = ['strip', 'lstrip', 'rstrip', 'upper', 'lower', 'title', 'capitalize', 'swapcase']
FINDERS = ['find', 'count', 'rfind', 'index']
FLOAT_OPERATORS = ['+', '-', '*', '%', '//']
ITEM_FILTERS = ['string', 'upper', 'length', 'int', 'trim', 'tojson', 'abs']
ATTRIBUTES = ['name', 'age', 'tags', 'nope', 'tags.0']
ITEM_TESTS = ['string', 'number', 'odd', 'defined', 'none', 'mapping', 'iterable']
ORDERS = ['<', '>', '<=', '>=']
TESTS = [
    'defined',
    'undefined',
    'none',
    'string',
    'number',
    'integer',
    'float',
    'boolean',
    'mapping',
    'sequence',
    'iterable',
    'callable',
    'true',
    'false',
    'lower',
    'upper',
]
INT_TESTS = ['odd', 'even', 'divisibleby 3', 'eq 1', 'lt(2)', 'in [1, 2]']
CHARACTER_TESTS = ['isdigit', 'isalpha', 'isalnum', 'isspace', 'isupper', 'islower', 'istitle']
LOOP_FIELDS = [
    'index',
    'index0',
    'first',
    'last',
    'length',
    'revindex',
    'revindex0',
    'previtem',
    'nextitem',
]
LOOP_TESTS = ['string', 'number', 'defined', 'mapping']


class Generator:
    def __init__(self, random):
        self.random = random
        self.names = 0

    def pick(self, items):
        return self.random.choice(items)

    def any(self, depth):
        return self.expr(self.pick(KINDS), depth)

    def expr(self, kind, depth):
        # A wrong type now and then: errors must match, too.
        if self.random.random() < 0.04:
            kind = self.pick(KINDS)
        if depth <= 0 or self.random.random() < 0.15:
            return self.pick(ATOMS[kind])
        return getattr(self, kind)(depth - 1)

    def str(self, d):
        s, e, i, p = (
            lambda: self.expr("str", d),
            lambda: self.any(d),
            lambda: self.expr("int", 0),
            self.pick,
        )
        return p(
            [
                lambda: f"{s()} ~ {e()}",
                lambda: f"({s()} + {s()})",
                lambda: f"({s()}) | {p(CASE_FILTERS)}",
                lambda: f"({s()}).{p(STRING_METHODS)}()",
                lambda: f"({s()}).{p(['strip', 'lstrip', 'rstrip'])}({p(STRINGS)})",
                lambda: f"({s()}).replace({p(STRINGS)}, {s()})",
                lambda: f"({s()}) | replace({p(STRINGS)}, {s()})",
                lambda: f"({s()})[{i()}]",
                lambda: f"({s()})[{i()}:{i()}]",
                lambda: f"({s()})[::{p(['-1', '2', '-2'])}]",
                lambda: f"({s()} if {self.expr('bool', d)} else {s()})",
                lambda: f"({self.expr('list', d)}) | join({p(STRINGS)})",
                lambda: f"({e()}) | tojson",
                lambda: f"({e()}) | string",
                lambda: f"({s()} * {p('0123')})",
                lambda: f"({s()}).split({p(STRINGS)})[{p(['0', '-1'])}]",
                lambda: f"({s()}).join({self.expr('list', d)})",
                lambda: f"({self.expr('list', d)} | {p(['first', 'last'])})",
                lambda: f"({s()} or {s()})",
                lambda: f"({self.pick(ATOMS['undef'])} | default({s()}))",
                lambda: f"'%s:%s' % ({e()}, {s()})",
                lambda: f"({s()}) | indent({p('024')})",
                lambda: f"'{{}}/{{}}'.format({s()}, {i()})",
                lambda: f"({s()}).remove{p(['prefix', 'suffix'])}({p(STRINGS)})",
                lambda: f"({self.expr('dict', d)} | tojson(indent={p('12')}))",
                lambda: f"({s()}).{p(['center', 'ljust', 'rjust', 'zfill'])}({p('258')})",
            ]
        )()

    def int(self, d):
        i, p = lambda: self.expr("int", d), self.pick
        return p(
            [
                lambda: f"({i()} {p(['+', '-', '*', '//', '%'])} {i()})",
                lambda: f"({self.any(d)}) | length",
                lambda: f"-({i()})",
                lambda: f"({self.any(d)}) | int",
                lambda: f"({i()}) | abs",
                lambda: f"({self.expr('list', d)}) | {p(['sum', 'min', 'max'])}",
                lambda: f"({self.expr('str', d)}).{p(FINDERS)}({p(STRINGS)})",
                lambda: f"({i()} if {self.expr('bool', d)} else {i()})",
                lambda: f"({i()} {p(['and', 'or'])} {i()})",
                lambda: f"({i()} ** {p('012')})",
                lambda: f"({self.expr('str', d)} | wordcount)",
            ]
        )()

    def float(self, d):
        p = self.pick
        return p(
            [
                lambda: f"({self.expr('int', d)} / {self.expr('int', d)})",
                lambda: f"({self.expr('float', d)} {p(FLOAT_OPERATORS)} {self.expr('int', d)})",
                lambda: f"({self.any(d)}) | float",
                lambda: f"({self.expr('float', d)}) | round({p(['0', '1', '2'])})",
                lambda: f"({self.expr('float', d)}) | round(1, '{p(['ceil', 'floor', 'common'])}')",
            ]
        )()

    def list(self, d):
        li, p = lambda: self.expr("list", d), self.pick
        return p(
            [
                lambda: f"[{self.any(d)}, {self.any(d)}]",
                lambda: f"({li()} + {li()})",
                lambda: f"({li()})[{self.pick(['1:', ':-1', '::-1', '::2', '-2:', '5:'])}]",
                lambda: f"({li()}) | reverse | list",
                lambda: f"({li()}) | sort",
                lambda: f"({li()}) | sort(reverse=true)",
                lambda: f"({li()}) | unique | list",
                lambda: f"({li()}) | map('{p(ITEM_FILTERS)}') | list",
                lambda: f"({li()}) | map(attribute='{p(ATTRIBUTES)}') | list",
                lambda: f"({li()}) | {p(['select', 'reject'])}('{p(ITEM_TESTS)}') | list",
                lambda: f"({li()}) | {p(['selectattr', 'rejectattr'])}"
                f"('{p(['name', 'age', 'nope'])}') | list",
                lambda: f"({li()}) | selectattr('{p(['name', 'age'])}', "
                f"'{p(['eq', 'ne', 'in'])}', {self.any(0)}) | list",
                lambda: f"({self.expr('str', d)}).{p(['split', 'rsplit'])}({p(STRINGS)})",
                lambda: f"({self.expr('str', d)}).split()",
                lambda: f"({self.expr('dict', d)}).{p(['keys', 'values', 'items'])}() | list",
                lambda: f"({self.expr('dict', d)}) | {p(['dictsort', 'list', 'items | list'])}",
                lambda: f"range({p('0123')}, {p('1357')}) | list",
                lambda: f"({li()} * {p('012')})",
                lambda: f"({self.expr('str', d)}) | list",
                lambda: f"({li()} or {li()})",
                lambda: f"({self.expr('str', d)}).splitlines()",
                lambda: f"({li()} | batch({p('12')}) | list)",
            ]
        )()

    def dict(self, d):
        p = self.pick
        return p(
            [
                lambda: f"{{'a': {self.any(d)}, {self.expr('str', 0)}: {self.any(d)}}}",
                lambda: f"dict(a={self.any(d)}, b={self.any(d)})",
                lambda: f"dict({self.expr('dict', d)}, z={self.any(d)})",
                lambda: f"({self.expr('list', d)} | first)",
                lambda: f"({self.expr('dict', d)} or d)",
                lambda: f"recs[{p(['0', '1', '-1'])}]",
            ]
        )()

    def bool(self, d):
        p, a = self.pick, lambda: self.any(d)
        return p(
            [
                lambda: f"({a()} {p(['==', '!='])} {a()})",
                lambda: f"({self.expr('int', d)} {p(ORDERS)} {self.expr('int', d)})",
                lambda: f"({self.expr('str', d)} {p(ORDERS)} {self.expr('str', d)})",
                lambda: f"({self.expr('str', d)} {p(['in', 'not in'])} {self.expr('str', d)})",
                lambda: f"({a()} {p(['in', 'not in'])} "
                f"{p([self.expr('list', d), self.expr('dict', d)])})",
                lambda: f"not {a()}",
                lambda: f"({a()} {p(['and', 'or'])} {a()})",
                lambda: f"{a()} is {p(['', 'not '])}{p(TESTS)}",
                lambda: f"({self.expr('int', d)} is {p(INT_TESTS)})",
                lambda: f"({self.expr('str', d)}).{p(['startswith', 'endswith'])}({p(STRINGS)})",
                lambda: f"({self.expr('str', d)}).{p(CHARACTER_TESTS)}()",
                lambda: f"({self.expr('int', d)} < {self.expr('int', d)} "
                f"{p(['<', '<=', '=='])} {self.expr('int', d)})",
            ]
        )()

    def none(self, d):
        return self.pick(
            ["none", f"({self.expr('dict', d)}).get('nope')", f"({self.any(d)} and none)"]
        )

    def undef(self, d):
        return self.pick(
            [
                "missing",
                f"({self.expr('dict', d)}).nope",
                f"({self.expr('list', d)})[99]",
                f"({self.any(d)} if false)",
                "([] | first)",
            ]
        )

    # --- statements
    def space(self):
        return self.pick(["", "", " ", "\n", "  \n", "\n  ", " \t"])

    def tag(self, inside):
        return (
            self.space()
            + "{%"
            + self.pick(["", "", "", "-", "+"])
            + " "
            + inside
            + " "
            + self.pick(["", "", "", "-", "+"])
            + "%}"
            + self.space()
        )

    def out(self, inside):
        return (
            "{{" + self.pick(["", "", "-"]) + " " + inside + " " + self.pick(["", "", "-"]) + "}}"
        )

    def name(self):
        self.names += 1
        return f"v{self.names}"

    def body(self, depth, loop):
        return "".join(self.statement(depth, loop) for _ in range(self.random.randint(1, 3)))

    def statement(self, depth, loop):
        r = self.random.random()
        if depth <= 0 or r < 0.35:
            return self.pick(
                [
                    lambda: self.out(self.any(2)),
                    lambda: self.pick(["text", "a b", "<x>", "\n"]) + self.space(),
                    lambda: self.out(self.any(1)),
                    lambda: "{#"
                    + self.pick(["", "-"])
                    + " c "
                    + self.pick(["", "-"])
                    + "#}"
                    + self.space(),
                ]
            )()
        b = lambda inner=loop: self.body(depth - 1, inner)
        v = self.name()
        choices = [
            lambda: self.tag(f"if {self.expr('bool', 2)}")
            + b()
            + (self.tag(f"elif {self.any(1)}") + b() if r < 0.6 else "")
            + (self.tag("else") + b() if r < 0.8 else "")
            + self.tag("endif"),
            lambda: self.tag(f"for {v} in {self.expr('list', 1)}")
            + self.out(f"loop.{self.pick(LOOP_FIELDS)}")
            + self.out(v)
            + b(True)
            + (self.tag("else") + b() if r < 0.6 else "")
            + self.tag("endfor"),
            lambda: self.tag(f"for {v} in {self.expr('list', 1)} if {v} is {self.pick(LOOP_TESTS)}")
            + self.out(v)
            + b(True)
            + self.tag("endfor"),
            lambda: self.tag(f"for {v}, {v}b in ({self.expr('dict', 1)}).items()")
            + self.out(f"{v} ~ {v}b")
            + b(True)
            + self.tag("endfor"),
            lambda: self.tag(f"set {v} = {self.any(2)}") + self.out(v) + b(),
            lambda: self.tag(f"set {v}")
            + b(False)
            + self.tag("endset")
            + self.out(f"{v} | {self.pick(['trim', 'upper', 'length', 'tojson'])}"),
            lambda: self.tag(f"set {v} = namespace(x={self.any(1)})")
            + self.tag(f"for i in range(3)")
            + self.tag(f"set {v}.x = {v}.x ~ i")
            + self.tag("endfor")
            + self.out(f"{v}.x"),
            lambda: self.tag(f"macro {v}(a, b={self.any(0)})")
            + self.out("a")
            + b(False)
            + self.out("b")
            + self.tag("endmacro")
            + self.out(f"{v}({self.any(1)})")
            + self.out(f"{v}(b={self.any(0)}, a={self.any(0)})"),
            lambda: self.tag(f"with {v} = {self.any(1)}") + self.out(v) + b() + self.tag("endwith"),
            lambda: self.tag(
                "filter " + self.pick(["upper", "trim", "title", "indent(2)", "replace('a', 'b')"])
            )
            + b(False)
            + self.tag("endfilter"),
            lambda: self.tag(f"macro {v}(x)")
            + "<"
            + self.out("caller(x)")
            + ">"
            + self.tag("endmacro")
            + self.tag(f"call(y) {v}({self.any(1)})")
            + self.out("y")
            + b(False)
            + self.tag("endcall"),
            lambda: "{% raw %}"
            + self.pick(["{{ x }}", "{% if %}"])
            + "{% endraw %}"
            + self.space(),
        ]
        if loop:
            choices.append(
                lambda: self.tag(f"if {self.expr('bool', 1)}")
                + self.tag(self.pick(["break", "continue"]))
                + self.tag("endif")
            )
        return self.pick(choices)()

    def template(self):
        self.names = 0
        return "".join(self.statement(3, False) for _ in range(self.random.randint(1, 3)))
