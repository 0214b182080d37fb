// Chat templates, and a conversation for them.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/json.h"
#include "fuzz.h"
#include "text/chat_template.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vfm;
  static const Json kVariables = parse_json(
      R"({"messages":[{"role":"user","content":"a b"},{"role":"assistant","content":[)"
      R"({"type":"image"},{"type":"text","text":"c\nd"}]}],"add_generation_prompt":true,)"
      R"("tools":null,"bos_token":"<s>"})",
      "the conversation");
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    text::ChatTemplate(bytes, "input").render(kVariables);
  } catch (const Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {
      "{% set n = namespace(v=0) %}{%- for m in messages %}{% if m['content'] is string -%}\n"
      "  {{ m.content | trim ~ '\\n' }}{% else %}{% for c in m.content if c.type != 'image' %}"
      "{% set n.v = n.v + 1 %}{{ loop.index }}{{ c['text'].split('\\n')[-1] }}{% endfor %}"
      "{%+ endif %}{% endfor %}{{ n.v }}",
      "{%- macro f(a, b=2) %}{{ a | tojson(indent=b) }}{% endmacro %}{{ f({'a': [1, 2.5, none]}) }}"
      "{% for k, v in {'x': 1}.items() %}{{ k }}{% if v > 3 %}{% break %}{% endif %}{% else %}"
      "{% endfor %}{{ 'abc'[::-1][0] if tools is none else messages[1:] | length }}",
      "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | join(',') "
      "}}"
      "{# x -#} {{- raise_exception('a') if 1 // 2 ** 3 % 4 in range(9) and not false }}",
      "{{ 'a' * 9 ~ 1.5e3 | int }}{% set a, b = (1, [2]) %}{% set t %}{{ a }}{% endset %}{{ "
      "t.upper() }}"
      "{% generation %}{{ \"\\x41\\u00e9\" | replace('A', 'b') | indent(2, true) }}{% "
      "endgeneration %}"};
}
