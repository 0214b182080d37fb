// SPDX-License-Identifier: Apache-2.0
#include "io/gguf.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/block_format.h"
#include "base/error.h"

namespace vfm::io {
namespace {

constexpr std::uint64_t kMostItems = 65536;
constexpr std::uint64_t kMostNameBytes = 4096;
constexpr std::uint32_t kMostGgufDims = 5;  // ggml's own have 4, those of Wan's patches 5
constexpr std::string_view kOriginalShape = "comfy.gguf.orig_shape.";
constexpr std::uint32_t kTextType = GgufList::kText, kListType = 9;

/// Texts and lists have 0.
constexpr std::array<std::uint64_t, 13> kValueBytes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

struct StoredType {
  std::uint32_t number;
  std::string_view name;
  std::int64_t elements, bytes;
};

constexpr StoredType stored_blocks(std::uint32_t number, BlockFormat format) {
  const BlockLayout layout = block_layout(format);
  return {number, layout.name, layout.elements, layout.bytes};
}

constexpr std::array kStoredTypes{
    StoredType{0, "F32", 1, 4},           StoredType{1, "F16", 1, 2},
    StoredType{30, "BF16", 1, 2},         stored_blocks(8, BlockFormat::q8_0),
    stored_blocks(12, BlockFormat::q4_k), stored_blocks(13, BlockFormat::q5_k),
    stored_blocks(14, BlockFormat::q6_k)};

std::string other_type(std::uint32_t number) {
  constexpr std::array<std::string_view, 31> names{
      "F32",     "F16",    "Q4_0",    "Q4_1",  "",       "",      "Q5_0",  "Q5_1",
      "Q8_0",    "Q8_1",   "Q2_K",    "Q3_K",  "Q4_K",   "Q5_K",  "Q6_K",  "Q8_K",
      "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS",
      "I8",      "I16",    "I32",     "I64",   "F64",    "IQ1_M", "BF16"};
  return number < names.size() && !names[number].empty() ? std::string(names[number])
                                                         : vfm::format("type {}", number);
}

const StoredType& need_type(std::uint32_t number, std::string_view name, std::string_view what) {
  const auto* const found = std::ranges::find(kStoredTypes, number, &StoredType::number);
  if (found == kStoredTypes.end())
    fail(
        "tensor '{}' of {} is {}, which is not supported: F32, F16, BF16, Q8_0, Q4_K, Q5_K and "
        "Q6_K "
        "are",
        name, what, other_type(number));
  return *found;
}

class GgufHeader {
 public:
  GgufHeader(std::span<const std::byte> bytes, std::string_view what)
      : bytes_(bytes), what_(what) {}

  std::uint64_t at() const { return at_; }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  std::string_view text() {
    const auto length = number<std::uint64_t>();
    return {reinterpret_cast<const char*>(take(length)), static_cast<std::size_t>(length)};
  }
  std::string name() {
    const std::string_view name = text();
    if (name.empty() || name.size() > kMostNameBytes)
      fail("{} has a name of {} bytes: it is damaged", what_, name.size());
    return std::string(name);
  }
  std::uint64_t items(const char* of) {
    const auto count = number<std::uint64_t>();
    if (count > kMostItems) fail("{} has {} {}, over {}", what_, count, of, kMostItems);
    return count;
  }
  void value(const std::string& name, GgufContents& into) {
    const auto type = number<std::uint32_t>();
    if (type == kListType) return list(name, into);
    if (type == kTextType) {
      const std::string_view said = text();
      if (said.size() <= kMostNameBytes) into.texts.emplace(name, said);
      return;
    }
    const std::byte* const from = take(size_of(type, name));
    std::int64_t whole = 0;
    const auto read = [&]<class T>(T value) {
      std::memcpy(&value, from, sizeof value);
      whole = static_cast<std::int64_t>(value);
    };
    switch (type) {
      case 0:
      case 7:
        read(std::uint8_t{});
        break;
      case 1:
        read(std::int8_t{});
        break;
      case 2:
        read(std::uint16_t{});
        break;
      case 3:
        read(std::int16_t{});
        break;
      case 4:
        read(std::uint32_t{});
        break;
      case 5:
        read(std::int32_t{});
        break;
      case 10:
      case 11:
        read(std::int64_t{});
        break;
      default:
        return;  // Floats are ignored.
    }
    into.counts.emplace(name, whole);
  }

 private:
  const std::byte* take(std::uint64_t count) {
    if (count > bytes_.size() - at_) fail("{} ends within its header: it is cut off", what_);
    const std::byte* const from = bytes_.data() + at_;
    at_ += count;
    return from;
  }
  std::uint64_t size_of(std::uint32_t type, const std::string& name) const {
    if (type >= kValueBytes.size() || kValueBytes[type] == 0)
      fail("setting '{}' of {} has values of the type {}, which is unknown", name, what_, type);
    return kValueBytes[type];
  }
  void list(const std::string& name, GgufContents& into) {
    const auto type = number<std::uint32_t>();
    const auto count = number<std::uint64_t>();
    const std::uint64_t begin = at_;
    if (type == kTextType) {
      for (std::uint64_t i = 0; i < count; ++i)
        text();
    } else {
      const std::uint64_t each = size_of(type, name);
      if (count > bytes_.size() / each) fail("list '{}' of {} is cut off", name, what_);
      take(count * each);
    }
    into.lists.emplace(name, GgufList{type, count, bytes_.subspan(begin, at_ - begin)});
  }

  std::span<const std::byte> bytes_;
  std::string_view what_;
  std::uint64_t at_ = 0;
};

struct GgufEntry {
  TensorView tensor;
  std::uint64_t begin = 0, bytes = 0;  // From the begin of the data.
};

GgufEntry read_entry(GgufHeader& header, std::string_view what) {
  GgufEntry entry;
  TensorView& tensor = entry.tensor;
  tensor.name = header.name();
  const auto dims = header.number<std::uint32_t>();
  if (dims < 1 || dims > kMostGgufDims)
    fail("tensor '{}' of {} has {} dimensions", tensor.name, what, dims);
  std::uint64_t elements = 1;
  for (std::uint32_t i = 0; i < dims; ++i) {
    const auto size = header.number<std::uint64_t>();
    if (size < 1 || size > std::uint64_t{1} << 40 ||
        __builtin_mul_overflow(elements, size, &elements))
      fail("tensor '{}' of {} has a shape that is none", tensor.name, what);
    tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(size));
  }
  const StoredType& type = need_type(header.number<std::uint32_t>(), tensor.name, what);
  if (tensor.shape.back() % type.elements != 0)
    fail("tensor '{}' of {} has {} columns, which is not a multiple of {}", tensor.name, what,
         tensor.shape.back(), type.elements);
  tensor.dtype = type.name;
  entry.bytes = elements / static_cast<std::uint64_t>(type.elements);
  if (__builtin_mul_overflow(entry.bytes, static_cast<std::uint64_t>(type.bytes), &entry.bytes))
    fail("tensor '{}' of {} has a shape too large for any file", tensor.name, what);
  entry.begin = header.number<std::uint64_t>();
  return entry;
}

/// Gives tensors the shapes that the settings say.
void take_shapes(const GgufContents& contents, std::vector<GgufEntry>& entries,
                 std::string_view what) {
  for (GgufEntry& entry : entries) {
    TensorView& tensor = entry.tensor;
    const auto found = contents.lists.find(std::string(kOriginalShape) + tensor.name);
    if (found == contents.lists.end()) continue;
    std::vector<std::int64_t> shape;
    std::int64_t elements = 1;
    for (const std::int32_t size : found->second.integers(what)) {
      shape.push_back(size);
      if (size < 1 || shape.size() > kMostGgufDims ||
          __builtin_mul_overflow(elements, size, &elements))
        elements = 0;
    }
    if (elements != tensor.elements())
      fail("tensor '{}' of {} has not the numbers of the shape that is set for it", tensor.name,
           what);
    tensor.shape = std::move(shape);
  }
}

/// The values of a list of this type.
template <class T>
std::vector<T> values_of(const GgufList& list, std::uint32_t type, std::string_view what) {
  if (list.type != type)
    fail("a list of {} has values of the type {}, {} is needed", what, list.type, type);
  std::vector<T> values(list.count);
  if (!values.empty()) std::memcpy(values.data(), list.data.data(), values.size() * sizeof(T));
  return values;
}

void need_apart(const std::vector<GgufEntry>& entries, std::string_view what) {
  std::vector<const GgufEntry*> sorted;
  for (const GgufEntry& entry : entries)
    sorted.push_back(&entry);
  std::ranges::sort(sorted, {}, &GgufEntry::begin);
  for (std::size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i]->begin < sorted[i - 1]->begin + sorted[i - 1]->bytes)
      fail("tensors '{}' and '{}' of {} lie over each other", sorted[i - 1]->tensor.name,
           sorted[i]->tensor.name, what);
}

std::uint64_t alignment_of(const GgufContents& contents, std::string_view what) {
  const auto found = contents.counts.find("general.alignment");
  if (found == contents.counts.end()) return 32;
  const std::int64_t alignment = found->second;
  if (alignment < 8 || alignment > 65536 || alignment % 8 != 0)
    fail("{} has the alignment {}", what, alignment);
  return static_cast<std::uint64_t>(alignment);
}

}  // namespace

std::vector<std::int32_t> GgufList::integers(std::string_view what) const {
  return values_of<std::int32_t>(*this, kI32, what);
}

std::vector<float> GgufList::floats(std::string_view what) const {
  return values_of<float>(*this, kF32, what);
}

std::vector<std::string_view> GgufList::texts(std::string_view what) const {
  if (type != kText) fail("a list of {} has values of the type {}, not texts", what, type);
  GgufHeader from(data, what);
  std::vector<std::string_view> all;
  for (std::uint64_t i = 0; i < count; ++i)
    all.push_back(from.text());
  return all;
}

GgufContents parse_gguf(std::span<const std::byte> bytes, std::string_view what) {
  if (bytes.size() < 24 || std::memcmp(bytes.data(), "GGUF", 4) != 0)
    fail("{} is no GGUF file", what);
  GgufHeader header(bytes.subspan(4), what);
  const auto version = header.number<std::uint32_t>();
  if (version != 2 && version != 3)
    fail("{} has version {} of GGUF: 2 and 3, little endian, are supported", what, version);
  const std::uint64_t tensors = header.items("tensors"), settings = header.items("settings");
  GgufContents contents;
  for (std::uint64_t i = 0; i < settings; ++i) {
    const std::string name = header.name();
    if (contents.texts.contains(name) || contents.counts.contains(name) ||
        contents.lists.contains(name))
      fail("{} has setting '{}' twice", what, name);
    header.value(name, contents);
  }
  std::vector<GgufEntry> entries;
  for (std::uint64_t i = 0; i < tensors; ++i)
    entries.push_back(read_entry(header, what));

  const std::uint64_t alignment = alignment_of(contents, what);
  const std::uint64_t begin = (header.at() + 4 + alignment - 1) / alignment * alignment;
  const std::uint64_t size = begin < bytes.size() ? bytes.size() - begin : 0;
  for (GgufEntry& entry : entries) {
    if (entry.begin % alignment != 0)
      fail("tensor '{}' of {} does not begin at a multiple of {}", entry.tensor.name, what,
           alignment);
    if (entry.begin > size || entry.bytes > size - entry.begin)
      fail("tensor '{}' of {} lies beyond its end: it is cut off", entry.tensor.name, what);
    entry.tensor.data = bytes.subspan(begin + entry.begin, entry.bytes);
  }
  need_apart(entries, what);
  take_shapes(contents, entries, what);
  for (GgufEntry& entry : entries)
    contents.tensors.push_back(std::move(entry.tensor));
  return contents;
}

GgufFile::GgufFile(const std::string& file) : TensorSet(file), map_(file) {
  GgufContents contents = parse_gguf(map_.bytes(), vfm::format("'{}'", file));
  texts_ = std::move(contents.texts);
  counts_ = std::move(contents.counts);
  lists_ = std::move(contents.lists);
  for (TensorView& tensor : contents.tensors)
    add(std::move(tensor));
}

}  // namespace vfm::io
