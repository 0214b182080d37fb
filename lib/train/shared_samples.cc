// SPDX-License-Identifier: Apache-2.0
#include "train/shared_samples.h"

#include <cstddef>
#include <span>
#include <utility>

#include "base/json.h"

namespace vfm::train {
namespace {

/// Calls act(bytes) with each array of a sample.
template <class Act>
void for_each_array(CleanSample& sample, const Act& act) {
  for (std::vector<float>* values : {&sample.x0, &sample.text, &sample.pixels})
    act(*values);
  act(sample.codes);
}

/// All of a sample but its values.
Json describe(ReadSample& read) {
  CleanSample& sample = read.sample;
  Json sizes = Json::array();
  for_each_array(sample, [&](const auto& values) { sizes.push_back(values.size()); });
  return {{"key", sample.key},      {"frames", sample.frames}, {"height", sample.height},
          {"width", sample.width},  {"fps", sample.fps},       {"sizes", std::move(sizes)},
          {"failure", read.failure}};
}

ReadSample described(const Json& text) {
  ReadSample read;
  CleanSample& sample = read.sample;
  sample.key = text["key"].get<std::string>();
  sample.frames = text["frames"].get<int>();
  sample.height = text["height"].get<int>();
  sample.width = text["width"].get<int>();
  sample.fps = text["fps"].get<double>();
  std::size_t next = 0;
  for_each_array(sample,
                 [&](auto& values) { values.resize(text["sizes"][next++].get<std::size_t>()); });
  read.failure = text["failure"].get<std::string>();
  return read;
}

void broadcast(dist::Group& group, std::span<std::byte> bytes) {
  group.broadcast(dist::lend(bytes), 0).wait();
}

}  // namespace

void share_samples(dist::Group& group, dist::Group* of_values, std::vector<ReadSample>& samples) {
  if (group.size() == 1) return;
  std::string text;
  if (group.rank() == 0) {
    Json list = Json::array();
    for (ReadSample& read : samples)
      list.push_back(describe(read));
    text = dump_json(list);
  }
  std::size_t size = text.size();
  broadcast(group, std::as_writable_bytes(std::span(&size, 1)));
  text.resize(size);
  broadcast(group, std::as_writable_bytes(std::span(text)));
  if (group.rank() != 0) {
    samples.clear();
    for (const Json& one : parse_json(text, "the samples of another rank"))
      samples.push_back(described(one));
  }
  for (ReadSample& read : samples)
    for_each_array(read.sample, [&](auto& values) {
      const bool of_text = static_cast<const void*>(&values) == &read.sample.text;
      dist::Group* const to = of_text ? &group : of_values;
      if (!values.empty() && to != nullptr)
        broadcast(*to, std::as_writable_bytes(std::span(values)));
    });
}

}  // namespace vfm::train
