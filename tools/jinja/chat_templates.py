"""Chat templates of models that do not exist, and conversations to render them with.

Each template was written for this project, and together they use what chat templates use: see the
comment above each. Add a construct here when a model needs one that no template has yet.
"""

TEMPLATES = {}

# A namespace of several fields, updated while walking backwards with a computed index; reasoning
# found by splitting at its closing tag; inline `if` without `else`.
TEMPLATES["lighthouse"] = r"""{%- set watch = namespace(asked=-1, heard=0, calm=true, log='') -%}
{%- for entry in messages[::-1] -%}
    {%- set berth = messages | length - loop.index -%}
    {%- if entry.role == 'user' and watch.asked < 0 -%}
        {%- set watch.asked = berth -%}
    {%- elif entry.role == 'tool' -%}
        {%- set watch.heard = watch.heard + 1 -%}
        {%- set watch.calm = false -%}
        {%- set watch.log = watch.log ~ berth ~ ';' -%}
    {%- endif -%}
{%- endfor -%}
{{- bos_token ~ 'LAMP lit, ' ~ messages | length ~ ' entries, newest question ' ~ watch.asked }}
{% if not watch.calm %}
{{ watch.heard }} fog horns at {{ watch.log.rstrip(';').split(';')[::-1] | join(' and ') }}
{% endif %}
{% for entry in messages %}
    {% set spoken = entry.content if entry.content is string else '' %}
    {% set mused = entry.get('reasoning_content') %}
    {% if mused is none and entry.role == 'assistant' and '</ponder>' in spoken %}
        {% set mused, spoken = spoken.split('</ponder>', 1) %}
        {% set mused = mused.replace('<ponder>', '') %}
    {% endif %}
[{{ entry.role | upper }}{{ '*' if loop.index0 == watch.asked }}]
    {%- if mused and loop.index0 > watch.asked %} (to itself: {{ mused.strip() }}){% endif %}
 {{ spoken.lstrip('\n') }}
[DARK]
{% endfor %}
{%- if add_generation_prompt -%}
    [ASSISTANT]{{ ' (to itself:' if beam | default('wide') != 'narrow' }}
{%- endif -%}
"""

# Alternating roles or an exception; messages[1:]; `is defined` of an `if` without `else`; `+`.
TEMPLATES["pilot"] = r"""{{ bos_token }}
{%- set orders = messages[0].content | trim if messages and messages[0].role == 'system' %}
{%- set legs = messages[1:] if orders is defined else messages %}
{%- for leg in legs %}
    {%- if leg.role not in ['user', 'assistant'] or leg.tool_calls %}
        {{- raise_exception('PILOT takes no cargo: leg ' ~ loop.index ~ ' is of ' ~ leg.role) }}
    {%- elif (leg.role == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('Shore and ship answer each other; leg ' ~ loop.index0 ~ ' is a second '
            + leg.role + ' in a row') }}
    {%- elif leg.content is none %}
        {{- raise_exception('leg ' ~ loop.index ~ ' is silent') }}
    {%- endif %}
    {%- if leg.role == 'user' %}
        {{- '/shore/ ' + ('{' + orders + '} ' if loop.first and orders else '') }}
        {%- if leg.content is string %}
            {{- leg.content | trim + ' /over/' }}
        {%- else %}
            {{- leg.content | map(attribute='type') | join('+') ~ ' /over/' }}
        {%- endif %}
    {%- else %}
        {{- '/ship/ ' + leg.content.split('</ponder>')[-1].strip() + ' /out/' + eos_token }}
    {%- endif %}
{%- endfor %}
{{- '/ship/' if add_generation_prompt and legs and legs[-1].role == 'user' }}"""

# One macro inside another, defaults and keyword arguments; arguments that are strings or objects;
# `in` and `not in` on dicts; .items() in a loop.
TEMPLATES["ferry"] = r"""{%- macro crate(label, body='', lid='=', width=3) -%}
    {%- macro plank(n) -%}{{ lid * n }}{%- endmacro -%}
    {{- plank(width) ~ ' ' ~ label ~ ' ' ~ plank(n=width) ~ '\n' ~ body ~ '\n' -}}
{%- endmacro -%}
{%- macro lading(errand) -%}
    {%- set goods = errand.arguments -%}
    {%- if goods is string -%}
        sealed: {{ goods }}
    {%- elif goods is mapping -%}
        {%- for label, amount in goods.items() -%}
            {{- label }} <- {{ amount if amount is string else amount | tojson -}}
            {{- '' if loop.last else '\n' -}}
        {%- else -%}
            in ballast
        {%- endfor -%}
    {%- endif -%}
{%- endmacro -%}
{{- crate(width=1, label='MANIFEST', body=tools | default([], true) | length ~ ' errands') -}}
{%- for tool in tools or [] -%}
    {%- set errand = tool['function'] if 'function' in tool else tool -%}
    {{- crate(errand.name, errand.description or 'No word on it.', lid='-') -}}
{%- endfor -%}
{%- for hail in messages -%}
    {%- if hail.content is string and hail.content -%}
        {{- crate('deck of ' ~ hail.role, hail.content) -}}
    {%- elif 'tool_calls' not in hail -%}
        {{- crate('deck of ' ~ hail.role) -}}
    {%- endif -%}
    {%- for order in hail.tool_calls or [] -%}
        {{- crate(order.function.name, body=lading(order.function), lid='#', width=loop.index) -}}
    {%- endfor -%}
{%- endfor -%}
{%- if add_generation_prompt %}{{ crate('deck of assistant') | trim ~ '\n' }}{% endif -%}
"""

# A schema printed by macros that call each other, deeper each time.
TEMPLATES["shipwright"] = r"""
{%- macro timber(part, depth) -%}
    {%- if part.enum is defined -%}
        one of {{ part.enum | map('tojson') | join(' or ') }}
    {%- elif part.anyOf is defined -%}
        {%- for choice in part.anyOf -%}
            {{ timber(choice, depth) }}{{ ', else ' if not loop.last }}
        {%- endfor -%}
    {%- elif part.type == 'array' -%}
        row of ({{ timber(part['items'], depth) if 'items' in part else 'whatever' }})
    {%- elif part.type == 'object' -%}
        {{- hull(part, depth + 1) -}}
    {%- else -%}
        {{- part.get('type', 'whatever') | title -}}
    {%- endif -%}
{%- endmacro -%}
{%- macro hull(frame, depth=0) -%}
    {%- set needed = frame.get('required', []) -%}
    {%- if frame.properties is defined and frame.properties is mapping -%}
        {%- for rib, part in frame.properties | dictsort -%}
            {{- '\n' ~ '. ' * depth ~ rib ~ ('!' if rib in needed else '?') ~ ' ' -}}
            {{- timber(part, depth) -}}
        {%- endfor -%}
    {%- else -%}
        bare
    {%- endif -%}
{%- endmacro -%}
{%- for tool in tools or [] if tool.function is mapping -%}
    {%- with plan = tool.function -%}
DRAWING {{ loop.index }}/{{ loop.length }}: {{ plan.name.replace('_', ' ') | title }}
{%- for line in (plan.description or '').split('\n') if line %}

    ; {{ line }}
        {%- endfor -%}
{{ hull(plan.parameters, depth=1) }}

{% endwith -%}
{%- endfor -%}
{%- for talk in messages if talk.content is string -%}
    YARD.{{ talk.role }}({{ talk.content | tojson(ensure_ascii=true) }})
{% endfor -%}
{{ 'YARD.assistant(' if add_generation_prompt }}"""

# Every way to trim: tags indented, `-` and `+` on each side, comments, text beside tags.
TEMPLATES["tidemark"] = r"""
    {%+ if bos_token +%}
  {{ bos_token }}
    {%- endif +%}

  {# high water #}
<tab>{#- the line above ends in a tab's worth of nothing -#}

   {% for wave in messages -%}

        crest {{- ' ' }}
    {{- wave.role -}}
        :
    {%+ if wave.content is string %}

  {{ wave.content }}
    {% elif wave.content %}
      {{- '  froth  ' -}}
    {% else -%}
      slack
    {%- endif %}   ~
  {%- if not loop.last %}

  {%+ endif -%}
 <tab> {%- endfor +%}
 ebb<tab>{% if add_generation_prompt %}<tab>crest assistant: {%- endif -%}

  """.replace("<tab>", "\t")

# Neighbours in a loop, break and continue, and else of a loop.
TEMPLATES["regatta"] = r"""{% for boat in messages %}
{% if boat.role == 'system' and not loop.first %}{% continue %}{% endif %}
{% if loop.previtem is not defined or loop.previtem.role != boat.role %}
{{ '>' * (loop.index0 + 1) }} {{ boat.role }} sets sail
{% endif %}
{% if boat.content is string %}
{% for gust in boat.content.split() %}
{% if loop.index0 >= 4 %}
  ... and {{ loop.revindex }} more
{% break %}
{% endif %}
{% if gust.startswith('<') and gust.endswith('>') %}{% continue %}{% endif %}
  {{ loop.cycle('port', 'starboard') }} {{ gust }}
{% else %}
  becalmed
{% endfor %}
{% endif %}
{% if loop.last %}
finish
{%- elif loop.nextitem.role == 'tool' %}
a buoy ahead
{% else %}
{{ loop.nextitem.role }} is gaining
{% endif %}
{% else %}
No boat came.
{% endfor %}
{% if add_generation_prompt %}

> assistant sets sail{% endif %}"""

# Content as a list of parts: selectattr, rejectattr, map, first, last, list, length.
TEMPLATES["cooper"] = r"""
{%- macro staves(barrel) -%}
    {%- if barrel is none -%}
        (dry)
    {%- elif barrel is string -%}
        {{- barrel -}}
    {%- elif barrel is iterable and barrel is not mapping -%}
        {%- set liquid = barrel | selectattr('type', 'equalto', 'text') | list -%}
        {%- set solid = barrel | rejectattr('type', 'equalto', 'text') | list -%}
        {%- set text = liquid | map(attribute='text') | join -%}
        {{- text -}}
        {%- if solid -%}
            {{- ' (+' ~ solid | length ~ ' sealed, from ' ~ (solid | first).type ~ ' to ' -}}
            {{- (solid | last).type ~ ')' -}}
        {%- endif -%}
    {%- endif -%}
{%- endmacro -%}
{%- set labelled = messages | selectattr('tool_calls', 'defined') | list -%}
{%- set asked = messages | selectattr('role', 'in', ['user', 'system']) -%}
{{- 'Cellar of ' ~ messages | length ~ ', labelled ' ~ labelled | length -}}
{%- set askers = asked | map(attribute='role') | unique | join(' then ') -%}
{{- ', asked by ' ~ askers | default('nobody', true) }}
{% for cask in messages %}
o{{ cask.role | first | upper }}| {{ staves(cask.content) | replace('\n', '\no | ') }} |o
{% if cask.tool_calls %}
 |_ {{ cask.tool_calls | map(attribute='function.name') | join(', ') | upper }}
{% endif %}
{% endfor %}
{{ ('o' ~ 'assistant'[0] | upper ~ '| ') if add_generation_prompt else eos_token -}}
"""

# tojson with all of its arguments, the date, dictsort and items, and get with a default.
TEMPLATES["almanac"] = r"""{{ bos_token -}}
Day {{ strftime_now('%j of %Y') }}, a {{ strftime_now('%A') }} in {{ strftime_now('%B') | upper }};
the clock stands at {{ strftime_now("%H:%M") }}.
{% if tools %}
Instruments aboard ({{ tools | length }}):
{% for instrument in tools %}
{{ instrument | tojson(indent=2, sort_keys=true) }}
{{ instrument.function.get('parameters', {}) | tojson(separators=(',', ':'), ensure_ascii=True) }}
    {% set dials = (instrument.function.parameters or {}).get('properties') or {} %}
    {% for dial, face in dials | items %}
 {{ loop.index }}. {{ dial }} reads {{ face.get('type', 'anything') }}
    {% endfor %}
{% endfor %}
{% else %}
No instruments aboard.
{% endif %}
{% for page in messages %}
== {{ page.role | title }}, page {{ loop.index }} ==
    {% for key, value in page | dictsort(reverse=true) if key != 'role' %}
{{ key }} = {{ value | tojson(indent=1) if value is mapping or value is not string else value }}
    {% endfor %}
{% endfor %}
{%- if add_generation_prompt %}
== Assistant, page {{ messages | length + 1 }} ==
{% endif %}"""

# What the model says within {% generation %}; set blocks, plain and filtered; tool results grouped.
TEMPLATES["logbook"] = r"""
{%- set heading %}
Ship's log{% if tools %}, with {{ tools | map(attribute='function.name') | join(' & ') }}{% endif %}

{% endset -%}
{{- heading.strip() ~ '\n' -}}
{%- set state = namespace(open=false, results=0) -%}
{%- for line in messages -%}
    {%- set ink | trim | replace('\r', '') -%}
        {{ line.content if line.content is string else (line.content or [])
            | map(attribute='text') | select('string') | join('¶') }}
    {%- endset -%}
    {%- if line.role == 'tool' -%}
        {%- set state.results = state.results + 1 -%}
        {{- '{lookout ' if not state.open else ' | ' -}}{{- ink -}}
        {%- set state.open = loop.nextitem is defined and loop.nextitem.role == 'tool' -%}
        {{- '}\n' if not state.open -}}
    {%- elif line.role == 'assistant' -%}
        {{- '{mate ' -}}
        {%- generation -%}
            {{- ink -}}
            {%- for job in line.tool_calls or [] %}
 !{{ job.function.name }} {{ job.function.arguments | tojson
                if job.function.arguments is not string else job.function.arguments }}!
            {%- endfor -%}
            {{- '}' ~ eos_token -}}
        {%- endgeneration -%}
        {{- '\n' -}}
    {%- else -%}
        {{- '{' ~ {'user': 'captain', 'system': 'harbour'}.get(line.role, line.role) ~ ' ' -}}
        {{- ink ~ '}\n' -}}
    {%- endif -%}
{%- endfor -%}
{{- '(' ~ state.results ~ ' sightings)\n' if state.results > 0 -}}
{{- '{mate ' if add_generation_prompt -}}
"""

# All of it in one line.
TEMPLATES["hawser"] = (
    "{% set knot = namespace(count=0, last='nobody') %}{{ bos_token }}"
    "{% if beam is defined and beam is not none %}(beam {{ beam }}){% endif %}"
    "{% for strand in messages %}{% set knot.count = knot.count + 1 %}"
    "{% if strand.role == knot.last %}{{ '&' }}{% else %}{{ '@' + strand.role[:2] + '@' }}"
    "{% endif %}{% set knot.last = strand.role %}"
    "{% if strand['content'] is string %}{{ strand['content'].replace('@', '(at)').rstrip() }}"
    "{% elif strand['content'] is iterable %}{% for fibre in strand['content'] %}"
    "{{ fibre['text'] if fibre is mapping and 'text' in fibre else '(knot)' }}{% endfor %}"
    "{% endif %}{% if strand.tool_calls is defined and strand.tool_calls is iterable %}"
    "{% for pull in strand.tool_calls %}{{ '@pull@' ~ pull.function.name ~ '(' }}"
    "{% if pull.function.arguments is mapping %}{% for k, v in pull.function.arguments.items() %}"
    "{{ k + '=' + (v | tojson) }}{% if not loop.last %}{{ ', ' }}{% endif %}{% endfor %}"
    "{% else %}{{ pull.function.arguments }}{% endif %}{{ ')' }}{% endfor %}{% endif %}"
    "{{ eos_token if strand.role == 'assistant' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '@as@' if knot.count else '@as@(first) ' }}{% endif %}"
)

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "tide_table",
            "description": "High and low water of a port\n\nheights in metres — año",
            "parameters": {
                "type": "object",
                "properties": {
                    "port": {"type": "string"},
                    "days": {"type": "integer"},
                    "datum": {"type": "string", "enum": ["mean", "lowest"]},
                },
                "required": ["port"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "find_chart",
            "parameters": {
                "type": "object",
                "properties": {
                    "names": {"type": "array", "items": {"type": "string"}},
                    "area": {
                        "type": "object",
                        "properties": {"depth": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
                    },
                },
            },
        },
    },
]


def call(name, arguments, number=0):
    return {
        "id": f"{name}#{number}",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def user(content):
    return {"role": "user", "content": content}


def assistant(content, **more):
    return {"role": "assistant", "content": content, **more}


def system(content):
    return {"role": "system", "content": content}


def result(identity, content):
    return {"role": "tool", "tool_call_id": identity, "content": content}


CONVERSATIONS = {
    "hello": {"messages": [user("Ahoy!")], "add_generation_prompt": True},
    "system": {
        "messages": [system(" Speak little. "), user("Which sea is saltiest? 哪个 😀")],
        "add_generation_prompt": True,
        "enable_thinking": False,
        "beam": "narrow",
    },
    "turns": {
        "messages": [
            user("12 knots for 3 hours?"),
            assistant("<think>\ntimes\n</think>\n\n36 miles."),
            user("And <|user|> with @ 2 knots of current against us?\n"),
            assistant("30 miles", reasoning_content=" ten times three \n"),
        ],
        "add_generation_prompt": False,
        "reasoning_effort": "high",
        "beam": None,
    },
    "pondering": {
        "messages": [
            user("Anchor here?"),
            assistant("<ponder>\nmud or rock?\n</ponder>\n\nYes, </ponder> mud."),
            user(" How much chain? "),
            assistant("<ponder>five times the depth</ponder>Sixty metres.\n"),
        ],
        "add_generation_prompt": True,
    },
    "tools": {
        "messages": [
            system("Look it up."),
            user("Tides at Brest?"),
            assistant(
                None,
                tool_calls=[call("tide_table", {"port": "Brest", "days": 2, "épure": None})],
            ),
            result("tide_table#0", '{"high": 6.4}'),
            assistant("High water is 6.4 m."),
        ],
        "tools": TOOLS,
        "add_generation_prompt": True,
    },
    "many_calls": {
        "messages": [
            user("a"),
            assistant(
                "aye",
                reasoning_content="r",
                tool_calls=[
                    call("find_chart", {"names": ["x", "y"], "area": {"depth": 1.5}}),
                    call("tide_table", {"port": 'St. John\'s "Narrows"'}, 1),
                    call("tide_table", {}, 2),
                ],
            ),
            result("find_chart#0", "one"),
            result("tide_table#1", "two\r\nlines"),
        ],
        "tools": TOOLS,
        "add_generation_prompt": True,
    },
    "parts": {
        "messages": [
            user(
                [
                    {"type": "text", "text": "what is "},
                    {"type": "image", "image": "x"},
                    {"type": "text", "text": "this\nflag"},
                    {"type": "audio", "audio": "y"},
                ]
            )
        ],
        "add_generation_prompt": True,
    },
    "assistant_first": {"messages": [assistant("Ahoy")], "add_generation_prompt": True},
    "user_twice": {
        "messages": [user("one"), user("two <b> three four five six"), system("late")],
        "add_generation_prompt": True,
    },
    "string_arguments": {
        "messages": [user("x"), assistant("", tool_calls=[call("f", '{"a": 1}')])],
        "add_generation_prompt": False,
    },
    "null_content": {"messages": [user(None)], "add_generation_prompt": True},
    "empty": {"messages": [], "add_generation_prompt": True},
}
