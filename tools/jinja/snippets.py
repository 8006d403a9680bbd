"""Templates for make_jinja_cases.py, one a line: statements, layout, scopes.

A \\n in them is a newline; a line that ends in a backslash goes on in the next one.
"""

TEMPLATES = r"""
a{{ 1 }}b
{# comment #}x
x {#- c -#} y
x {# c +#}\n y
{{ '{{' }}
{{ "}}" }}
{{ {'a': {'b': 1}}.a.b }}
{{ {'a': {}}}}
{% raw %}{{ x }}{% endraw %}
a {%- raw -%} {{ x }} {%- endraw -%} b
{% raw %}\n x\n{% endraw %}\n y
  {% raw %}x{% endraw %}
{% raw %}never closed
{# never closed
{{ never closed
{% never closed
a\n{% if true %}\nb\n{% endif %}\nc\n
a\n  {% if true %}\n  b\n  {% endif %}\n  c
a\n  {%+ if true %}\n  b\n  {%+ endif +%}\n  c
a\n  {%- if true -%}\n  b\n  {%- endif -%}\n  c
a  {% if true %}  b  {% endif %}  c
  {{ 1 }}\n  {{ 2 }}\n
  {{- 1 -}}  \n  {{- 2 -}}  x
{{ 1 }}\n\n
\n\n{{ 1 }}
x\n
x\n\n
\r\nx\r\n{% if 1 %}\r\ny{% endif %}\r\n
x\ry
{% if true %}\n\n{% endif %}\n\nx
\t {% set a = 1 %}\t \n\tb{{ a }}
x{# c #}\ny
x\n  {# c #}\n  y
{% for x in xs %}\n{{ x }}\n{% endfor %}\nend
{% for x in xs -%}\n{{ x }}\n{%- endfor %}\nend
  {%- for x in xs %} {{ x }} {%- endfor %}  z
{% if 0 %}a{% elif 0 %}b{% elif 1 %}c{% else %}d{% endif %}
{% if 0 %}a{% else %}d{% endif %}
{% if missing %}a{% endif %}b
{% if xs %}list{% endif %}{% if [] %}empty{% endif %}
{% if 1: %}x{% endif %}
{% if %}x{% endif %}
{% if 1 %}x
{% if 1 %}x{% endfor %}
{% if 1, 2 %}x{% endif %}
{% else %}
{% endif %}
{% for x in xs %}{{ x }},{% endfor %}
{% for x in [] %}a{% else %}empty{% endfor %}
{% for x in missing %}a{% else %}undef{% endfor %}
{% for x in none %}a{% endfor %}
{% for x in 5 %}a{% endfor %}
{% for c in 'héy' %}[{{ c }}]{% endfor %}
{% for k in d %}{{ k }} {% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}
{% for k, v in d | dictsort %}{{ k }}={{ v }};{% endfor %}
{% for (a, b) in [(1, 2), (3, 4)] %}{{ a + b }} {% endfor %}
{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for a, b in [(1, 2, 3)] %}x{% endfor %}
{% for a, b in [1] %}x{% endfor %}
{% for a, b in ['xy'] %}{{ a }}{{ b }}{% endfor %}
{% for x, in [(1,)] %}{{ x }}{% endfor %}
{% for x in xs if x > 1 %}{{ x }}{{ loop.index }} {% endfor %}
{% for x in xs if x > 5 %}a{% else %}none{% endfor %}
{% for x in xs if loop.first %}a{% endfor %}
{% for x in xs if x is odd and x > 1 %}{{ x }}/{{ loop.length }}{% endfor %}
{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}\
{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }} {% endfor %}
{% for x in xs %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}
{% for x in xs %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}
{% for x in xs %}{{ loop.cycle('a', 'b') }}{% endfor %}
{% for x in [1, 1, 2, 2, 1] %}{{ loop.changed(x) }}{% endfor %}
{% for x in xs %}{{ loop.nope }}{% endfor %}
{% for x in xs %}{{ loop.nope.nope }}{% endfor %}
{% for x in xs %}{{ loop is callable }}{{ loop is iterable }}{{ loop | length }}{% endfor %}
{% for x in xs %}{% for y in ys %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}
{% for x in xs %}{% set outer = loop %}{% for y in ys %}{{ outer.index }}{{ loop.index }} \
{% endfor %}{% endfor %}
{% for x in range(5) %}{% if x == 3 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% for x in range(5) %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}
{% for x in xs %}{% break %}{% else %}else{% endfor %}
{% for x in xs %}{% continue %}{% else %}else{% endfor %}
{% for x in xs %}{% if x == 2 %}{% break %}{% endif %}{% else %}else{% endfor %}
{% for x in xs %}{% for y in ys %}{% break %}{% endfor %}{{ x }}{% endfor %}
{% for x in xs %}{% set b %}{{ x }}{% if x == 2 %}{% break %}{% endif %}{% endset %}{{ b }}\
{% endfor %}
{% for x in xs %}{% filter upper %}a{{ x }}{% if x == 2 %}{% continue %}{% endif %}\
{% endfilter %}{% endfor %}
{% for x in xs %}{% with y = x %}{{ y }}{% if y == 2 %}{% break %}{% endif %}{% endwith %}\
{% endfor %}
{% for x in xs %}{% else %}{% break %}{% endfor %}
{% for x in xs %}{% for y in [] %}{% else %}{% break %}{% endfor %}{{ x }}{% endfor %}
{% break %}
{% continue %}
{% for x in xs %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}
{% for loop in xs %}{% endfor %}
{% for x in xs %}{% set loop = 1 %}{% endfor %}
{% set loop = 1 %}{{ loop }}
{% for x in xs %}{% endfor %}{{ x }}
{% for x in 1, 2 %}{{ x }}{% endfor %}
{% for x in xs if 1 else 2 %}{% endfor %}
{% for x in (xs if 0 else ys) %}{{ x }}{% endfor %}
{% for x in xs | reverse %}{{ x }}{{ loop.last }}{% endfor %}
{% for x in xs %}{{ loop.index }}{% endfor %}{{ loop }}
{% for m in recs %}{{ m.name }}{{ ', ' if not loop.last }}{% endfor %}
{% set a = 1 %}{{ a }}
{% set a = 1, 2 %}{{ a }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}
{% set (a, b) = (1, 2) %}{{ a }}{{ b }}
{% set a, b = 1 %}
{% set a, b = [1, 2, 3] %}
{% set a.b = 1 %}
{% set d.name = 1 %}
{% set none = 1 %}
{% set 1 = 1 %}
{% set a[0] = 1 %}
{% set a %}x{{ 1 }}y{% endset %}[{{ a }}]
{% set a | upper %}x{{ 1 }}y{% endset %}[{{ a }}]
{% set a | upper | replace('X', 'z') %}x{% endset %}[{{ a }}]
{% set a %}{% set b = 1 %}{{ b }}{% endset %}{{ a }}{{ b }}
{% set a = 1 %}{% if true %}{% set a = 2 %}{% endif %}{{ a }}
{% set a = 1 %}{% for x in xs %}{% set a = x %}{{ a }}{% endfor %}{{ a }}
{% set a = 1 %}{% for x in xs %}{{ a }}{% set a = x %}{% endfor %}
{% for x in xs %}{% set seen = x %}{% endfor %}{{ seen }}
{% set ns = namespace(n=0) %}{% for x in xs %}{% set ns.n = ns.n + x %}{% endfor %}{{ ns.n }}
{% set ns = namespace() %}{% set ns.a, ns.b = 1, 2 %}{{ ns.a }}{{ ns.b }}
{% set ns = namespace(a=1) %}{% set ns.a %}block{% endset %}{{ ns.a }}
{% set ns = namespace(a=[]) %}{% set ns.a = ns.a + [1] %}{{ ns.a }}
{% set ns = namespace(found=false) %}{% for x in xs %}{% if x == 2 %}{% set ns.found = true %}\
{% endif %}{% endfor %}{{ ns.found }}
{% set ns = 1 %}{% set ns.a = 2 %}
{% set s = s | upper %}{{ s }}
{% set x = missing %}{{ x is defined }}
{% if not flag is defined %}{% set flag = true %}{% endif %}{{ flag }}
{% set a = none %}{{ a is none }}{{ a }}
{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(b=5, a=4) }}
{% macro m(a) %}{{ a }}{% endmacro %}[{{ m() }}]
{% macro m(a) %}{{ a is defined }}{% endmacro %}{{ m() }}
{% macro m(a) %}{{ a.b }}{% endmacro %}{{ m() }}
{% macro m(a) %}x{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}x{% endmacro %}{{ m(c=2) }}
{% macro m(a) %}x{% endmacro %}{{ m(1, a=2) }}
{% macro m(a, b=a) %}{{ b }}{% endmacro %}{{ m(1) }}
{% macro m(a=1, b) %}{% endmacro %}
{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}
{% macro m(a) %}{{ varargs | length }}{% endmacro %}{{ m(1, 2, 3) }}
{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}body{% endcall %}
{% macro m() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b) m() %}{{ a + b }}{% endcall %}
{% macro m(x) %}{{ x }}{{ caller() }}{% endmacro %}{% call m('a') %}{{ s }}{% endcall %}
{% macro m() %}no caller{% endmacro %}{% call m() %}body{% endcall %}
{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}
{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}
{% macro m(caller) %}{{ caller() }}{% endmacro %}
{% macro m(caller=none) %}{{ caller() if caller else 'none' }}{% endmacro %}{{ m() }}\
{% call m() %}x{% endcall %}
{% call 1 %}{% endcall %}
{% call missing() %}{% endcall %}
{% macro outer() %}{% macro inner() %}in{% endmacro %}{{ inner() }}{% endmacro %}{{ outer() }}
{% macro fact(n) %}{{ n * (fact(n - 1) | int) if n > 1 else 1 }}{% endmacro %}{{ fact(5) }}
{% macro m() %}{{ s }}{% endmacro %}{{ m() }}
{% set g = 1 %}{% macro m() %}{{ g }}{% endmacro %}{% set g = 2 %}{{ m() }}
{% macro m() %}{% set g = 5 %}{{ g }}{% endmacro %}{{ m() }}{{ g }}
{% for x in xs %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}
{{ m(1) }}{% macro m(a) %}{{ a }}{% endmacro %}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m }}
{% macro m(a, b) %}{{ a }}{% endmacro %}{{ m.name }}{{ m.arguments }}{{ m.caller }}\
{{ m.catch_kwargs }}{{ m.catch_varargs }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1) | length }}{{ m(1) is string }}{{ m is callable }}
{% macro m(a) %}  {{ a }}  {% endmacro %}[{{ m('x') | trim }}]
{% macro m(a) -%}\n  {{ a }}\n{%- endmacro %}[{{ m('x') }}]
{% macro m(*a) %}{% endmacro %}
{% macro m(a, a) %}{% endmacro %}
{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(**{'a': 3, 'b': 4}) }}
{% macro m(true) %}{% endmacro %}
{% macro m() %}x{% endmacro %}{% set f = m %}{{ f() }}
{% macro a() %}{% call b() %}{{ caller() }}{% endcall %}{% endmacro %}{% macro b() %}<\
{{ caller() }}>{% endmacro %}{% call a() %}x{% endcall %}
{% with a = 1 %}{{ a }}{% endwith %}{{ a }}
{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}
{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}
{% set a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}
{% with a, b = (1, 2) %}{{ a }}{% endwith %}
{% with a %}{% endwith %}
{% filter upper %}abc{{ s }}{% endfilter %}
{% filter upper | replace('A', 'x') %}abc{% endfilter %}
{% filter indent(2) %}a\nb{% endfilter %}
{% filter trim %}  {% set z = 1 %}x {{ z }} {% endfilter %}[{{ z }}]
{% filter nosuch %}{% endfilter %}
{% generation %}x{{ 1 }}{% endgeneration %}
{% generation %}{% set q = 1 %}{{ q }}{% endgeneration %}{{ q }}
{% for x in xs %}{% generation %}{{ x }}{{ loop.index }}{% endgeneration %}{% endfor %}
{% print 1 %}{% print 1, 2 %}
{% do xs.append(1) %}
{% nosuch %}
{% %}
{% 1 %}
{{ }}
{{}}
{% set j = joiner(', ') %}{% for x in xs %}{{ j() }}{{ x }}{% endfor %}
{% set c = cycler('odd', 'even') %}{% for x in xs %}{{ c.next() }}{{ c.current }} {% endfor %}\
{{ c.reset() }}{{ c.current }}
{% set it = xs | map('string') %}{{ it | list }}{{ it | list }}
{% set it = xs | select('odd') %}{{ it | first }}{{ it | list }}
{% set it = xs | reverse %}{{ it | list }}{{ it | list }}
{% set it = xs | map('string') %}{{ '2' in it }}{{ it | list }}
{% set it = xs | map('string') %}{{ it | length }}
{% set it = xs | map('string') %}{{ it[0] }}|
{% set it = xs | map('string') %}{% if it %}truthy{% endif %}
{% set it = d.items() %}{{ it | list }}{{ it | length }}{{ it | list | length }}
{% set dd = dict(d, extra=1) %}{{ dd.extra }}{{ d.extra }}
{% set x = 1 %}{% set x = x + 1 %}{{ x }}
{% if x is defined %}a{% else %}b{% endif %}{% set x = 1 %}{% if x is defined %}a{% else %}b\
{% endif %}
{% if s == 'a' or s is string and not none %}y{% endif %}
{%- if true -%} a {%- endif -%} b
{% if true %} {{- ' x ' -}} {% endif %}|
{{ s }}{{ t }}
{{ '\n' }}x
{{ 'a' if true }}{{ 'b' if false }}c
{{ raise_exception('bad: ' ~ s) }}
{% for m in recs %}{% if m.age > 26 %}{{ raise_exception('too old') }}{% endif %}{% endfor %}
{{ "a" "b" ~ "c" 'd' }}
{% set x = "multi\nline" %}{{ x }}
{{ '''a''' }}
{{ 1 }}{# a #}{{ 2 }}{#- b -#} {{ 3 }}
{#- a #} x {# b -#} y
{# {{ nested }} {% if %} #}z
{{ [1,\n2,\n3] }}
{{ f(\n) }}
{% set\nx\n=\n1\n%}{{ x }}
{{-1}} {{- -1 }} {{ - 1 }} {{+1}}
{{ 1 -}}  x
{{ xs|length}}{{xs |length }}
{%set a=1%}{{a}}
{%if a%}{%endif%}x
{%for x in xs%}{{x}}{%endfor%}
{%-set a=1-%} {{a}}
{%- set a = 1 -%} {%- set b = 2 -%} {{ a + b }}
{% include 'x' %}
{% extends 'x' %}
{% import 'x' as y %}
{{ super() }}
{{ loop }}
{{ varargs }}{{ kwargs }}{{ caller }}
{% set caller = 1 %}{{ caller }}
{{ d.name if d.name is defined else 'x' }}{{ d.nope if d.nope is defined else 'y' }}
{% if 'a' in s and s.startswith('H') %}1{% endif %}
{% if nowhere is not defined %}gone{% endif %}
{% for t in [{'gear': {'name': 'f', 'x': {'y': 1}}}] %}{{ t.gear.name }}{{ t['gear'] | tojson }}\
{% endfor %}
{% set v = 'a <hum>b\n</hum> c' %}{{ (v.split('</hum>') | first).split('<hum>') }}\
{{ v.rstrip('c').split('</hum>')[1:] }}
{% for x in xs %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}
{% for i in range(0, xs | length, 2) %}{{ xs[i] }}{% endfor %}
{% for m in recs[1:] %}{{ m.name }}{% endfor %}
{% for m in recs[::-1] %}{{ m.name }}{{ loop.index0 }}{% endfor %}
{% set msgs = recs[1:] if recs[0].name == 'ann' else recs %}{{ msgs | length }}
{% set a = recs | selectattr('age', 'defined') | list %}{{ a | length }}
{% set last = (recs | last) %}{{ last.name }}
{% set x = {'a': 1} %}{{ x.a }}{{ x['a'] }}{{ x.get('b', 'z') }}
{% set x = [] %}{% for i in xs %}{% set x = x + [i] %}{% endfor %}{{ x }}
{{ (1, 2) | length }}{{ ((1, 2), 3) | length }}
{% macro w(v, d=0) %}{% if v is string %}'{{ v }}'{% elif v is mapping %}<{% for k in v %}\
{{ k }}@{{ d }}{{ w(v[k], d + 1) }}{% endfor %}>{% elif v is iterable %}{{ v | length }}*\
{% for i in v %}{{ w(i, d=d + 1) }}{{ '/' if not loop.last }}{% endfor %}{% else %}{{ v }}\
{% endif %}{% endmacro %}{{ w([7, {'k': ['l', none], 'm': {}}]) }}
"""
