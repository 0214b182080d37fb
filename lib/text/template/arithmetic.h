// Inside lib/text only: the operators of a chat template, as Python has them for numbers, strings
// and lists. Whole numbers have 64 bits: what does not fit is refused. Thread-safety: any thread.
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
