// What ranks give of a checkpoint, copied before it is sent. Here all of it lies on the host; the
// emulated GPU's part is in tests/kernels/emulation/train_test.cc.
// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/gpu_snapshot.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "saved_state.h"
#include "train/checkpoint/checkpoint_contents.h"
#include "train/state/state_shards.h"

using namespace vfm;
using namespace vfm::train;

namespace {

using Files = std::map<std::string, std::string>;

CheckpointFiles files_of(const SavedState& state, int ranks) {
  return {sets_of(state.checkpoint(3), 4000), ranks, 64};
}

/// The tensors of the files of this rank, read from the devices.
Files read_at_once(const FileCollection& collection) {
  Files files;
  const auto take = [&](const CheckpointFiles::File& file, std::span<const std::byte> bytes) {
    files[collection.files().name(file)].append(reinterpret_cast<const char*>(bytes.data()),
                                                bytes.size());
  };
  if (collection.run(take, collection.reader())) fail("not collected");
  return files;
}

/// The same, when all that this rank gives was copied, and then lost.
Files read_copies(const FileCollection& collection, SavedState& state) {
  std::map<const CheckpointFiles::File*, std::string> places;
  for (const CheckpointFiles::File& file : collection.files().files())
    places[&file].resize(file.file.bytes());
  GpuSnapshot copies(collection, [&](const CheckpointFiles::File& file, std::size_t offset) {
    return reinterpret_cast<std::byte*>(places[&file].data()) + offset;
  });
  if (!copies.done() || copies.failure()) fail("not copied");
  for (nn::Parameter* parameter : state.list)
    for (const Tensor& tensor : {parameter->value, parameter->high, parameter->low})
      if (tensor.defined()) std::memset(tensor.raw(), 0x3f, tensor.bytes());
  std::map<const CheckpointFiles::File*, std::size_t> came;
  const auto take = [&](const CheckpointFiles::File& file, std::span<const std::byte> bytes) {
    std::size_t& at = came[&file];
    if (bytes.data() != nullptr) std::memcpy(places[&file].data() + at, bytes.data(), bytes.size());
    at += bytes.size();
  };
  if (collection.run(take, copies.reader())) fail("not collected");
  Files files;
  for (const auto& [file, bytes] : came)
    files[collection.files().name(*file)] = places[file].substr(0, bytes);
  return files;
}

}  // namespace

TEST_CASE("files that are put together from copies are those that are read at once") {
  for (const dist::Layout& layout :
       {layout_of(1, 1, 1), layout_of(3, 1, 1), layout_of(2, 1, 2), layout_of(4, 1, 1)}) {
    CAPTURE(to_string(layout));
    on_mesh(layout, [&](const dist::Mesh& mesh) {
      dist::Group& tp = mesh.group(dist::Axes::tp);
      SavedState state(5, tp);
      const int ranks = mesh.world().size();
      const FileCollection collection(files_of(state, ranks), holders_of(mesh, state.list));
      const Files expected = read_at_once(collection);
      if (read_copies(collection, state) != expected) fail("other bytes");
      const double sent = GpuSnapshot::memory(collection);
      if ((sent > 0) != (tp.size() > 1)) fail("{} bytes of parts", sent);
    });
  }
}
