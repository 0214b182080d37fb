// The part of a network that a rank of a mesh has, before what a program adds: shards, FP8 and
// formats. Apart from nn/network_layout.h, as the compute core has no mesh.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dist/mesh.h"
#include "nn/network_layout.h"

namespace vfm::nn {

/// `mesh` has a layout with nothing left open in cp (settled_cp()) and must outlive the result.
inline NetworkLayout layout_on_mesh(const dist::Mesh& mesh) {
  using dist::Axes;
  const dist::Layout& asked = mesh.layout();
  const auto shared = [&](Axes axis) { return mesh.size(axis) > 1 ? &mesh.group(axis) : nullptr; };
  NetworkLayout network;
  network.tp = shared(Axes::tp);
  network.cp = shared(Axes::cp);
  network.pp = shared(Axes::pp);
  if (network.cp != nullptr) network.cp_kind = asked.cp_kind;
  network.hybrid = asked.hybrid && network.cp != nullptr;
  network.tp_chunks = asked.chunks();
  if (network.pp != nullptr) network.stages = asked.stages;
  // NetworkLayout::check() refuses a cp that is not a product of two.
  if (asked.cp_kind != CpKind::all_to_all_ring || asked.cp_heads <= 1 || asked.cp_heads == asked.cp)
    return network;
  network.cp_heads = &mesh.group(Axes::cp_heads);
  network.cp_ring = &mesh.group(Axes::cp_ring);
  return network;
}

}  // namespace vfm::nn
