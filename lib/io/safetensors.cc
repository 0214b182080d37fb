// SPDX-License-Identifier: Apache-2.0
#include "io/safetensors.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "io/file_cache.h"
#include "io/remote/address.h"
#include "io/weight_index.h"

namespace vfm::io {
namespace {

constexpr std::uint64_t kMaxHeader = 100'000'000;
constexpr std::size_t kAlignment = 64;  // The format asks for 8. A cache line has 64.
constexpr const char* kSuffix = ".safetensors";
constexpr const char* kIndexSuffix = ".safetensors.index.json";

/// Checks a header before it is parsed, because parse_json() accepts a name twice in one object.
/// Not a callback of the parser, because with one the parser visits all members of an object again
/// whenever an object in it ends.
class HeaderWatch : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderWatch(std::string_view what) : what_(what) {}
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (!open_.back().insert(name).second) fail("the header of {} names '{}' twice", what_, name);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    return false;
  }

 private:
  bool open() {
    if (open_.size() > 8) fail("the header of {} is nested too deep", what_);
    open_.emplace_back();
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view what_;
  std::vector<std::set<std::string>> open_;
};

Json parse_header(std::string_view text, std::string_view what) {
  HeaderWatch watch(what);
  if (Json::sax_parse(text, &watch)) return sorted(parse_json(text, what));
  fail("the header of {} is not JSON", what);
}

std::uint64_t need_size(const Json& value, std::string_view name, std::string_view what) {
  if (!value.is_number_unsigned())
    fail("tensor '{}' of {} has a size or offset that is not a whole number", name, what);
  return value.get<std::uint64_t>();
}

/// An entry of the header. The tensor's data are not set yet. `begin` and `end` are their offsets.
struct HeaderEntry {
  TensorView tensor;
  std::uint64_t begin = 0, end = 0;
};

HeaderEntry parse_entry(const std::string& name, const Json& value, std::string_view what) {
  const auto member = [&](const char* key) -> const Json& {
    if (!value.is_object() || !value.contains(key))
      fail("tensor '{}' of {} has no '{}'", name, what, key);
    return value[key];
  };
  HeaderEntry entry;
  entry.tensor.name = name;
  if (!member("dtype").is_string()) fail("tensor '{}' of {} has no dtype", name, what);
  entry.tensor.dtype = value["dtype"].get<std::string>();
  std::uint64_t bytes = safetensors_item_size(entry.tensor.dtype);
  if (bytes == 0)
    fail("tensor '{}' of {} has dtype '{}', which is not supported", name, what,
         entry.tensor.dtype);
  const Json& shape = member("shape");
  if (!shape.is_array() || shape.size() > kMaxDims)
    fail("tensor '{}' of {} has no proper shape", name, what);
  for (const Json& dim : shape) {
    const std::uint64_t size = need_size(dim, name, what);
    if (size > std::uint64_t{1} << 62 || __builtin_mul_overflow(bytes, size, &bytes))
      fail("tensor '{}' of {} has a shape too large for any file", name, what);
    entry.tensor.shape.push_back(static_cast<std::int64_t>(size));
  }
  const Json& offsets = member("data_offsets");
  if (!offsets.is_array() || offsets.size() != 2)
    fail("tensor '{}' of {} has no proper data_offsets", name, what);
  entry.begin = need_size(offsets[0], name, what);
  entry.end = need_size(offsets[1], name, what);
  if (entry.end < entry.begin || entry.end - entry.begin != bytes)
    fail("tensor '{}' of {} has {} bytes by its shape, but offsets {} to {}", name, what, bytes,
         entry.begin, entry.end);
  return entry;
}

}  // namespace

SafetensorsContents parse_safetensors(std::span<const std::byte> bytes, std::string_view what) {
  if (bytes.size() < 8) fail("{} is not a safetensors file: it is shorter than 8 bytes", what);
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < 8; ++i)
    length |= std::to_integer<std::uint64_t>(bytes[i]) << 8 * i;
  if (length > kMaxHeader)
    fail("{} is not a safetensors file: its header would be {} bytes long", what, length);
  if (length > bytes.size() - 8) fail("{} is truncated in its header", what);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 8, length);
  if (!text.starts_with('{')) fail("{} is not a safetensors file: no JSON header", what);
  const std::span<const std::byte> data = bytes.subspan(8 + length);

  SafetensorsContents contents;
  std::vector<HeaderEntry> entries;
  const Json header = parse_header(text, what);
  for (const auto& [name, value] : header.items()) {
    if (name != "__metadata__") {
      entries.push_back(parse_entry(name, value, what));
      continue;
    }
    if (!value.is_object()) fail("the metadata of {} is not an object", what);
    for (const auto& [key, text_value] : value.items()) {
      if (!text_value.is_string()) fail("metadata '{}' of {} is not a string", key, what);
      contents.metadata[key] = text_value.get<std::string>();
    }
  }
  // Empty tensors may share an offset. Tensors with equal offsets keep the order of the header.
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t at = 0;
  for (HeaderEntry& entry : entries) {
    if (entry.begin != at)
      fail("tensor '{}' of {} begins at {}, but the data before it end at {}", entry.tensor.name,
           what, entry.begin, at);
    if (entry.end > data.size())
      fail("{} is truncated: tensor '{}' ends at byte {} of {}", what, entry.tensor.name, entry.end,
           data.size());
    at = entry.end;
    entry.tensor.data = data.subspan(entry.begin, entry.end - entry.begin);
    contents.tensors.push_back(std::move(entry.tensor));
  }
  if (at != data.size()) fail("{} has {} bytes after its last tensor", what, data.size() - at);
  return contents;
}

bool SafetensorsSet::exists(const std::string& folder, const std::string& name) {
  return file_exists(join_path(folder, name + kSuffix)) ||
         file_exists(join_path(folder, name + kIndexSuffix));
}

std::string SafetensorsSet::file_of(const std::string& folder, const std::string& name) {
  const std::string whole = join_path(folder, name + kSuffix);
  const std::string index = join_path(folder, name + kIndexSuffix);
  return file_exists(whole) || !file_exists(index) ? whole : index;
}

SafetensorsSet::SafetensorsSet(const std::string& folder, const std::string& name)
    : SafetensorsSet(file_of(folder, name)) {}

SafetensorsSet::SafetensorsSet(const std::string& file) : TensorSet(file) {
  const WeightIndex index = read_weight_index(file);
  for (const std::string& name : index.files) {
    const std::string path = join_path(dir_name(file), name);
    std::span<const std::byte> bytes;
    if (is_remote(path) && !has_cache())
      bytes = lazy_maps_.emplace_back(map_safetensors(path))->bytes();
    else
      bytes = maps_.emplace_back(path).bytes();
    SafetensorsContents contents = parse_safetensors(bytes, fmt::format("'{}'", path));
    for (TensorView& tensor : contents.tensors)
      add(std::move(tensor));
    metadata_.merge(contents.metadata);
  }
  check_weight_index(index, *this);
}

void SafetensorsSet::release(const TensorView& tensor) const {
  for (const MappedFile& map : maps_)
    map.release(tensor.data);
  for (const std::unique_ptr<LazyMap>& map : lazy_maps_)
    map->release(tensor.data);
}

std::uint64_t SafetensorsFile::bytes() const {
  std::uint64_t sum = 0;
  for (const TensorView& tensor : tensors)
    sum += tensor.bytes();
  return sum;
}

SafetensorsPlan plan_safetensors(const std::string& name, std::vector<TensorView> tensors,
                                 std::uint64_t max_file_bytes) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorView& a, const TensorView& b) {
    const std::size_t item_a = safetensors_item_size(a.dtype);
    const std::size_t item_b = safetensors_item_size(b.dtype);
    return item_a != item_b ? item_a > item_b : a.name < b.name;
  });
  SafetensorsPlan plan;
  std::uint64_t total = 0, bytes = 0;
  for (TensorView& tensor : tensors) {
    const std::uint64_t more = tensor.bytes();
    if (plan.files.empty() || bytes + more > max_file_bytes) {
      plan.files.emplace_back();
      bytes = 0;
    }
    plan.files.back().tensors.push_back(std::move(tensor));
    bytes += more;
    total += more;
  }
  if (plan.files.size() <= 1) {
    plan.files.resize(1);
    plan.files[0].name = name + kSuffix;
    return plan;
  }
  std::map<std::string, std::string> weight_map;
  for (std::size_t i = 0; i < plan.files.size(); ++i) {
    SafetensorsFile& file = plan.files[i];
    file.name = fmt::format("{}-{:05}-of-{:05}{}", name, i + 1, plan.files.size(), kSuffix);
    for (const TensorView& tensor : file.tensors)
      weight_map[tensor.name] = file.name;
  }
  plan.index_name = name + kIndexSuffix;
  plan.index =
      dump_json_pretty({{"metadata", {{"total_size", total}}}, {"weight_map", weight_map}});
  return plan;
}

std::string safetensors_header(const SafetensorsFile& file,
                               const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  header["__metadata__"] = metadata;
  header["__metadata__"]["format"] = "pt";
  std::uint64_t offset = 0;
  for (const TensorView& tensor : file.tensors) {
    header[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + tensor.bytes()}}};
    offset += tensor.bytes();
  }
  std::string text = header.dump();
  if (text.size() > kMaxHeader - kAlignment) fail("too many tensors for one safetensors file");
  text.append((kAlignment - (8 + text.size()) % kAlignment) % kAlignment, ' ');
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i)
    bytes[i] = static_cast<char>(std::uint64_t{text.size()} >> 8 * i);
  return bytes + text;
}

SafetensorsWriter::SafetensorsWriter(const std::string& folder, const SafetensorsFile& file,
                                     const std::map<std::string, std::string>& metadata)
    : out_(join_path(folder, file.name)), left_(0) {
  const std::string header = safetensors_header(file, metadata);
  left_ = header.size();
  write(std::as_bytes(std::span(header)));
  left_ = file.bytes();
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  if (bytes.size() > left_)
    fail("'{}' gets {} bytes more than its tensors have", out_.path(), bytes.size() - left_);
  hasher_.update(bytes.data(), bytes.size());
  out_.write(bytes.data(), bytes.size());
  left_ -= bytes.size();
}

std::string SafetensorsWriter::finish() {
  if (left_ > 0) fail("'{}' lacks {} bytes of its tensors", out_.path(), left_);
  out_.commit();
  return hasher_.hex128();
}

std::string write_safetensors_file(const std::string& folder, const SafetensorsFile& file,
                                   const FetchPiece& fetch,
                                   const std::map<std::string, std::string>& metadata) {
  SafetensorsWriter out(folder, file, metadata);
  for (const TensorView& tensor : file.tensors) {
    const std::uint64_t bytes = tensor.bytes();
    if (safetensors_item_size(tensor.dtype) == 0 || (!fetch && tensor.data.size() != bytes))
      fail("tensor '{}' has {} bytes, which do not fit dtype {} and its shape", tensor.name,
           tensor.data.size(), tensor.dtype);
    for (std::uint64_t begin = 0; begin < bytes; begin += kMostOfPiece) {
      const std::uint64_t end = std::min(begin + kMostOfPiece, bytes);
      const std::span<const std::byte> data =
          fetch ? fetch(tensor, begin, end) : tensor.data.subspan(begin, end - begin);
      if (!fetch) need_bytes(data);
      if (data.size() != end - begin)
        fail("of tensor '{}' there are {} bytes in place of {}", tensor.name, data.size(),
             end - begin);
      out.write(data);
    }
  }
  return out.finish();
}

std::vector<std::string> write_safetensors(const std::string& folder, const std::string& name,
                                           std::vector<TensorView> tensors,
                                           std::uint64_t max_file_bytes, const FetchPiece& fetch,
                                           const std::map<std::string, std::string>& metadata) {
  const SafetensorsPlan plan = plan_safetensors(name, std::move(tensors), max_file_bytes);
  std::vector<std::string> files;
  for (const SafetensorsFile& file : plan.files) {
    write_safetensors_file(folder, file, fetch, metadata);
    files.push_back(file.name);
  }
  if (plan.index_name.empty()) return files;
  write_file(join_path(folder, plan.index_name), plan.index);
  files.push_back(plan.index_name);
  return files;
}

}  // namespace vfm::io
