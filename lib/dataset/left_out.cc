// SPDX-License-Identifier: Apache-2.0
#include "dataset/left_out.h"

#include "base/error.h"
#include "base/json.h"
#include "io/packed.h"

namespace vfm::dataset {

Json value_json(const std::string& value) {
  if (value.empty()) return nullptr;
  try {
    return parse_json(value, "a value");
  } catch (const Error&) {
    return value;  // A shortened value is not valid JSON.
  }
}

Json LeftOut::json() const {
  Json json = {
      {"key", key}, {"reason", kLeftOutReasons[static_cast<std::size_t>(reason)]}, {"by", by}};
  if (reason == LeftOutReason::without) {
    json["line"] = value;
  } else {
    json["value"] = value_json(value);
    json["samples"] = samples;
    json["most"] = most;
  }
  return json;
}

std::string LeftOut::pack() const {
  std::string out;
  io::put_ordered_text(out, key);
  io::put_ordered(out, static_cast<std::uint64_t>(reason), 1);
  io::put_text(out, by);
  io::put_text(out, value);
  io::put_number(out, samples);
  io::put_number(out, most);
  return out;
}

LeftOut LeftOut::unpack(std::string_view packed) {
  LeftOut sample;
  sample.key = io::take_ordered_text(packed);
  sample.reason = static_cast<LeftOutReason>(io::take_ordered(packed, 1));
  sample.by = io::take_text(packed);
  sample.value = io::take_text(packed);
  sample.samples = io::take_number(packed);
  sample.most = io::take_number(packed);
  return sample;
}

void LeftOutList::add_packed(std::string_view packed) {
  sorter_.add(packed);
  io::take_ordered_text(packed);
  ++counts_.at(io::take_ordered(packed, 1));
}

void LeftOutList::for_each(const std::function<bool(const LeftOut&)>& use) {
  io::Sorter::Stream stream = sorter_.sorted();
  for (std::string_view record; stream.next(record);)
    if (!use(LeftOut::unpack(record))) return;
}

}  // namespace vfm::dataset
