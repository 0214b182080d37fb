// Inside lib/dist only: ranks in messages.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace vfm::dist {

/// "rank 3", "ranks 0-2 and 5", "ranks 0, 2 and 4-7"; "no rank" for none. Sorts them.
std::string rank_words(std::vector<int> ranks);

}  // namespace vfm::dist
