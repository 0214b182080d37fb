// SPDX-License-Identifier: Apache-2.0
#include "models/folder/scaled_weights.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "io/lazy_map.h"
#include "models/folder/load_tensors.h"

namespace vfm::models {
namespace {

constexpr std::string_view kFactors[] = {".scale_weight", ".weight_scale"};
constexpr std::string_view kIgnored[] = {".scale_input", ".input_scale"};
constexpr std::string_view kMarker = "scaled_fp8", kFormat = ".comfy_quant";

/// What stands before an end of the name; nothing if it ends otherwise.
template <std::size_t N>
std::optional<std::string_view> before_end(std::string_view name,
                                           const std::string_view (&ends)[N]) {
  for (const std::string_view end : ends)
    if (name.ends_with(end)) return name.substr(0, name.size() - end.size());
  return {};
}

/// Throws Error unless the description of a weight says that it is in 8-bit floats.
void need_eight_bits(const io::TensorView& tensor, const std::string& path) {
  io::need_bytes(tensor.data);
  const std::string_view text(reinterpret_cast<const char*>(tensor.data.data()),
                              tensor.data.size());
  const Json description = parse_json(text, fmt::format("'{}' of '{}'", tensor.name, path));
  const std::string format =
      description.is_object() ? get_string(description, "format").value_or("") : "";
  if (format != "float8_e4m3fn" && format != "float8_e5m2")
    fail(
        "'{}' of '{}' is of format '{}', which is not supported: float8_e4m3fn and float8_e5m2 are",
        tensor.name.substr(0, tensor.name.size() - kFormat.size()), path, format);
}

class ScaledSet final : public io::TensorSet {
 public:
  explicit ScaledSet(std::unique_ptr<io::TensorSet> source)
      : TensorSet(source->path()), source_(std::move(source)) {
    std::vector<const io::TensorView*> others;
    for (const io::TensorView& tensor : source_->tensors()) {
      if (const auto module = before_end(tensor.name, kFactors))
        take(std::string(*module) + ".weight", tensor);
      else if (tensor.name.ends_with(kFormat))
        need_eight_bits(tensor, path());
      else if (!before_end(tensor.name, kIgnored) && !tensor.name.ends_with(kMarker))
        others.push_back(&tensor);
    }
    for (const io::TensorView* other : others) {
      io::TensorView tensor = *other;
      if (const auto found = factors_.find(tensor.name); found != factors_.end())
        tensor.scales = found->second;
      add(std::move(tensor));
    }
  }
  void release(const io::TensorView& tensor) const override { source_->release(tensor); }

 private:
  void take(const std::string& name, const io::TensorView& tensor) {
    const io::TensorView* const weight = source_->find(name);
    if (!weight || (weight->dtype != "F8_E4M3" && weight->dtype != "F8_E5M2"))
      fail("'{}' of '{}' has factors of '{}', which is {}", tensor.name, path(), name,
           weight ? weight->dtype : "not there");
    const std::int64_t count = tensor.elements();
    if (count != 1 && (weight->shape.empty() || count != weight->shape[0]))
      fail("'{}' of '{}' has {} factors of {} rows, not one or as many", tensor.name, path(), count,
           weight->shape.empty() ? 0 : weight->shape[0]);
    const Tensor values = read_floats(tensor);
    const float* const begin = values.data<float>();
    if (!factors_.try_emplace(name, begin, begin + count).second)
      fail("'{}' of '{}' has factors twice", name, path());
  }

  std::unique_ptr<io::TensorSet> source_;
  std::map<std::string, std::vector<float>> factors_;  // by weight
};

}  // namespace

std::unique_ptr<io::TensorSet> take_scales(std::unique_ptr<io::TensorSet> set) {
  const bool some = std::ranges::any_of(set->tensors(), [](const io::TensorView& tensor) {
    return before_end(tensor.name, kFactors) || before_end(tensor.name, kIgnored) ||
           tensor.name.ends_with(kMarker) || tensor.name.ends_with(kFormat);
  });
  return some ? std::make_unique<ScaledSet>(std::move(set)) : std::move(set);
}

}  // namespace vfm::models
