// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/gpu_snapshot.h"

#include <utility>
#include <vector>

#include "train/checkpoint/snapshot_memory.h"

namespace vfm::train {
namespace {

/// Puts what lies at `bytes`, in the form of `parts`, in its place.
void put(const std::byte* bytes, const std::vector<Tensor>& parts, std::byte* to) {
  std::vector<Tensor> here;
  for (const Tensor& part : parts) {
    here.push_back(Tensor::borrow(bytes, part.shape(), part.dtype(), nullptr));
    bytes += part.bytes();
  }
  const Tensor values = join(here);
  copy_by_threads(to, {values.data<std::byte>(), values.bytes()});
}

}  // namespace

GpuSnapshot::GpuSnapshot(const FileCollection& collection, const Place& place) {
  struct Copy {
    std::vector<Tensor> parts;
    std::byte* to;
  };
  std::vector<Copy> copies;
  for (const FileCollection::Own& own : collection.own()) {
    std::byte* to = nullptr;
    if (own.file != nullptr) {
      to = place(*own.file, own.offset);
    } else {
      const Key key{own.piece.set, own.piece.parameter, own.begin, own.end};
      to = parts_.emplace(key, Tensor({own.end - own.begin}, own.piece.dtype))
               .first->second.data<std::byte>();
    }
    std::vector<Tensor> parts = collection.files().view(own.piece, own.begin, own.end);
    if (parts[0].device() != Device::cuda) {
      const Tensor values = join(parts);
      copy_by_threads(to, {values.data<std::byte>(), values.bytes()});
    } else {
      copies.push_back({std::move(parts), to});
    }
  }
  if (copies.empty()) return;
  std::vector<Download::Piece> pieces;
  for (const Copy& copy : copies) {
    Download::Piece& piece = pieces.emplace_back();
    for (const Tensor& part : copy.parts)
      piece.push_back({part.raw(), part.bytes()});
  }
  download_.start(std::move(pieces),
                  [copies = std::move(copies)](std::size_t i, const std::byte* bytes) {
                    put(bytes, copies[i].parts, copies[i].to);
                  });
}

double GpuSnapshot::memory(const FileCollection& collection) {
  double bytes = 0;
  for (const FileCollection::Own& own : collection.own())
    if (own.file == nullptr) bytes += static_cast<double>(own.bytes());
  return bytes;
}

void GpuSnapshot::release() {
  try {
    download_.release();
  } catch (...) {  // then nothing is copied any more
    failure_ = std::current_exception();
  }
}

bool GpuSnapshot::done() {
  if (!download_.done()) return false;
  try {
    download_.finish();
  } catch (...) {
    failure_ = std::current_exception();
  }
  return true;
}

FileCollection::Read GpuSnapshot::reader() {
  return [this](const Piece& piece, std::int64_t begin, std::int64_t end) {
    const auto found = parts_.find({piece.set, piece.parameter, begin, end});
    return found == parts_.end() ? Tensor() : std::exchange(found->second, {});
  };
}

}  // namespace vfm::train
