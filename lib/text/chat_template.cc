// SPDX-License-Identifier: Apache-2.0
#include "text/chat_template.h"

#include "base/error.h"
#include "base/json.h"
#include "text/template/evaluator.h"
#include "text/unicode.h"

namespace vfm::text {
namespace {

constexpr std::size_t kLongestTemplate = std::size_t{1} << 20;

}  // namespace

ChatTemplate::ChatTemplate(std::string_view source, std::string_view what) {
  if (source.size() > kLongestTemplate) fail_usage("{} is larger than 1 MiB", what);
  template_ =
      std::make_unique<const jinja::Template>(jinja::parse_template(valid_utf8(source), what));
}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

std::string ChatTemplate::render(const Json& variables) const {
  jinja::Run run{template_->what};
  jinja::Scope frame;
  for (const auto& [name, value] : variables.items())
    frame.names.insert_or_assign(name, jinja::Value::of(value, run));
  return jinja::Evaluator(run).render(*template_, frame);
}

}  // namespace vfm::text
