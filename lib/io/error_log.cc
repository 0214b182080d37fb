// SPDX-License-Identifier: Apache-2.0
#include "io/error_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "io/atomic_file.h"
#include "io/file.h"

namespace vfm::io {
namespace {

/// Identifies the file at a path, not by its contents: a rewritten file has another name. Empty if
/// there is nothing.
std::string state_of(const std::string& path) {
  struct stat s {};
  if (::stat(path.c_str(), &s) != 0) return "";
  return fmt::format("{} {} {} {}", s.st_dev, s.st_ino, s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
}

}  // namespace

Json to_json(const std::vector<Fault>& faults) {
  Json list = Json::array();
  for (const Fault& fault : faults)
    list.push_back({{"input", fault.input}, {"error", fault.message}});
  return list;
}

std::vector<Fault> parse_faults(const Json& list) {
  if (!list.is_array()) fail("'errors' is no list");
  std::vector<Fault> faults;
  for (const Json& fault : list)
    faults.push_back(
        {need_string(fault, "input", "an error"), need_string(fault, "error", "an error")});
  return faults;
}

ErrorLog::ErrorLog(std::string path, std::string tool)
    : path_(std::move(path)), tool_(std::move(tool)), before_(state_of(path_)) {}
ErrorLog::~ErrorLog() = default;

void ErrorLog::add(const Fault& fault) {
  Json record = {{"tool", tool_}, {"input", fault.input}, {"error", fault.message}};
  {
    const std::lock_guard lock(mutex_);
    lines_.push_back(dump_json(record) + "\n");
  }
  // Most messages quote the input already.
  if (fault.message.find(fault.input) != std::string::npos)
    log_warning("{}", fault.message);
  else
    log_warning("{}: {}", fault.input, fault.message);
}

std::size_t ErrorLog::count() const {
  const std::lock_guard lock(mutex_);
  return lines_.size();
}

/// What a program wrote since this run began.
std::string ErrorLog::others_lines() const {
  const std::string now = state_of(path_);
  return now.empty() || now == before_ ? "" : read_file(path_);
}

void ErrorLog::finish() {
  const std::lock_guard lock(mutex_);
  if (lines_.empty() && state_of(path_).empty()) return;
  AtomicFile file = AtomicFile::await(path_);
  std::string text = others_lines();
  if (lines_.empty() && !text.empty()) return;
  for (const std::string& line : lines_)
    if (text.find(line) == std::string::npos) text += line;
  if (text.empty()) {
    if (::unlink(path_.c_str()) != 0 && errno != ENOENT)
      fail_errno(errno, "cannot remove '{}'", path_);
    return;
  }
  // Also where the same stands there: who works beside this run is to see that it was written.
  file.write(text);
  file.commit();
  before_ = state_of(path_);
}

}  // namespace vfm::io
