#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/chat_templates.json: chat templates, conversations, and what transformers renders; and ids of
the tokenizers in tests/golden/tokenizers.safetensors, with the text that the library tokenizers makes of them.

The templates are written here. They have the constructs of those in public folders (models that see, chat
models with tools, models that think before they answer), and every filter, test and method that
lib/text/template/builtins.h lists.

    python3 -m venv venv && venv/bin/pip install transformers==5.24.0 tokenizers==0.23.3 \\
        jinja2==3.1.6 safetensors numpy
    venv/bin/python scripts/golden/chat_templates.py

The same bytes at every run.
"""
import argparse
import json
import pathlib
import random

from safetensors.numpy import load_file
from tokenizers import Tokenizer
from transformers.utils.chat_template_utils import render_jinja_template

ROOT = pathlib.Path(__file__).resolve().parents[2]

SYSTEM = {"role": "system", "content": "Be brief.\nBe kind."}
ASK = {"role": "user", "content": "  What is it?  "}
REPLY = {"role": "assistant", "content": "A fox – \"red\"."}
LOOK = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Which colour?"}]}
FILM = {"role": "user", "content": [{"type": "video", "video": "x"}, {"type": "text", "text": "Describe it."},
                                    {"type": "text", "text": "In <b>one</b> sentence."}]}
THINK = {"role": "assistant", "content": "<think>\nHm, it's red.\n</think>\n\nRed."}
CALLS = {"role": "assistant", "content": "", "tool_calls": [
    {"type": "function", "function": {"name": "find", "arguments": {"what": "fox", "n": 2, "far": None}}}]}
RESULT = {"role": "tool", "content": "[1, 2]"}
TOOLS = [{"type": "function", "function": {"name": "find", "description": "Finds things – fast",
                                           "parameters": {"type": "object", "properties": {
                                               "what": {"type": "string"}, "n": {"type": "integer", "default": 1.5}},
                                               "required": ["what"]}}}]

CONVERSATIONS = {
    "one": [ASK],
    "turns": [SYSTEM, ASK, REPLY, {"role": "user", "content": "Why?"}],
    "image": [LOOK],
    "film": [SYSTEM, FILM, {"role": "assistant", "content": [{"type": "text", "text": "A fox."}]}, LOOK],
    "think": [ASK, THINK, {"role": "user", "content": "Sure?"}, THINK],
    "calls": [SYSTEM, ASK, CALLS, RESULT, RESULT, REPLY],
}

# name: (template, conversations, variables)
TEMPLATES = {
    # One text block a message, or a list of parts; counters in namespaces.
    "vision_chatml": ("""{% set images = namespace(value=0) %}{% set films = namespace(value=0) -%}
{% for message in messages %}{% if loop.first and message['role'] != 'system' %}<|im_start|>system
You help.<|im_end|>
{% endif %}<|im_start|>{{ message['role'] }}
{% if message['content'] is string %}{{ message['content'] }}<|im_end|>
{% else %}{% for content in message['content'] %}{% if content['type'] == 'image' or 'image' in content or \
'image_url' in content %}{% set images.value = images.value + 1 %}{% if number %}Image {{ images.value }}: {% endif -%}
<|see|><|image|><|seen|>{% elif content['type'] == 'video' or 'video' in content %}\
{% set films.value = films.value + 1 %}{% if number %}Film {{ films.value }}: {% endif %}<|see|><|film|><|seen|>\
{% elif 'text' in content %}{{ content['text'] }}{% endif %}{% endfor %}<|im_end|>
{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}
""", ["one", "turns", "image", "film"], [{}, {"number": True}]),
    # Roles with a capital letter, a colon that depends on the first part.
    "frames": ("""<|im_start|>{% for message in messages %}{{message['role'] | capitalize}}\
{% if message['content'][0]['type'] == 'image' %}{{':'}}{% else %}{{': '}}{% endif %}\
{% for line in message['content'] %}{% if line['type'] == 'text' %}{{line['text']}}\
{% elif line['type'] == 'image' %}{{ '<image>' }}{% elif line['type'] == 'video' %}{{ '<video>' }}{% endif %}\
{% endfor %}<end>
{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}""", ["image"], [{}]),
    # Headers, trimmed contents, the first token before the first message.
    "headers": ("""{% set rest = messages %}{% for message in rest %}{% set content = '<|head|>' + message['role'] + \
'<|/head|>\\n\\n' + message['content'] | trim + '<|end|>' %}{% if loop.index0 == 0 %}\
{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}\
{% if add_generation_prompt %}{{ '<|head|>assistant<|/head|>\\n\\n' }}{% endif %}""", ["one", "turns"],
                [{"bos_token": "<s>"}]),
    # Turns must alternate; the system's words go into the first question.
    "inst": ("""{%- if messages[0]['role'] == 'system' -%}
    {%- set rules = messages[0]['content'] -%}
    {%- set turns = messages[1:] -%}
{%- else -%}
    {%- set rules = false -%}
    {%- set turns = messages -%}
{%- endif -%}
{%- for message in turns -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{- raise_exception('Roles must alternate') -}}
    {%- endif -%}
    {%- if loop.index0 == 0 and rules is not false -%}
        {%- set content = '<<SYS>>\\n' + rules.strip() + '\\n<</SYS>>\\n\\n' + message['content'] -%}
    {%- else -%}
        {%- set content = message['content'] -%}
    {%- endif -%}
    {%- if message['role'] == 'user' -%}
        {{- bos_token ~ '[INST] ' ~ content.strip() ~ ' [/INST]' -}}
    {%- elif message['role'] == 'assistant' -%}
        {{- ' ' ~ content.strip() ~ ' ' ~ eos_token -}}
    {%- endif -%}
{%- endfor -%}
""", ["one", "turns", "calls"], [{"bos_token": "<s>", "eos_token": "</s>"}]),
    # Tools as JSON, their calls and results, whose blocks join.
    "tools": ("""{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- "# Tools\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools>\\n{\\"name\\": <name>}<|im_end|>\\n" }}
{%- elif messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" \
and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- for call in message.tool_calls %}
            {%- if call.function is defined %}
                {%- set call = call.function %}
            {%- endif %}
            {{- '\\n<call>\\n{"name": "' }}
            {{- call.name }}
            {{- '", "arguments": ' }}
            {{- call.arguments | tojson }}
            {{- '}\\n</call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<result>\\n' + message.content + '\\n</result>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if think is defined and think is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}""", ["one", "turns", "calls"], [{}, {"tools": TOOLS, "think": False}]),
    # What was thought is left out but for the last answer; messages from the end.
    "thinking": ("""{%- set ns = namespace(open=true, last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.open and message.role == "user" and message.content is string and not(message.content\
.startswith('<r>') and message.content.endswith('</r>')) %}
        {%- set ns.open = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content if message.content is string else '' %}
    {%- set thought = '' %}
    {%- if message.thoughts is defined and message.thoughts is not none %}
        {%- set thought = message.thoughts %}
    {%- elif '</think>' in content %}
        {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
        {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
    {%- endif %}
    {%- if loop.index0 > ns.last and thought and (loop.last or (not loop.last)) %}
        {{- '<' + message.role + '>\\n<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' + content }}
    {%- else %}
        {{- '<' + message.role + '>\\n' + content }}
    {%- endif %}
    {{- '\\n' }}
{%- endfor %}""", ["one", "turns", "think"], [{}]),
    # Parts picked by attribute, generation blocks.
    "picked": ("""{% for message in messages %}{{'<|' + message['role'] + '|>'}}
{# pictures come first #}
{% for content in message['content'] | selectattr('type', 'equalto', 'image') %}{{ '<image>' }}{% endfor %}
{% for content in message['content'] | selectattr('type', 'equalto', 'video') %}{{ '<video>' }}{% endfor %}
{% if message['role'] != 'assistant' %}
{% for content in message['content'] | selectattr('type', 'equalto', 'text') %}{{ '\\n' + content['text'] }}{% endfor %}
{% else %}
{% for content in message['content'] | selectattr('type', 'equalto', 'text') %}{% generation %}\
{{ '\\n' + content['text'] }}{% endgeneration %}{% endfor %}
{% endif %}
{% endfor %}
{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}""", ["image"], [{}]),
    # Macros that call each other, defaults, mappings.
    "macros": ("""{%- macro kind(of, deep=1) -%}
    {%- if of.type == 'object' -%}
        {{- '{' }}{% for name, part in of.properties | items %}{{ name }}: {{ kind(part, deep + 1) }}
        {%- if not loop.last %}, {% endif %}{% endfor %}{{ '}' + deep | string -}}
    {%- else -%}
        {{- of.type }}{{ ' = ' ~ of.default if of.default is defined -}}
    {%- endif -%}
{%- endmacro %}
{%- macro content_of(content) %}
    {%- if content is string %}
        {{- content }}
    {%- else %}
        {%- for item in content %}
            {%- if item.type == 'image' or 'image' in item %}<image>{% elif 'text' in item %}{{ item.text }}{% endif %}
        {%- endfor %}
    {%- endif %}
{%- endmacro %}
{%- for tool in tools or [] %}
{{ tool.function.name }}({{ kind(of=tool.function.parameters) }})
{%- endfor %}
{%- for message in messages %}
{{ message.role | upper }}: {{ content_of(message.content) }}
{%- endfor %}
""", ["one", "turns", "image", "film"], [{}, {"tools": TOOLS}]),
    # White space: signs, line ends, comments, blocks in lines of their own.
    "space": ("""
  {% if true %}
    a
  {%+ if true %} b {% endif +%}
  {%- if true -%}   c
   {% endif %}

  {# gone #}
  {#- gone too -#}   d
  {{ 'e' }}
  {{- 'f' -}}
   g\t{% if true %} h{% endif %}\t
\t{% set x %} in {{ 'a' }} block
  {% endset %}[{{ x }}]
  {% endif %}
end

""", ["one"], [{}]),
    "loops": ("""{% for x in range(7) if x % 2 == 0 %}{{ loop.index }}/{{ loop.length }}:{{ x }}{{ ',' if not loop.last }}\
{% else %}none{% endfor %}
{% for x in [] %}{{ x }}{% else %}none{% endfor %}
{% for x in 'añ€' %}{{ loop.revindex }}{{ loop.revindex0 }}{{ x }}{{ loop.cycle('-', '+') }}{% endfor %}
{% for k, v in {'a': 1, 'b': [1, 'x']}.items() %}{{ k }}={{ v }};{% endfor %}
{% for k in {'a': 1, 'b': 2} %}{{ k }}{% endfor %}
{% for x in range(9) %}{% if x == 2 %}{% continue %}{% elif x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% set y = 1 %}{% for x in [1, 2] %}{% set y = y + x %}{{ y }} {% endfor %}{{ y }}
{% for x in [1, 2] %}{% for y in [1, 2] %}{{ loop.index }}{{ loop.depth }}{% endfor %}{{ loop.index }}{% endfor %}
{% for m in messages %}{{ (loop.previtem.role if loop.previtem is defined) ~ '>' ~ (loop.nextitem.role if not loop.last) }}|\
{% endfor %}
{% for x in missing %}{{ x }}{% endfor %}{% for a, b in [(1, 2), [3, 4]] %}{{ a + b }} {% endfor %}""",
              ["one", "turns"], [{}]),
    "expressions": ("""{{ 1 + 2 * 3 - -4 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 3 ** 2 }} {{ 2 ** -1 }}
{{ 1_000 + 0 }} {{ 1.5e3 }} {{ 0.1 + 0.2 }} {{ 1e16 }} {{ 1e-5 }} {{ 3.0 }} {{ -0.5 | abs }} {{ 5.5 // 2 }} {{ -5.5 % 2 }}
{{ 'a' 'b' ~ 1 ~ none ~ true }} {{ 'ab' * 2 }} {{ [1] + [2, 'it\\'s'] }} {{ (1,) }} {{ () }} {{ {'a': "it's \\"x\\""} }}
{{ 1 < 2 < 3 }} {{ 1 == 1.0 }} {{ 'a' < 'b' }} {{ true == 1 }} {{ none == none }} {{ [1, 2] == [1, 2] }} {{ 'b' in 'abc' }}
{{ 2 not in [1, 2] }} {{ not 0 and 'x' or 'y' }} {{ '' or 'z' }} {{ 'p' if none }} {{ 1 if false else 2 if false else 3 }}
{{ 'añ€x'[1] }} {{ 'añ€x'[-2:] }} {{ 'abcdef'[::2] }} {{ 'abc'[::-1] }} {{ [1, 2, 3][5:] }} {{ [1, 2, 3][-9:2] }} {{ [1,2,3][:0:-1] }}
{{ {'a': {'b': [7]}}.a.b[0] }} {{ {'items': 5}['items'] }} {{ 'x'.missing is defined }} {{ missing is defined }} {{ missing }}|
{{ "\\t\\x41\\u00e9\\q\\\\" }} {{ 'a\\
b' }} {{ [none, true, 1.0, 'é\\n\\x01'] }} {{ 'x' is string and 1 is number }} {{ -1 | abs }} {{ (1 if true) | string + 'x' }}
{{ messages[0].content.split() }} {{ messages[-1]['role'] }} {{ messages.0.role }} {{ "{{" }} {{ '%}' }} {{ [[1, 2], [3]] | length }}""",
                    ["one"], [{}]),
    "filters": ("""{{ ' x ' | trim }}|{{ 'xxaxx' | trim('x') }}|{{ 'añ' | length }}|{{ [1, 2] | count }}|{{ {'a': 1} | length }}
{{ missing | default('d') }}|{{ '' | default('d') }}|{{ '' | d('d', true) }}|{{ none | default('d') }}|{{ missing | length }}
{{ 'hELLO wORLD' | capitalize }}|{{ 'a-b (c d' | title }}|{{ 'ß' | upper }}|{{ 'ΑΣ' | lower }}|{{ 'ǆa' | capitalize }}
{{ [1, 2, 3] | first }}|{{ [1, 2, 3] | last }}|{{ 'abc' | first }}|{{ [] | first }}|{{ 'abc' | list }}|{{ {'a': 1} | list }}
{{ [1, none, 'x'] | join(', ') }}|{{ messages | map(attribute='role') | join('-') }}|{{ messages | join('+', attribute='role') }}
{{ ['a', 'b'] | map('upper') | list }}|{{ [1, 0, 2] | select | list }}|{{ [1, 2, 3] | reject('odd') | list }}
{{ [1, 2, 3] | select('gt', 1) | list }}|{{ messages | rejectattr('role', 'equalto', 'user') | list | length }}
{{ messages | selectattr('role', 'in', ['user', 'tool']) | map(attribute='role') | list }}|{{ messages | selectattr('none') | list }}
{{ 'aXbXc' | replace('X', '-') }}|{{ 'aXbXc' | replace('X', '-', 1) }}|{{ 'ab' | replace('', '.') }}|{{ [1, 2] | reverse | list }}
{{ 'abc' | reverse }}|{{ '12' | int + 1 }}|{{ 'x' | int }}|{{ 'x' | int(7) }}|{{ '1.9' | int }}|{{ 2.9 | int }}|{{ '1.5' | float }}
{{ 'a\\nb\\n\\nc' | indent }}|{{ 'a\\nb' | indent(2, true) }}|{{ 'a\\n\\nb' | indent(width=1, blank=true) }}|{{ 5 | string + '5' }}
{{ {'b': [1, 2.0, none, true], 'a': 'é"\\\\/<>&\\'\\n\\x7f'} | tojson }}|{{ {'b': 1, 'a': [ ]} | tojson(indent=2) }}
{{ {'b': 1, 'a': 2} | tojson(sort_keys=true, separators=(',', ':')) }}|{{ 'é😀' | tojson(ensure_ascii=true) }}|{{ 'x' | safe }}
{{ [{'a': {'b': 1}}, {'a': {}}] | map(attribute='a.b', default=0) | list }}|{{ {'a': 1} | items | list }}|{{ 1e22 | tojson }}""",
                ["one", "turns"], [{}]),
    "tests": ("""{% for x in [1, 1.0, true, none, 'a', [1], {'a': 1}, missing] %}{{ x is defined }} {{ x is none }} {{ x is string }} \
{{ x is mapping }} {{ x is sequence }} {{ x is iterable }} {{ x is number }} {{ x is integer }} {{ x is float }} {{ x is boolean }} \
{{ x is true }} {{ x is undefined }} {{ x is false }}
{% endfor %}{{ 3 is odd }} {{ 3 is even }} {{ 6 is divisibleby 3 }} {{ 6 is divisibleby(4) }} {{ 2 is eq 2 }} {{ 2 is ne(2) }}
{{ 1 is lt 2 }} {{ 1 is le 1 }} {{ 2 is gt 1 }} {{ 1 is ge 2 }} {{ 1 is in [1] }} {{ 'a' is in 'abc' }} {{ none is sameas none }}
{{ 'AB' is upper }} {{ 'ab' is lower }} {{ 'a' is not string }} {{ 1 is lessthan 2 and 2 is greaterthan 1 }} {{ not 1 is equalto 2 }}""",
              ["one"], [{}]),
    "methods": ("""{{ ' a b '.strip() }}|{{ 'xxa'.lstrip('x') }}|{{ 'axx'.rstrip('x') }}|{{ 'a,b,,c'.split(',') }}|{{ ' a  b c '.split() }}
{{ 'a,b,c'.split(',', 1) }}|{{ 'a,b,c'.rsplit(',', 1) }}|{{ ' a b  c '.split(none, 1) }}|{{ ' a b  c '.rsplit(none, 1) }}
{{ 'a\\nb\\r\\nc\\n'.splitlines() }}|{{ 'abc'.startswith('ab') }}|{{ 'abc'.endswith(('x', 'c')) }}|{{ 'aXb'.replace('X', 'YY') }}
{{ '-'.join(['a', 'b']) }}|{{ 'añbñ'.find('ñ') }}|{{ 'añbñ'.rfind('ñ') }}|{{ 'abab'.count('ab') }}|{{ 'aaa'.replace('a', 'b', 2) }}
{{ 'hELLO'.capitalize() }}|{{ "they're bill's".title() }}|{{ 'aB'.upper() }}|{{ 'aB'.lower() }}|{{ '12'.isdigit() }}|{{ ' '.isspace() }}
{{ 'prefix-x'.removeprefix('prefix-') }}|{{ 'x.txt'.removesuffix('.txt') }}|{{ {'a': 1}.get('a') }}|{{ {'a': 1}.get('b') }}
{{ {'a': 1}.get('b', 2) }}|{{ {'a': 1, 'b': 2}.keys() | list }}|{{ {'a': 1, 'b': 2}.values() | list }}|{{ dict(a=1, b=2) }}
{{ range(3) | list }}|{{ range(1, 4) | list }}|{{ range(5, 0, -2) | list }}|{{ dict({'a': 1}, b=2).items() | list }}
{% set ns = namespace(a=1, b='x') %}{% set ns.c = ns.a + 1 %}{{ ns.a }}{{ ns.b }}{{ ns.c }}{{ ns.d is defined }}
{% set a, b = 1, 2 %}{{ b }}{{ a }}{% set t = 1, 2 %}{{ t }}""", ["one"], [{}]),
    # Faults: each of them is an error there, and must be one here.
    "fault_add": ("{{ 'a' + 1 }}", ["one"], [{}]),
    "fault_undefined": ("{{ missing.part }}", ["one"], [{}]),
    "fault_call": ("{{ missing() }}", ["one"], [{}]),
    "fault_raise": ("{{ raise_exception('no ' + messages[0].role) }}", ["one"], [{}]),
    "fault_json": ("{{ missing | tojson }}", ["one"], [{}]),
    "fault_open": ("{% if true %}x", ["one"], [{}]),
    "fault_order": ("{{ 'a' < 1 }}", ["one"], [{}]),
    "fault_append": ("{% set x = [] %}{{ x.append(1) }}", ["one"], [{}]),
    "fault_zero": ("{{ 1 // 0 }}", ["one"], [{}]),
    "fault_range": ("{{ range(100001) | list | length }}", ["one"], [{}]),
    "fault_space": ("{% set x = {} %}{% set x.a = 1 %}", ["one"], [{}]),
    "fault_tag": ("{% nonsense %}", ["one"], [{}]),
    "fault_filter": ("{{ 1 | nonsense }}", ["one"], [{}]),
}


def cases(templates):
    for name, (template, conversations, settings) in templates.items():
        for conversation in conversations:
            for index, variables in enumerate(settings):
                for generate in (False, True):
                    if name.startswith("fault") and generate:
                        continue
                    yield name, f"{name}, {conversation}, {index}, {generate}", template, \
                        {"messages": CONVERSATIONS[conversation], "add_generation_prompt": generate, **variables}


def rendered(template, variables):
    given = dict(variables)
    messages, tools = given.pop("messages"), given.pop("tools", None)
    try:
        return render_jinja_template([messages], tools=tools, chat_template=template, **given)[0][0]
    except Exception as error:
        return {"error": type(error).__name__ + ": " + str(error)}


def decoded():
    rng = random.Random(3)
    files = load_file(ROOT / "tests/golden/tokenizers.safetensors")
    for name in ("qwen.json", "gpt2.json", "smol.json"):
        # Those files have no decoder, as they are of tokenizers that only read.
        contents = json.loads(bytes(files["file." + name].tobytes())) | {"decoder": {
            "type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}}
        tokenizer = Tokenizer.from_str(json.dumps(contents))
        size = tokenizer.get_vocab_size()
        whole = [tokenizer.encode(text).ids for text in ("A fox 👩‍🚀 — 的 ﷺ.", "<|im_start|>hi<|im_end|> a</s>")]
        for ids in whole + [[rng.randrange(size + 3) for _ in range(40)] for _ in range(20)]:
            yield {"file": name, "ids": ids, "text": tokenizer.decode(ids, skip_special_tokens=True),
                   "with_special": tokenizer.decode(ids, skip_special_tokens=False)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default=ROOT / "tests/golden/chat_templates.json", type=pathlib.Path)
    path = parser.parse_args().output
    listed, places = {}, []
    for name, label, template, variables in cases(TEMPLATES):
        listed[name] = template
        result = rendered(template, variables)
        if name.startswith("fault") != isinstance(result, dict) and "Roles must" not in str(result):
            raise SystemExit(f"{label}: {result}")
        # As transformers passes them.
        variables.setdefault("tools", None)
        variables.setdefault("documents", None)
        places.append({"case": label, "template": name, "variables": variables,
                       "text": None if isinstance(result, dict) else result})
    lines = ",\n".join
    compact = {"templates": "{" + lines(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in listed.items()) + "}",
               "cases": "[" + lines(map(json.dumps, places)) + "]",
               "decoded": "[" + lines(map(json.dumps, decoded())) + "]"}
    path.write_text("{" + lines(f"{json.dumps(k)}: {v}" for k, v in compact.items()) + "}\n")
    print(f"{path}: {len(places)} cases")


if __name__ == "__main__":
    main()
