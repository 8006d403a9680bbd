"""Expressions for make_jinja_cases.py, one a line: methods, filters, tests, and mixtures of all."""

EXPRESSIONS = r"""
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
