// Chat templates: how a model wants a conversation written as one text. They are small programs in
// Jinja that lie in the model's folder; this runs a subset of the language, with the result that
// Jinja has as transformers sets it up (trim_blocks, lstrip_blocks, loop controls, its own tojson).
//
// There is: text and whitespace control; {{ }}; if, for (with a filter, else, break, continue), set
// (of a name, of an attribute of a namespace, of a block), macro, generation; expressions but for
// *args; the filters, tests and methods of template/builtins.h.
// Not there, and refused by name and line where a rendering comes to it: include, import, extends,
// block, call, filter, with, raw, recursive loops, other filters, tests and methods. What asks for
// today's date (strftime_now) is not defined: a prompt must not depend on the day.
// Templates are strangers' files: a rendering is bounded in work, depth and output, and reaches
// nothing but what it is given.
//
// Source: jinja.palletsprojects.com, "Template Designer Documentation" 3.1; transformers 5.24,
// utils/chat_template_utils.py, for what is set and defined.
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
  /// `what` names the template in errors. Throws Error{usage} for what cannot be read.
  ChatTemplate(std::string_view source, std::string_view what);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  /// The text for these variables: an object with "messages" and what else the template asks for
  /// ("add_generation_prompt", "bos_token", "tools", ...). Throws Error{usage}, also what the
  /// template itself refuses (raise_exception).
  std::string render(const Json& variables) const;

 private:
  std::unique_ptr<const jinja::Template> template_;
};

}  // namespace vfm::text
