// SPDX-License-Identifier: Apache-2.0
#include "train/report/tensorboard.h"

#include <fcntl.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <ctime>

#include "base/error.h"
#include "base/full_disk.h"

namespace vfm::train {
namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit)
      crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    table[i] = crc;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kTable = make_table();

/// TFRecord stores checksums rotated and shifted, so that a record of records does not check by
/// luck.
std::uint32_t masked_crc(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return std::rotr(crc, 15) + 0xa282ead8u;
}

void put_little(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    out += static_cast<char>(value >> 8 * i);
}

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

// Protocol buffers: a field begins with number << 3 | wire type; 0 is a varint, 1 eight bytes, 2 a
// length and bytes, 5 four bytes.
void put_int(std::string& out, int field, std::uint64_t value) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3);
  put_varint(out, value);
}
void put_double(std::string& out, int field, double value) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3 | 1);
  put_little(out, std::bit_cast<std::uint64_t>(value), 8);
}
void put_float(std::string& out, int field, float value) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3 | 5);
  put_little(out, std::bit_cast<std::uint32_t>(value), 4);
}
void put_bytes(std::string& out, int field, std::string_view bytes) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3 | 2);
  put_varint(out, bytes.size());
  out += bytes;
}

// Field numbers of Event, SessionLog, Summary and Summary.Value.
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
constexpr int kStatus = 1, kStart = 1, kValue = 1, kTag = 1, kSimpleValue = 2;
// Of Value, TensorProto, and SummaryMetadata with its PluginData: a text is a tensor of one string.
constexpr int kTensor = 8, kMetadata = 9, kDType = 1, kString = 7, kStringValue = 8, kPlugin = 1,
              kPluginName = 1;

std::string event(std::int64_t step, int field, std::string_view content) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::string bytes;
  put_double(bytes, kWallTime, std::chrono::duration<double>(now).count());
  if (step > 0) put_int(bytes, kStep, static_cast<std::uint64_t>(step));
  put_bytes(bytes, field, content);
  return make_tfrecord(bytes);
}

std::pair<io::GrowingFile, io::File> create_file(const std::string& directory,
                                                 const std::string& host) {
  for (int n = 0;; ++n) {
    io::GrowingFile place(io::join_path(
        directory, fmt::format("events.out.tfevents.{}.{}.{}", std::time(nullptr), host, n)));
    const std::string& path = place.local();
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (fd >= 0) return {std::move(place), io::File(fd, path)};
    if (errno != EEXIST) fail_output(errno, "cannot create '{}'", path);
  }
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (const char c : bytes)
    crc = kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff] ^ crc >> 8;
  return ~crc;
}

std::string make_tfrecord(std::string_view data) {
  std::string record;
  put_little(record, data.size(), 8);
  put_little(record, masked_crc(record), 4);
  record += data;
  put_little(record, masked_crc(data), 4);
  return record;
}

EventWriter::EventWriter(const std::string& directory, const std::string& host,
                         std::int64_t first_step)
    : EventWriter(create_file(directory, host), first_step) {}

EventWriter::EventWriter(std::pair<io::GrowingFile, io::File> created, std::int64_t first_step)
    : place_(std::move(created.first)), file_(std::move(created.second)) {
  std::string bytes = event(0, kFileVersion, "brain.Event:2");
  if (first_step > 0) {
    std::string session;
    put_int(session, kStatus, kStart);
    bytes += event(first_step, kSessionLog, session);
  }
  write(bytes);
}

void EventWriter::scalars(std::int64_t step,
                          const std::vector<std::pair<std::string, double>>& values) {
  std::string summary;
  for (const auto& [tag, number] : values) {
    std::string value;
    put_bytes(value, kTag, tag);
    put_float(value, kSimpleValue, static_cast<float>(number));
    put_bytes(summary, kValue, value);
  }
  write(event(step, kSummary, summary));
}

void EventWriter::text(std::int64_t step, const std::string& tag, const std::string& words) {
  std::string plugin, metadata, tensor, value, summary;
  put_bytes(plugin, kPluginName, "text");
  put_bytes(metadata, kPlugin, plugin);
  put_int(tensor, kDType, kString);
  put_bytes(tensor, kStringValue, words);
  put_bytes(value, kTag, tag);
  put_bytes(value, kTensor, tensor);
  put_bytes(value, kMetadata, metadata);
  put_bytes(summary, kValue, value);
  write(event(step, kSummary, summary));
}

void EventWriter::write(const std::string& bytes) {
  file_.add(bytes);
}

}  // namespace vfm::train
