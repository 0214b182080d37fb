// SPDX-License-Identifier: Apache-2.0
#include "train/step/recent_steps.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace vfm::train {
namespace {

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

bool RecentSteps::is_spike(double loss, double norm, double factor) const {
  if (losses_.size() < kSteps) return false;
  return loss > factor * median_of(losses_) || norm > factor * median_of(norms_);
}

void RecentSteps::add(double loss, double norm) {
  for (const auto& [values, value] : {std::pair{&losses_, loss}, std::pair{&norms_, norm}}) {
    if (values->size() == kSteps) values->erase(values->begin());
    values->push_back(value);
  }
}

Json RecentSteps::to_json() const {
  return {{"losses", losses_}, {"norms", norms_}};
}

RecentSteps RecentSteps::from_json(const Json& value, std::string_view what) {
  RecentSteps steps;
  for (const auto& [values, name] :
       {std::pair{&steps.losses_, "losses"}, std::pair{&steps.norms_, "norms"}}) {
    const Json list = value.is_object() ? value.value(name, Json()) : Json();
    if (!list.is_array()) fail("'recent' in {} must have a list '{}'", what, name);
    for (const Json& number : list) {
      if (!number.is_number()) fail("'recent' in {} must have numbers in '{}'", what, name);
      values->push_back(number.get<double>());
    }
  }
  if (steps.losses_.size() != steps.norms_.size() || steps.losses_.size() > kSteps)
    fail("'recent' in {} must have up to {} losses, and as many norms", what, kSteps);
  return steps;
}

}  // namespace vfm::train
