// Inside lib/text only: a chat template's operators, as in Python, for numbers, strings and lists.
// Whole numbers have 64 bits: an overflow is refused. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "text/template/value.h"

namespace vfm::text::jinja {

/// `sign`: + - * / // % **
Value compute(std::string_view sign, const Value& a, const Value& b, Run& run);
/// `sign`: + -
Value compute(std::string_view sign, const Value& a, Run& run);

}  // namespace vfm::text::jinja
