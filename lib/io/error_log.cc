// SPDX-License-Identifier: Apache-2.0
#include "io/error_log.h"

#include <sys/stat.h>

#include <memory>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/shown_name.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/packed.h"
#include "io/remote/address.h"
#include "io/remote/remote_file.h"
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

/// Returns a text that changes if the file at `path` is written again or replaced, whatever its
/// contents are. Returns "" if there is no file.
std::string state_of(const std::string& path) {
  if (is_remote(path)) {
    const std::shared_ptr<RemoteFile> object = RemoteFile::open_if_there(path);
    return object ? fmt::format("{} {}", object->size(), object->version()) : "";
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

std::string ErrorLog::others_lines() const {
  const std::string now = state_of(path_);
  return now.empty() || now == before_ ? "" : read_file(path_);
}

void ErrorLog::finish() {
  const std::lock_guard lock(mutex_);
  if (count_ == 0 && state_of(path_).empty()) return;
  TextWriter file(path_);
  const std::string others = others_lines();
  if (count_ == 0 && !others.empty()) return;
  if (count_ == 0) {
    remove_file(path_);
    return;
  }
  // Records of (place, number, line). Of equal lines, only the first is kept.
  Sorter in_order(dir_name(path_), kSorterMemory);
  {
    Sorter::Stream stream = lines_.sorted();
    std::string last, record;
    for (std::string_view rest; stream.next(rest);) {
      std::string line = take_ordered_text(rest);
      if (line == last || others.find(line) != std::string::npos) continue;
      record = take_bytes(rest, kPlaceBytes);
      record += line;
      in_order.add(record);
      last = std::move(line);
    }
  }
  // The file is written even if no line is new, so that other programs see a change of its state.
  file.add(others);
  Sorter::Stream stream = in_order.sorted();
  for (std::string_view record; stream.next(record);)
    file.add(record.substr(kPlaceBytes));
  file.commit();
  before_ = state_of(path_);
}

}  // namespace vfm::io
