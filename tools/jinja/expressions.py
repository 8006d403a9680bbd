"""Expressions for make_jinja_cases.py, one a line: values, operators, access to members."""

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
"""
