// Operators of a chat template on numbers, strings and lists, as in Python. Integers have 64 bits,
// and an overflow is an error. Only for lib/text. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "text/template/value.h"

namespace vfm::text::jinja {

/// Returns `a` SIGN `b`. `sign` is + - * / // % or **.
Value compute(std::string_view sign, const Value& a, const Value& b, Run& run);
/// Returns SIGN `a`. `sign` is + or -.
Value compute(std::string_view sign, const Value& a, Run& run);

}  // namespace vfm::text::jinja
