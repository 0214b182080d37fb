// The page of the verb `status` of programs whose work has parts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "parts/status.h"

/// Writes a page (report/html.h) about the parts in `directory` to `path`: a picture of all parts
/// by state, the rate by time, the hosts, what failed and why, and the errors of inputs. Its size
/// does not grow with the number of parts: a square of the picture is of several parts if there are
/// more than a thousand, and a table has at most 200 rows. Throws Error.
void write_part_page(const vfm::parts::PartsStatus& status, const std::string& directory,
                     const std::string& path);
