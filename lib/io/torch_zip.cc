// SPDX-License-Identifier: Apache-2.0
#include "io/torch_zip.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "io/pickle.h"
#include "io/weight_index.h"
#include "io/zip.h"

namespace vfm::io {
namespace {

constexpr std::string_view kPickle = "/data.pkl";

[[noreturn]] void not_a_checkpoint(std::span<const std::byte> bytes, std::string_view what) {
  // Before PyTorch 1.6, a checkpoint was a tar, or pickles of which the first is a magic number.
  constexpr std::string_view kLegacy = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9";
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with(kLegacy) || (text.size() > 262 && text.substr(257, 5) == "ustar"))
    fail(
        "{} is in the format of PyTorch before 1.6; read and write it once with a newer one: "
        "torch.save(torch.load(OLD, weights_only=True), NEW)",
        what);
  fail("{} is not a PyTorch checkpoint", what);
}

/// Returns the folder of the archive that has all members, with a slash at the end.
std::string find_root(const ZipMembers& members, std::string_view what) {
  std::string root;
  for (const auto& [name, data] : members) {
    if (!name.ends_with(kPickle) || name.find('/') != name.size() - kPickle.size()) continue;
    if (!root.empty()) fail("{} holds two checkpoints", what);
    root = name.substr(0, name.size() - kPickle.size() + 1);
  }
  if (root.empty()) fail("{} is a zip archive, but not a PyTorch checkpoint", what);
  return root;
}

/// A dim of 1 may have any stride.
bool is_contiguous(const PickledTensor& tensor) {
  std::int64_t expected = 1;
  for (std::size_t i = tensor.shape.size(); i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

/// Throws Error if the tensor reaches beyond its storage, or has elements twice.
std::uint64_t checked_bytes(const PickledTensor& tensor, std::uint64_t item,
                            std::string_view what) {
  std::uint64_t elements = 1, last = static_cast<std::uint64_t>(tensor.offset);
  bool fits = true;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    const auto size = static_cast<std::uint64_t>(tensor.shape[i]);
    std::uint64_t reach = 0;
    fits = fits && !__builtin_mul_overflow(elements, size, &elements);
    if (size > 1)
      fits = fits &&
             !__builtin_mul_overflow(size - 1, static_cast<std::uint64_t>(tensor.strides[i]),
                                     &reach) &&
             !__builtin_add_overflow(last, reach, &last);
  }
  const auto stored = static_cast<std::uint64_t>(tensor.storage_elements);
  if (!fits || (elements > 0 && last >= stored))
    fail("tensor '{}' of {} reaches beyond what is stored of it", tensor.name, what);
  if (elements > stored)
    fail("tensor '{}' of {} is an expanded one; save a copy of it: .contiguous()", tensor.name,
         what);
  return elements * item;
}

void gather(const PickledTensor& tensor, std::size_t item, const std::byte* from, std::byte* to) {
  std::vector<std::int64_t> index(tensor.shape.size(), 0);
  std::int64_t at = tensor.offset;
  for (bool more = true; more; to += item) {
    std::memcpy(to, from + static_cast<std::size_t>(at) * item, item);
    more = false;
    for (std::size_t i = index.size(); i-- > 0 && !more;) {
      if (tensor.shape[i] == 1) continue;  // The stride may be anything.
      at += tensor.strides[i];
      more = ++index[i] < tensor.shape[i];
      if (more) continue;
      at -= tensor.strides[i] * tensor.shape[i];
      index[i] = 0;
    }
  }
}

}  // namespace

TorchContents parse_torch_zip(std::span<const std::byte> bytes, std::string_view what) {
  if (!looks_like_zip(bytes)) not_a_checkpoint(bytes, what);
  const ZipMembers members = parse_zip(bytes, what);
  const std::string root = find_root(members, what);
  if (const auto order = members.find(root + "byteorder"); order != members.end()) {
    const auto* text = reinterpret_cast<const char*>(order->second.data());
    if (std::string_view(text, order->second.size()) != "little")
      fail("{} was written on a big-endian machine, which is not supported", what);
  }
  TorchContents contents;
  std::uint64_t left = bytes.size();  // Limits the copies, because many views may share a storage.
  for (PickledTensor& tensor : parse_pickle(members.at(root + "data.pkl"), what)) {
    const std::size_t item = safetensors_item_size(tensor.dtype);
    const auto member = members.find(root + "data/" + tensor.storage);
    if (member == members.end()) fail("{} has no data for tensor '{}'", what, tensor.name);
    const std::span<const std::byte> stored = member->second;
    if (static_cast<std::uint64_t>(tensor.storage_elements) > stored.size() / item ||
        stored.size() != static_cast<std::uint64_t>(tensor.storage_elements) * item)
      fail("{} has {} bytes for tensor '{}', which says {} elements of {}", what, stored.size(),
           tensor.name, tensor.storage_elements, tensor.dtype);
    const std::uint64_t size = checked_bytes(tensor, item, what);
    TensorView view{tensor.name, tensor.dtype, tensor.shape, {}};
    if (size == 0 || is_contiguous(tensor)) {
      view.data = size == 0 ? stored.first(0)
                            : stored.subspan(static_cast<std::size_t>(tensor.offset) * item, size);
    } else {
      if (size > left) fail("{} shows the same numbers as many tensors", what);
      left -= size;
      contents.gathered.push_back(std::make_unique_for_overwrite<std::byte[]>(size));
      gather(tensor, item, stored.data(), contents.gathered.back().get());
      view.data = {contents.gathered.back().get(), size};
    }
    contents.tensors.push_back(std::move(view));
  }
  return contents;
}

TorchZip::TorchZip(const std::string& file) : TensorSet(file) {
  const WeightIndex index = read_weight_index(file);
  for (const std::string& name : index.files) {
    const MappedFile& map = maps_.emplace_back(join_path(dir_name(file), name));
    TorchContents contents = parse_torch_zip(map.bytes(), fmt::format("'{}'", map.path()));
    for (std::unique_ptr<std::byte[]>& bytes : contents.gathered)
      gathered_.push_back(std::move(bytes));
    for (TensorView& tensor : contents.tensors)
      add(std::move(tensor));
  }
  check_weight_index(index, *this);
}

// Of a gathered tensor, which is in no map, this does nothing.
void TorchZip::release(const TensorView& tensor) const {
  for (const MappedFile& map : maps_)
    map.release(tensor.data);
}

}  // namespace vfm::io
