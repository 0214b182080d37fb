// Chat templates, the rules of a model for writing a conversation as one text. A template is a
// small Jinja program in the model's folder. This class runs a subset of Jinja, with the same
// results as transformers (trim_blocks, lstrip_blocks, loop controls, tojson).
//
// Supported: text and whitespace control; {{ }}; if, for (with a filter, else, break, continue),
// set (of a name, an attribute of a namespace, a block), macro, generation; expressions without
// *args; the filters, tests and methods of template/builtins.h. Not supported: include, import,
// extends, block, call, filter, with, raw, recursive loops, other filters, tests and methods. If a
// rendering reaches an unsupported construct, the error names the construct and its line.
// strftime_now is not defined, because a prompt must not depend on the day. Templates may be
// hostile: a rendering has limits for work, depth and output, and reads only its variables.
//
// Source: jinja.palletsprojects.com, "Template Designer Documentation" 3.1; transformers 5.24,
// utils/chat_template_utils.py, for the configuration. Thread-safety: const members from any
// thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json_fwd.h"

namespace vfm::text {

namespace jinja {
struct Template;
}

class ChatTemplate {
 public:
  /// `what` is the template's name in errors. Throws Error{usage} for invalid syntax.
  ChatTemplate(std::string_view source, std::string_view what);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  /// Returns the text for `variables`, an object with "messages" and the template's other variables
  /// ("add_generation_prompt", "bos_token", "tools", ...). Throws Error{usage}, also if the
  /// template calls raise_exception.
  std::string render(const Json& variables) const;

 private:
  std::unique_ptr<const jinja::Template> template_;
};

}  // namespace vfm::text
