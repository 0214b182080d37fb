// Chat templates: a model's rules for writing a conversation as one text. They are small Jinja
// programs in the model's folder. This runs a subset of Jinja, with the same results as
// transformers' configuration of it (trim_blocks, lstrip_blocks, loop controls, its own tojson).
//
// Supported: text and whitespace control; {{ }}; if, for (with a filter, else, break, continue),
// set (of a name, an attribute of a namespace, a block), macro, generation; expressions without
// *args; the filters, tests and methods of template/builtins.h. Not supported, and refused by name
// and line when a rendering reaches it: include, import, extends, block, call, filter, with, raw,
// recursive loops, other filters, tests and methods. strftime_now is not defined, since a prompt
// must not depend on the day. Templates are untrusted files: a rendering is bounded in work, depth
// and output, and reaches only its variables.
//
// Source: jinja.palletsprojects.com, "Template Designer Documentation" 3.1; transformers 5.24,
// utils/chat_template_utils.py, for the configuration.
// Thread-safety: const members from any thread.
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
  /// `what` names the template in errors. Throws Error{usage} for invalid syntax.
  ChatTemplate(std::string_view source, std::string_view what);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  /// The text for these variables: an object with "messages" and the template's other variables
  /// ("add_generation_prompt", "bos_token", "tools", ...). Throws Error{usage}, also when the
  /// template calls raise_exception.
  std::string render(const Json& variables) const;

 private:
  std::unique_ptr<const jinja::Template> template_;
};

}  // namespace vfm::text
