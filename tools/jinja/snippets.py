"""Hand-written snippets for make_jinja_cases.py: each line of EXPRESSIONS is printed, each of TEMPLATES
is a template as it stands (\\n in them is a newline)."""

EXPRESSIONS = r"""
1
-1
1.0
1e3
1_000
0x1f
0b101
0o17
1.5e-7
1e16
123456789012345680.0
0.1 + 0.2
3.0 * 2
7 / 2
8 / 2
7 // 2
-7 // 2
7 % 3
-7 % 3
7 % -3
7.5 % 2
-7.5 % 2
-7.5 // 2
2 ** 10
2 ** -1
2 ** 0.5
-2 ** 2
2 ** 3 ** 2
1 / 0
1 // 0
1 % 0
1 + 2 * 3
(1 + 2) * 3
1 - 2 - 3
2 * 3 % 4
10 - 2 ~ 3
1 ~ 2 ~ 'x'
1 ~ 2 + 3
'a' + 'b' ~ 'c'
'a' 'b' "c"
'a' * 3
3 * 'ab'
'a' * 0
'a' * -1
[1] * 2
(1, 2) * 2
'a' + 1
1 + 'a'
[1] + [2]
[1] + (2,)
(1,) + (2,)
none + 1
true + true
true * 3
true / 2
+true
-true
not 1
not not 1
not none
1 == 1.0
true == 1
'1' == 1
none == false
[1, 2] == [1, 2]
(1, 2) == [1, 2]
{'a': 1} == {'a': 1.0}
1 < 2 < 3
1 < 3 < 2
1 < 2 > 1
3 > 2 == 2
'a' < 'b'
'a' < 'B'
'a' < 1
[1, 2] < [1, 3]
[1, 'a'] < [1, 2]
none < 1
1 != 2
1 in [1, 2]
'a' in 'abc'
'' in 'abc'
1 in 'abc'
'x' in d
'name' in d
'name' not in d
3 not in [1, 2]
1 in none
none in [none]
missing in [1]
missing in [missing]
'x' in missing
1 in missing
[1] in [[1]]
[1] in d
1 and 2
0 and 2
0 or 2
'' or 'x'
1 or 2
none and 1
missing or 'fallback'
missing and 1
1 if true else 2
1 if false else 2
1 if false
(1 if false) is defined
'x' if missing else 'y'
1 if 0 else 2 if 0 else 3
(1, 2)
(1,)
()
[]
{}
[1, 'a', none, true, 1.5]
{'a': 1, 'b': [1, 2]}
{1: 2, 'x': none}
{'a': 1, 'a': 2}
{[1]: 2}
{(1, 2): 3}
1, 2
[1, 2,]
{'a': 1,}
"it's"
["it's"]
['say "hi"']
['both \' and "']
['new\nline\ttab\\']
['é 😀 \u200b \x01 \x7f']
'\x41\u00e9\101\q'
'a\
b'
'tab\there'
[0.1, 1e100, -0.0, 1e-5, 0.0001]
1e400
d.name
d['name']
d.missing
d.missing.more
d['missing']['more']
missing
missing.x
missing['x']
missing[0]
missing()
missing + 1
missing ~ 'x'
missing == none
missing == missing
missing is defined
missing is undefined
not missing
-missing
missing < 1
missing | length
missing | list
missing | upper
missing | default('d')
missing.x | default('d')
d.missing | default('d')
none | default('d')
none | default('d', true)
'' | default('d', boolean=true)
'' | d('x')
missing | int
missing | float
missing | string
missing | join(',')
missing | first
missing | last
missing | sort
missing | tojson
missing | map('upper') | list
missing | selectattr('x') | list
missing | replace('a', 'b')
missing | trim
missing | reverse | list
missing | dictsort
missing | items | list
missing | sum
missing | min
missing | abs
missing | round
missing | indent
missing | capitalize
missing | wordcount
missing | e
missing | unique | list
missing.items()
d.items() | list
d.items()
d.keys()
d.values()
d.keys() | list
d.values() | list | length
d.get('name')
d.get('nope')
d.get('nope', 'dflt')
d.get('nope', default='x')
d.get()
d.get([1])
d.pop('name')
d.pop
d.update({'a': 1})
d.copy() == d
d.items
clash.items
clash['items']
clash.get
clash.keys() | list
clash['keys']
d.__class__
s.__class__
s.__len__
s.upper
s.upper()
s.nope
s.nope()
s['upper']()
xs.append(4)
xs.append
xs.index(2)
xs.index(9)
xs.count(1)
xs.pop()
xs.length
xs[0]
xs[-1]
xs[5]
xs['0']
xs.0
xs[true]
xs[1.0]
xs[none]
xs[0:2]
xs[1:]
xs[:-1]
xs[::-1]
xs[::2]
xs[-2:]
xs[5:]
xs[:100]
xs[2:0]
xs[2:0:-1]
xs['a':]
xs[::0]
xs[:]
s[0]
s[-1]
s[100]
s[1:3]
s[::-1]
s[:-1]
s[-3:-1]
s[::3]
uni[1]
uni[::-1]
uni[2:4]
uni | length
d[0:1]
(1, 2, 3)[1]
(1, 2, 3)[1:]
'abc'[1]
'abc'.0
range(3)
range(3) | list
range(1, 4) | list
range(5, 0, -2) | list
range(3)[1]
range(10)[2:8:2] | list
range(0)
range(1, 10, 0)
range('a')
range()
range(1, 2, 3, 4)
range(200000) | length
range(3) | length
3 in range(5)
dict(a=1, b=2)
dict({'x': 1}, y=2)
dict([('a', 1), ('b', 2)])
dict()
namespace(a=1).a
namespace(a=1).b
namespace({'x': 2}).x
namespace(a=1)
namespace(a=1)['a']
namespace(a=1) is mapping
namespace(a=1) is iterable
raise_exception('stop')
s | upper
s | lower
s | capitalize
s | title
"hello wORLD-foo (bar) it's" | title
"it's a tEST".title()
'ǆ ß ŉ'.upper()
'ÀÉÎ ẞ ΑΣ ΑΣΑ İ'.lower()
'ß'.capitalize()
'straße' | upper
'Éa' | capitalize
'éa bÉ'.title()
'aBc'.swapcase()
'  x y  ' | trim
'xxaxx' | trim('x')
'  x '.strip()
'  x '.lstrip()
'  x '.rstrip()
'\n\t x\u00a0\u3000'.strip()
'abcba'.strip('ab')
'abcba'.lstrip('ab')
'abcba'.rstrip('ab')
'abc'.strip(none)
'abc'.strip(1)
'abc'.strip(chars='a')
'éxé'.strip('é')
'a,b,c'.split(',')
'a,b,c'.split(',', 1)
'a,b,c'.rsplit(',', 1)
'a b  c '.split()
' a b  c '.split(none, 1)
' a b  c '.rsplit(none, 1)
' a b  c '.rsplit()
' a '.split(none, 0)
'abc'.split('')
''.split()
''.split(',')
'a,b'.split(sep=',', maxsplit=1)
'<think>x</think>y'.split('</think>')
'aXbXXc'.split('X')
'aaa'.split('aa')
'aaa'.rsplit('aa', 1)
'aaaa'.rsplit('aa')
'a-b-c'.partition('-')
'a-b-c'.rpartition('-')
'abc'.partition('-')
'abc'.rpartition('-')
'a\nb\r\nc\x0bd\u2028e\n'.splitlines()
'a\nb\n'.splitlines(true)
'abc'.startswith('ab')
'abc'.startswith(('x', 'a'))
'abc'.startswith('b', 1)
'abc'.endswith('bc')
'abc'.endswith(('x', 'c'))
'abc'.endswith('b', 0, 2)
'abc'.startswith(1)
'abcabc'.find('c')
'abcabc'.find('x')
'abcabc'.find('c', 3)
'abcabc'.rfind('b')
'abcabc'.index('b')
'abcabc'.index('x')
'abcabc'.rindex('b')
'éaéa'.find('a')
'éaéa'.rfind('a', 0, 3)
'abcabc'.count('bc')
'aaa'.count('aa')
'aaa'.count('')
'aaa'.count('a', 1)
'abc'.replace('b', 'x')
'aaa'.replace('a', 'b', 2)
'abc'.replace('', '-')
'éa'.replace('', '-', 2)
'abc'.replace('b')
'abc'.join(['1', '2', '3'])
','.join('abc')
','.join([1, 2])
'abc'.removeprefix('ab')
'abc'.removesuffix('bc')
'abc'.removeprefix('x')
'12'.isdigit()
'²'.isdigit()
'²'.isdecimal()
'½'.isnumeric()
'1a'.isalnum()
'é'.isalpha()
''.isalpha()
' \t'.isspace()
'ABC'.isupper()
'abc1'.islower()
'Abc Def'.istitle()
'abc'.isascii()
'é'.isascii()
'a\n'.isprintable()
'abc'.center(7) ~ '|'
'ab'.center(5, '*')
'abc'.ljust(5, '.')
'abc'.rjust(5, '.')
'-5'.zfill(4)
'5'.zfill(3)
'{} and {}'.format('a', 1)
'{0}-{1}-{0}'.format('a', 'b')
'{x}'.format(x='y')
'{:>5}|{:<5}|{:^5}'.format('a', 'b', 'c')
'{:05d}'.format(42)
'{:.2f}'.format(3.14159)
'{:,}'.format(1234567)
'{:x}'.format(255)
'{:*^9}'.format('mid')
'{:+d}'.format(5)
'{!r}'.format('a')
'{{}}'.format()
'{0.name}'.format(d)
'{0[name]}'.format(d)
'{} {}'.format('a')
'{'.format()
'}'.format()
'{:e}'.format(12345.678)
'{:g}'.format(0.0001)
'{:.1%}'.format(0.256)
'{:.3}'.format('abcdef')
'%s and %s' % ('a', 'b')
'%s' % 'x'
'%s' % 1
'%s' % none
'%s' % [1]
'%d' % 3.7
'%d' % 'x'
'%5d|%-5d|%05d' % (1, 2, 3)
'%.2f' % 2.345
'%x %X %o' % (255, 255, 8)
'%#x' % 255
'%e' % 12345.678
'%g' % 1e-5
'%c%c' % ('a', 98)
'%r' % 'x'
'%%' % ()
'100%' % ()
'%s' % ()
'%s %s' % ('a',)
'abc' % 1
'abc' % {}
'abc' % []
'%(a)s' % {'a': 1}
'%(a)s' % {'b': 1}
'%+d % d' % (5, 5)
'%*d' % (5, 3)
'%s' % missing
'%s %s' | format('a', 'b')
'%(x)s' | format(x=1)
'%05.1f' % -2.25
xs | length
xs | count
s | length
none | length
1 | length
xs | first
xs | last
[] | first
[] | last
s | first
s | last
xs | join
xs | join(', ')
ys | join('-')
[1, none, missing] | join(',')
recs | join(',', attribute='name')
recs | map(attribute='name') | join(', ')
recs | map(attribute='nope', default='-') | join(',')
recs | map(attribute='tags.0') | list
recs | map(attribute='nope') | list
ys | map('upper') | list
ys | map('replace', 'a', 'x') | list
xs | map('string') | list
ys | map('nosuch') | list
ys | map | list
xs | select('odd') | list
xs | select('gt', 1) | list
xs | reject('odd') | list
xs | select | list
[0, 1, '', 'a', none] | select | list
[0, 1, '', 'a'] | reject | list
recs | selectattr('age') | map(attribute='name') | list
recs | selectattr('age', 'gt', 26) | map(attribute='name') | list
recs | selectattr('name', 'equalto', 'bob') | list | length
recs | selectattr('nope', 'defined') | list
recs | rejectattr('name', 'in', ['bob']) | map(attribute='name') | list
recs | selectattr | list
recs | selectattr('name', 'nosuch') | list
xs | select('divisibleby', 2) | list
xs | sort(reverse=true)
[3, 1, 2] | sort
['b', 'A', 'c'] | sort
['b', 'A', 'c'] | sort(case_sensitive=true)
['b', 'A', 'c'] | sort(true)
[1, 'a'] | sort
recs | sort(attribute='age') | map(attribute='name') | list
recs | sort(attribute='age,name') | map(attribute='name') | list
recs | sort(attribute='name', reverse=true) | map(attribute='name') | list
[[2, 'a'], [1, 'b']] | sort
[1, 1.0, 2, 'a', 'A'] | unique | list
['a', 'A'] | unique(case_sensitive=true) | list
[[1]] | unique | list
recs | unique(attribute='age') | map(attribute='name') | list
xs | reverse | list
s | reverse
d | reverse | list
5 | reverse
d | dictsort
{'b': 1, 'A': 2} | dictsort
{'b': 1, 'A': 2} | dictsort(true)
{'b': 1, 'A': 2} | dictsort(by='value')
{'b': 1, 'A': 2} | dictsort(false, 'value', true)
d | dictsort(by='nope')
xs | dictsort
d | items | list
xs | items | list
d | list
s | list
5 | list
none | list
xs | sum
[1.5, 2] | sum
[] | sum
['a'] | sum
recs | sum(attribute='age')
xs | sum(start=10)
xs | min
xs | max
[] | min
['b', 'A'] | min
['b', 'A'] | max
['b', 'A'] | min(case_sensitive=true)
recs | max(attribute='age')
[1, 'a'] | max
'42' | int
'42.9' | int
'x' | int
'x' | int(7)
'x' | int(default=3)
' 42 ' | int
'1_000' | int
'1__0' | int
'0x1f' | int(0, 16)
'ff' | int(base=16)
'0b11' | int(0, 2)
'-5' | int
'- 5' | int
3.9 | int
-3.9 | int
true | int
none | int
[] | int
'1e3' | int
'inf' | int
'3.5' | float
'x' | float
'x' | float(1.5)
'1e3' | float
'inf' | float
'-inf' | float
'nan' | float
' 2 ' | float
'1_0.5' | float
'0x10' | float
3 | float
true | float
none | float
1 | string
[1] | string
none | string
2.5 | round
3.5 | round
2.567 | round(2)
2.567 | round(1, 'ceil')
2.567 | round(1, 'floor')
2.5 | round(method='ceil')
5 | round
1234 | round(-2)
1250 | round(-2)
1234.5 | round(-2)
2.675 | round(2)
-0.5 | round
5 | round(0, 'floor')
5 | round(1, 'bogus')
'x' | round
-5 | abs
-5.5 | abs
true | abs
'x' | abs
'a\nb\n\nc' | indent
'a\nb\n\nc' | indent(2)
'a\nb' | indent(2, true)
'a\n\nb' | indent(2, blank=true)
'a\nb' | indent('>>')
'a\nb' | indent(width=1, first=true)
'a\n' | indent(2)
'' | indent(2)
1 | indent
'abc' | replace('b', 'x')
'aaa' | replace('a', 'b', 2)
123 | replace(2, 'x')
'abc' | replace('b')
'<a href="x">&\'' | e
'<a>' | escape | escape
'<a>' | safe
('<a>' | safe) + '<b>'
'<b>' + ('<a>' | safe)
('<a>' | safe) ~ '<b>'
'<a>' | safe | e
'<a>' | escape is escaped
'a b c_d é-f' | wordcount
'a b&c/d?é' | urlencode
'abc' | center(9)
xs | batch(2) | list
xs | batch(2, 0) | list
d | attr('name')
s | attr('upper')
'a' | attr('nope')
d | tojson
recs | tojson
xs | tojson(indent=2)
d | tojson(indent=4)
d | tojson(sort_keys=true)
{'b': 1, 'a': {'d': [], 'c': {}}} | tojson(sort_keys=true, indent=1)
uni | tojson
uni | tojson(ensure_ascii=true)
uni | tojson(ensure_ascii=False)
'"\\/\n\t\x01\x7f<>&\'\u2028' | tojson
[none, true, false, 1, 1.5, 1e100, 'x'] | tojson
(1, 2) | tojson
{1: 2, none: 3, true: 4, 1.5: 6} | tojson
{(1, 2): 3} | tojson
d | tojson(separators=(',', ':'))
[] | tojson(indent=2)
{'a': []} | tojson(indent='\t')
range(3) | tojson
d.items() | tojson
namespace(a=1) | tojson
missing | tojson
[missing] | tojson
d | tojson(bogus=1)
1 is defined
none is none
none is not none
1 is number
1.5 is number
true is number
'a' is number
1 is integer
true is integer
1.0 is integer
1.0 is float
1 is float
true is boolean
1 is boolean
true is true
1 is true
false is false
0 is false
s is string
1 is string
d is mapping
xs is mapping
xs is sequence
s is sequence
d is sequence
1 is sequence
missing is sequence
d.items() is sequence
xs is iterable
s is iterable
1 is iterable
none is iterable
missing is iterable
d.items() is iterable
range(2) is sequence
range is callable
1 is callable
s.upper is callable
missing is callable
joiner() is callable
namespace is callable
3 is odd
4 is even
-1 is odd
2.0 is even
'a' is odd
4 is divisibleby 2
4 is divisibleby(3)
4 is divisibleby 0
1 is eq 1
1 is equalto 1
1 is ne 2
1 is lt 2
1 is gt 2
1 is le 1
1 is ge 2
1 is lessthan 2
1 is greaterthan 0
1 is in [1, 2]
'a' is in 'abc'
1 is not in [1]
none is sameas none
true is sameas true
'abc' is lower
'ABC' is upper
'Abc' is lower
1 is lower
'upper' is filter
'nosuch' is filter
'odd' is test
'nosuch' is test
1 is sameas(1)
1 is defined is defined
1 is eq
1 is defined(1)
xs is defined and xs
1 is number and 2 is number
not 1 is number
1 + 1 is number
1 is eq 1 or false
-1 is number
-1 | abs
1 | string is string
missing is defined or 1
d.name is string
d['name'] | upper
'a' ~ 'b' | upper
('a' ~ 'b') | upper
1 + 2 | string
'x'.upper().lower()
d.name.upper()[0]
recs[0].tags[1]
recs[0]['tags'][-1]
recs.0.name
d['na' ~ 'me']
range(3)|map('string')|join('-')
*xs
cycler('a', 'b').next()
cycler('a', 'b').current
cycler()
joiner('|')()
strftime_now('%Y-%m-%d')
strftime_now('%d %b %Y %H:%M:%S %j %a')
strftime_now('%%')
strftime_now('')
1 if
[1, 2
{'a': }
(1
1)
'unterminated
a b
1 +
| upper
x |
d.
d[
nosuchfilter(1)
1 | nosuch
1 is nosuch
f(a=1, 2)
f(a=1, a=2)
1 @ 2
1 ? 2
!x
&x
1..2
1.
.5
a.5
'a' if 'b' in 'abc' else 'c'
[x for x in xs]
lambda
None
True
False
NONE
none.x
true.x
xs | map('int', default=3) | list
'abc' | list | reverse | join
s.split() | map('length') | list
(xs | map('string') | list) + ys
{'a': xs}.a[1:] | sum
d | length
d | first
d | last
d.keys() | first
d.items() | first
d.items() | last
d.items()[0]
d.values() | sum
(1, 2, 3) | last
'a'.b.c
recs | selectattr('tags') | list | count
"%s" | format(none)
false ~ none ~ 1.0 ~ 'x'
1 == 1 == 1
1 < 2 == true
not 1 == 2
not (1 in xs) and true
xs == [1, 2, 3]
xs is eq [1, 2, 3]
s in [s]
'a' in ['a', 'b'] and 'c' not in ['a']
0.1 * 3
1e15
1e17
1.0e-10
100000000000000000000.0
5 % 3.0
2 ** 62
1 - 1.0
3 // 0.7
""
'' is string
'a\\b'
'quote \' in'
"quote \" in"
'\u4f60\u597d'
'你好' | length
'你好'[1]
'😀'.upper()
"caf\u00e9" == "café"
[[1, [2, [3]]]] | string
{'k': {'k': {'k': 1}}}.k.k.k
{'a': 1}.items() | list | tojson
[{'a': 'x'}, {'a': 'y'}] | map(attribute='a') | list | tojson
xs[0] + xs[1] * xs[2]
(xs | length) - 1
xs | length - 1
xs[(xs | length) - 1]
xs[-1:] | first
s[:5] ~ '...'
s.split(' ')[0] | upper
s.split(' ')[-1].strip('!')
"a" < "b" and "b" < "c"
1 in [1] in [[1]]
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
{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }} {% endfor %}
{% for x in xs %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}
{% for x in xs %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}
{% for x in xs %}{{ loop.cycle('a', 'b') }}{% endfor %}
{% for x in [1, 1, 2, 2, 1] %}{{ loop.changed(x) }}{% endfor %}
{% for x in xs %}{{ loop.nope }}{% endfor %}
{% for x in xs %}{{ loop.nope.nope }}{% endfor %}
{% for x in xs %}{{ loop is callable }}{{ loop is iterable }}{{ loop | length }}{% endfor %}
{% for x in xs %}{% for y in ys %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}
{% for x in xs %}{% set outer = loop %}{% for y in ys %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}
{% for x in range(5) %}{% if x == 3 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% for x in range(5) %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}
{% for x in xs %}{% break %}{% else %}else{% endfor %}
{% for x in xs %}{% continue %}{% else %}else{% endfor %}
{% for x in xs %}{% if x == 2 %}{% break %}{% endif %}{% else %}else{% endfor %}
{% for x in xs %}{% for y in ys %}{% break %}{% endfor %}{{ x }}{% endfor %}
{% for x in xs %}{% set b %}{{ x }}{% if x == 2 %}{% break %}{% endif %}{% endset %}{{ b }}{% endfor %}
{% for x in xs %}{% filter upper %}a{{ x }}{% if x == 2 %}{% continue %}{% endif %}{% endfilter %}{% endfor %}
{% for x in xs %}{% with y = x %}{{ y }}{% if y == 2 %}{% break %}{% endif %}{% endwith %}{% endfor %}
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
{% set ns = namespace(found=false) %}{% for x in xs %}{% if x == 2 %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.found }}
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
{% macro m(caller=none) %}{{ caller() if caller else 'none' }}{% endmacro %}{{ m() }}{% call m() %}x{% endcall %}
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
{% macro m(a, b) %}{{ a }}{% endmacro %}{{ m.name }}{{ m.arguments }}{{ m.caller }}{{ m.catch_kwargs }}{{ m.catch_varargs }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1) | length }}{{ m(1) is string }}{{ m is callable }}
{% macro m(a) %}  {{ a }}  {% endmacro %}[{{ m('x') | trim }}]
{% macro m(a) -%}\n  {{ a }}\n{%- endmacro %}[{{ m('x') }}]
{% macro m(*a) %}{% endmacro %}
{% macro m(a, a) %}{% endmacro %}
{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(**{'a': 3, 'b': 4}) }}
{% macro m(true) %}{% endmacro %}
{% macro m() %}x{% endmacro %}{% set f = m %}{{ f() }}
{% macro a() %}{% call b() %}{{ caller() }}{% endcall %}{% endmacro %}{% macro b() %}<{{ caller() }}>{% endmacro %}{% call a() %}x{% endcall %}
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
{% set c = cycler('odd', 'even') %}{% for x in xs %}{{ c.next() }}{{ c.current }} {% endfor %}{{ c.reset() }}{{ c.current }}
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
{% if x is defined %}a{% else %}b{% endif %}{% set x = 1 %}{% if x is defined %}a{% else %}b{% endif %}
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
{% if messages is not defined %}nomsg{% endif %}
{% for t in [{'function': {'name': 'f', 'parameters': {'x': 1}}}] %}{{ t.function.name }}{{ t['function'] | tojson }}{% endfor %}
{% set content = '<think>\nabc\n</think>\n\nrest' %}{{ content.split('</think>')[0].split('<think>')[-1].strip('\n') }}|{{ content.split('</think>')[-1].lstrip('\n') }}
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
{% macro t(x) %}{% if x is mapping %}{{ '{' }}{% for k, v in x.items() %}{{ k }}:{{ t(v) }}{% if not loop.last %},{% endif %}{% endfor %}{{ '}' }}{% elif x is string %}"{{ x }}"{% elif x is iterable %}[{% for v in x %}{{ t(v) }}{% endfor %}]{% else %}{{ x }}{% endif %}{% endmacro %}{{ t({'a': [1, 'b', {'c': none}]}) }}
"""
