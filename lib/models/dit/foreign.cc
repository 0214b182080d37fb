// SPDX-License-Identifier: Apache-2.0
#include "models/dit/foreign.h"

#include <algorithm>

namespace vfm::models {
namespace {

void replace_all(std::string& name, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = name.find(from, at)) != std::string::npos; at += to.size())
    name.replace(at, from.size(), to);
}

}  // namespace

const TensorForm* form_of(std::span<const TensorForm> forms, std::span<const std::string> names) {
  for (const TensorForm& form : forms)
    if (std::ranges::any_of(names, [&](const std::string& name) {
          return name.find(form.sign) != std::string::npos;
        }))
      return &form;
  return nullptr;
}

std::string name_here(const TensorForm& form, std::string name) {
  if (name.starts_with(form.prefix)) name.erase(0, form.prefix.size());
  for (const Renaming& one : form.renamings)
    replace_all(name, one.there, one.here);
  return name;
}

std::string name_there(const TensorForm& form, std::string name) {
  for (std::size_t i = form.renamings.size(); i-- > 0;)
    replace_all(name, form.renamings[i].here, form.renamings[i].there);
  return name.insert(0, form.prefix);
}

}  // namespace vfm::models
