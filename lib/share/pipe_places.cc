// SPDX-License-Identifier: Apache-2.0
#include "share/pipe_places.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace vfm::share {

std::uint64_t pipe_name(int fd) {
  struct stat st {};
  if (::fstat(fd, &st) != 0 || !S_ISFIFO(st.st_mode)) return 0;
  return (static_cast<std::uint64_t>(st.st_dev) << 40) ^ static_cast<std::uint64_t>(st.st_ino);
}

std::vector<int> pipe_places(std::span<const PipeEnds> programs) {
  using Rank = std::tuple<std::int64_t, std::size_t, std::int64_t, std::size_t>;
  std::vector<Rank> ranks;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    if (!programs[i].used) continue;
    const PipeEnds* first = &programs[i];
    std::size_t depth = 0;
    while (depth < programs.size() && first->input != 0) {
      const auto before =
          std::find_if(programs.begin(), programs.end(), [&](const PipeEnds& other) {
            return other.used && &other != first && other.output == first->input;
          });
      if (before == programs.end()) break;
      first = &*before;
      ++depth;
    }
    ranks.emplace_back(first->pid, depth, programs[i].pid, i);
  }
  std::sort(ranks.begin(), ranks.end());
  std::vector<int> places(programs.size());
  for (std::size_t place = 0; place < ranks.size(); ++place)
    places[std::get<3>(ranks[place])] = static_cast<int>(place);
  return places;
}

}  // namespace vfm::share
