// SPDX-License-Identifier: Apache-2.0
#include "models/dit/stdit.h"

#include <cstdint>

namespace vfm::models {

void prepare(SpaceTimePacks& packs, int heads, int head_dim, Device device) {
  for (ops::AttentionPack* pack : {&packs.frames, &packs.pixels}) {
    pack->key_lengths = pack->query_lengths;
    pack->heads = pack->key_heads = heads;
    pack->head_dim = head_dim;
    ops::prepare(*pack, device);
  }
}

SpaceTimePacks space_time_packs(const std::vector<ops::TokenGrid>& grids, int heads, int head_dim,
                                Device device) {
  SpaceTimePacks packs;
  std::vector<std::int32_t> order;
  std::int32_t first = 0;  // token of the sample
  for (const ops::TokenGrid& g : grids) {
    const int places = g.height * g.width;
    packs.frames.query_lengths.insert(packs.frames.query_lengths.end(),
                                      static_cast<std::size_t>(g.frames), places);
    packs.pixels.query_lengths.insert(packs.pixels.query_lengths.end(),
                                      static_cast<std::size_t>(places), g.frames);
    for (int place = 0; place < places; ++place)
      for (int frame = 0; frame < g.frames; ++frame)
        order.push_back(first + frame * places + place);
    first += g.frames * places;
  }
  prepare(packs, heads, head_dim, device);
  packs.pixel_order = ops::RowOrder(order, device);
  return packs;
}

ops::Exchange in_pixel_order(const ops::Exchange& before, const ops::RowOrder& order) {
  return {[=](const Tensor& rows) {
            ops::Tape silent(false);
            return ops::reorder_rows(silent, before ? before.forward(rows) : rows, order);
          },
          [=](const Tensor& gradient) {
            ops::Tape silent(false);
            const Tensor back = ops::restore_rows(silent, gradient, order);
            return before ? before.adjoint(back) : back;
          }};
}

}  // namespace vfm::models
