// SPDX-License-Identifier: Apache-2.0
#include "dist/section_times.h"

#include <algorithm>
#include <vector>

namespace vfm::dist {

double SectionTimes::begin(std::string_view what, double limit, double least, double now) {
  if (what_ == "step" || what_ == "validation") {
    std::deque<double>& last = last_[what_];
    last.push_back(now - since_);
    if (last.size() > kLast) last.pop_front();
  }
  what_ = what;
  since_ = now;
  learnt_ = false;
  const bool beside = what == kBeside;
  const auto known = last_.find(beside ? "step" : what);
  if (limit <= 0 || least <= 0 || known == last_.end() || known->second.size() < kEnough)
    return limit;
  std::vector<double> times(known->second.begin(), known->second.end());
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  const double usual = std::max(beside ? kTimes * least : least, kTimes * *middle);
  learnt_ = usual < limit;
  return std::min(limit, usual);
}

}  // namespace vfm::dist
