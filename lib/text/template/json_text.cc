// JSON as Python's json module writes it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "text/characters.h"
#include "text/template/python_text.h"

namespace vfm::text::jinja {
namespace {

void append_json_string(std::string& out, std::string_view text, bool ascii) {
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = next_code_point(text, at);
    static constexpr std::string_view kNamed = "\"\\\n\r\t\f\b", kLetters = "\"\\nrtfb";
    const std::size_t named = c < 0x80 ? kNamed.find(static_cast<char>(c)) : kNamed.npos;
    if (named != kNamed.npos) {
      out += '\\', out += kLetters[named];
    } else if (c < 0x20 || (ascii && c >= 0x7f && c < 0x10000 && c != 0x7f)) {
      out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c));
    } else if (ascii && c >= 0x10000) {
      const auto rest = static_cast<std::uint32_t>(c) - 0x10000;
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff));
    } else {
      out += text.substr(begin, at - begin);
    }
  }
  out += '"';
}

class JsonWriter {
 public:
  JsonWriter(const JsonStyle& style, Run& run) : style_(style), run_(run) {}

  void write(const Value& value, std::size_t level) {
    if (out.size() > kLargest) run_.refuse("'tojson' writes more than 16 MiB");
    if (value.string()) {
      append_json_string(out, *value.string(), style_.ensure_ascii);
    } else if (value.list()) {
      const auto item = [&](std::size_t i) { write((*value.list())[i], level + 1); };
      group('[', ']', value.list()->size(), level, item);
    } else if (value.mapping()) {
      Dict items = *value.mapping();
      if (style_.sort_keys)
        std::sort(items.begin(), items.end(),
                  [](const auto& a, const auto& b) { return a.first < b.first; });
      group('{', '}', items.size(), level, [&](std::size_t i) {
        append_json_string(out, items[i].first, style_.ensure_ascii);
        out += style_.after_key;
        write(items[i].second, level + 1);
      });
    } else if (value.is_none()) {
      out += "null";
    } else if (value.is_bool()) {
      out += value.truth() ? "true" : "false";
    } else if (value.is_integer()) {
      out += std::to_string(value.integer());
    } else if (value.is_real() && std::isfinite(value.real())) {
      out += real_text(value.real());
    } else {
      run_.refuse("'tojson' cannot write {}", value.is_real() ? "this number" : value.kind());
    }
  }

  std::string out;

 private:
  template <class Item>
  void group(char open, char close, std::size_t count, std::size_t level, Item item) {
    const auto line = [&](std::size_t depth) {
      if (!style_.indent) return;
      out += '\n';
      for (std::size_t i = 0; i < depth; ++i)
        out += *style_.indent;
    };
    out += open;
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) out += style_.between;
      line(level + 1);
      item(i);
    }
    if (count > 0) line(level);
    out += close;
  }

  const JsonStyle& style_;
  Run& run_;
};

}  // namespace

std::string to_json_text(const Value& value, const JsonStyle& style, Run& run) {
  run.charge_bytes(value.weight());
  JsonWriter writer(style, run);
  writer.write(value, 0);
  run.charge_bytes(writer.out.size());
  return std::move(writer.out);
}

}  // namespace vfm::text::jinja
