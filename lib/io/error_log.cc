// SPDX-License-Identifier: Apache-2.0
#include "io/error_log.h"

#include <sys/stat.h>

#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/shown_name.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/growing_file.h"
#include "io/packed.h"
#include "io/remote/address.h"
#include "io/remote/bucket_store.h"
#include "io/remote/remote_file.h"
#include "io/remote/upload.h"
#include "io/text_writer.h"

namespace vfm::io {
namespace {

constexpr std::size_t kPlaceBytes = 16;  // Place and number in a record of `in_order`.
constexpr std::size_t kSorterMemory = 2 * Sorter::kMemory;  // Lines may be long.

/// Cuts long texts, such as a message that quotes a member of a sample. JSON takes at most six
/// bytes for a byte, so a record with two such texts fits into a Sorter.
std::string shortened(const std::string& text) {
  constexpr std::size_t kLongest = std::size_t{256} << 10;
  static_assert(2 * 6 * kLongest < kSorterMemory / 4 - (std::size_t{64} << 10));
  return text.size() > kLongest ? text.substr(0, kLongest) + "..." : text;
}

std::string state_of_object(std::uint64_t bytes, const std::string& version) {
  return fmt::format("{} {}", bytes, version);
}

/// Returns a text that changes if the file at `path` is written again or replaced, whatever its
/// contents are. Returns "" if there is no file.
std::string state_of(const std::string& path) {
  if (is_remote(path)) {
    const std::shared_ptr<RemoteFile> object = RemoteFile::open_if_there(path);
    return object ? state_of_object(object->size(), object->version()) : "";
  }
  struct stat s {};
  if (::stat(path.c_str(), &s) != 0) return "";
  return fmt::format("{} {} {} {}", s.st_dev, s.st_ino, s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
}

}  // namespace

Fault::Fault(std::string what, std::string why, Cause sort)
    : input(std::move(what)), message(std::move(why)), cause(sort) {
  input = shown_name(input);
}

Fault::Fault(std::string what, const Error& error, Cause otherwise)
    : input(std::move(what)),
      message(error.what()),
      cause(error.cause() == Cause::other ? otherwise : error.cause()) {
  input = shown_name(input);
}

std::size_t held_bytes(const Fault& fault) {
  return fault.input.size() + fault.message.size();
}

Json to_json(const std::vector<Fault>& faults) {
  Json list = Json::array();
  for (const Fault& fault : faults)
    list.push_back({{"input", fault.input},
                    {"error", fault.message},
                    {"code", std::string(to_string(fault.cause))}});
  return list;
}

std::vector<Fault> parse_faults(const Json& list) {
  if (!list.is_array()) fail("'errors' is no list");
  std::vector<Fault> faults;
  for (const Json& fault : list)
    faults.emplace_back(need_string(fault, "input", "an error"),
                        need_string(fault, "error", "an error"),
                        parse_cause(get_string(fault, "code").value_or("")));
  return faults;
}

ErrorLog::ErrorLog(std::string path, std::string tool)
    : path_(std::move(path)),
      tool_(std::move(tool)),
      before_(state_of(path_)),
      lines_(dir_name(path_), kSorterMemory) {}
ErrorLog::~ErrorLog() = default;

void ErrorLog::add(const Fault& fault, std::uint64_t place) {
  const std::string input = shortened(fault.input), message = shortened(fault.message);
  const Json record = {{"tool", tool_},
                       {"input", input},
                       {"error", message},
                       {"code", std::string(to_string(fault.cause))}};
  {
    const std::lock_guard lock(mutex_);
    std::string line;
    put_ordered_text(line, dump_json(record) + "\n");
    put_ordered(line, place, 8);
    put_ordered(line, count_++, 8);
    lines_.add(line);
  }
  if (message.find(input) != std::string::npos)
    log_warning("{}", message);
  else
    log_warning("{}: {}", input, message);
}

std::size_t ErrorLog::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

/// Writes what others wrote, and then the records that are not among it, in order.
void ErrorLog::put_merged(const std::string& others,
                          const std::function<void(std::string_view)>& put) {
  const std::vector<std::string_view> lines = lines_of(others);
  const std::unordered_set<std::string_view> there(lines.begin(), lines.end());
  // Records of (place, number, line). Of equal lines, only the first is kept.
  Sorter in_order(dir_name(path_), kSorterMemory);
  {
    Sorter::Stream stream = lines_.sorted();
    std::string last, record;
    for (std::string_view rest; stream.next(rest);) {
      std::string line = take_ordered_text(rest);
      if (line == last || there.contains(line.substr(0, line.size() - 1))) continue;
      record = take_bytes(rest, kPlaceBytes);
      record += line;
      in_order.add(record);
      last = std::move(line);
    }
  }
  // The file is written even if no line is new, so that other programs see a change of its state.
  put(others);
  Sorter::Stream stream = in_order.sorted();
  for (std::string_view record; stream.next(record);)
    put(record.substr(kPlaceBytes));
}

void ErrorLog::finish() {
  const std::lock_guard lock(mutex_);
  if (is_bucket(path_)) return finish_object();
  if (count_ == 0 && state_of(path_).empty()) return;
  TextWriter file(path_);  // Waits for other programs that write the file.
  const std::string now = state_of(path_);
  const std::string others = now.empty() || now == before_ ? "" : read_file(path_);
  if (count_ == 0) {
    if (others.empty()) remove_file(path_);
    return;
  }
  put_merged(others, [&](std::string_view text) { file.add(text); });
  file.commit();
}

/// Nobody waits for an object. It is replaced only if no other program did so after it was read.
void ErrorLog::finish_object() {
  if (count_ == 0) {
    const std::string now = state_of(path_);
    if (!now.empty() && now == before_) remove_file(path_);
    return;
  }
  const BucketStore store(dir_name(path_));
  const bool guarded = replaces_by_version(dir_name(path_));
  for (;;) {
    const std::optional<Store::Object> there = store.read(base_name(path_));
    const std::string now = there ? state_of_object(there->contents.size(), there->version) : "";
    const std::string others = there && now != before_ ? there->contents : "";
    ObjectUpload upload(path_);
    put_merged(others, [&](std::string_view text) { upload.write(text.data(), text.size()); });
    if (guarded ? upload.commit_over(there ? there->version : "") : upload.commit()) return;
  }
}

}  // namespace vfm::io
