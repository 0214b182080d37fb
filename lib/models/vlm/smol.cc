// SPDX-License-Identifier: Apache-2.0
#include "models/vlm/smol.h"

#include <string>

#include "base/error.h"

namespace vfm::models {
namespace {

SmolConfig smol_config_of(const HfComponent& folder) {
  folder.need_type({kSmolType, kIdefics3Type});
  return SmolConfig::from_json(folder.config(), fmt::format("'{}'", folder.config_path()));
}

}  // namespace

Smol::Smol(const HfComponent& folder, DType compute, bool int8, Device device)
    : config_(smol_config_of(folder)),
      selected_(folder.weights(),
                [&](const std::string& name) {
                  std::string own = smol_name(name);
                  // Of a tied model it is the table a second time.
                  if (config_.text.tied && own == "lm_head.weight") own.clear();
                  return own;
                }),
      weights_((check_tensors(selected_, config_.tensors()), selected_), compute, int8, device),
      vision_(config_, selected_, weights_),
      text_(config_.text, weights_) {}

Tensor Smol::look(const QwenPicture& picture) const {
  const QwenGrid& grid = picture.sight.grid;
  if (grid.rows != grid.columns || picture.patches.size(0) != grid.patches())
    fail("patches {} are not those of {} tiles of {} x {}", to_string(picture.patches.shape()),
         grid.frames, grid.rows, grid.columns);
  return vision_.forward(picture.patches, grid.rows);
}

std::vector<QwenPlace> Smol::places(std::span<const std::int32_t> ids,
                                    std::span<const QwenSight> sights) const {
  std::int64_t seen = 0, asked = 0;
  for (const QwenSight& sight : sights)
    seen += sight.grid.tokens(config_.merge);
  std::vector<QwenPlace> places;
  for (const std::int32_t id : ids) {
    const auto n = static_cast<std::int32_t>(places.size());
    places.push_back({n, n, n});
    asked += stands_for_sight(id) ? 1 : 0;
  }
  if (asked != seen) fail("a prompt has {} tokens for pictures that have {}", asked, seen);
  return places;
}

}  // namespace vfm::models
