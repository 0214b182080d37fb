// SPDX-License-Identifier: Apache-2.0
#include "columns/caption/paid_answers.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/full_disk.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "io/folder.h"

namespace vfm::columns {

std::string request_hash(const std::string& request) {
  return hash_hex(request);
}

PaidAnswers::PaidAnswers(std::string path)
    : kept_(io::GrowingFile::of_lines(std::move(path))), path_(kept_.local()) {
  if (!io::file_exists(path_)) return;
  const std::string lines = io::read_file(path_);
  for (const std::string_view line : io::lines_of(lines)) {
    try {
      const Json one = parse_json(line, path_);
      answers_[need_string(one, "request", path_)] = {
          need_string(one, "text", path_), need_integer(one, "prompt_tokens", path_),
          need_integer(one, "completion_tokens", path_), get_bool(one, "cut").value_or(false),
          get_string(one, "why_empty").value_or("")};
    } catch (const Error&) {
    }
  }
}

PaidAnswers::~PaidAnswers() {
  if (file_) put();
}

/// The answers are on the local disk, so an error of the bucket ends no work.
void PaidAnswers::put() noexcept {
  try {
    kept_.put();
  } catch (const Error& error) {
    log_warning("{}; the answers that were paid for are in '{}'", error.what(), path_);
  } catch (const Stopped&) {  // The same.
  }
  since_put_ = Stopwatch();
  put_ = true;
}

std::optional<EndpointAnswer> PaidAnswers::find(const std::string& hash) const {
  const std::lock_guard lock(mutex_);
  const auto found = answers_.find(hash);
  return found == answers_.end() ? std::nullopt : std::optional(found->second);
}

void PaidAnswers::add(const std::string& hash, const EndpointAnswer& answer) {
  const std::lock_guard lock(mutex_);
  std::string line;
  if (!file_) {
    const int fd = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) fail_output(errno, "cannot write '{}'", path_);
    file_ = io::File(fd, path_);
    // The last line may be incomplete.
    if (file_.size() > 0) line = "\n";
  }
  Json json = {{"request", hash},
               {"text", answer.text},
               {"prompt_tokens", answer.prompt_tokens},
               {"completion_tokens", answer.completion_tokens}};
  if (answer.cut) json["cut"] = true;
  if (!answer.why_empty.empty()) json["why_empty"] = answer.why_empty;
  line += dump_json(json) + "\n";
  try {
    file_.write_all(line.data(), line.size());
    if (::fdatasync(file_.fd()) != 0) fail_output(errno, "cannot write '{}'", path_);
  } catch (...) {
    file_ = io::File();  // the next answer begins a new line
    throw;
  }
  answers_[hash] = answer;
  constexpr double kPutSeconds = 60;
  if (kept_.local() != kept_.path() && (!put_ || since_put_.seconds() > kPutSeconds)) put();
}

void PaidAnswers::remove(const std::string& path) {
  io::remove_file(path);
}

}  // namespace vfm::columns
