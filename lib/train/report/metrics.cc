// SPDX-License-Identifier: Apache-2.0
#include "train/report/metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/json.h"
#include "train/report/rank_timing.h"

namespace vfm::train {
namespace {

io::File open_append(const std::string& path, std::int64_t step) {
  truncate_log(path, step);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) fail_output(errno, "cannot create '{}'", path);
  return io::File(fd, path);
}

}  // namespace

void truncate_log(const std::string& path, std::int64_t step) {
  if (!io::file_exists(path)) return;
  const std::string text = io::read_file(path);
  std::size_t keep = 0;
  for (std::size_t end; (end = text.find('\n', keep)) != std::string::npos; keep = end + 1) {
    const Json record = Json::parse(text.substr(keep, end - keep), nullptr, false);
    if (!record.is_object() || !record.contains("step") || !record["step"].is_number_integer() ||
        record["step"].get<std::int64_t>() > step)
      break;
  }
  if (keep < text.size() && ::truncate(path.c_str(), static_cast<off_t>(keep)) != 0)
    fail_output(errno, "cannot write '{}'", path);
}

MetricsLog::Log::Log(std::string path, std::int64_t step)
    : place(std::move(path)), lines(open_append(place.local(), step)) {}

void MetricsLog::Log::add(const Json& record) {
  lines.add(dump_json(record) + "\n");
}

MetricsLog::MetricsLog(const std::string& run, const std::string& host, std::int64_t step)
    : metrics_(io::join_path(run, "metrics.jsonl"), step),
      timing_(io::join_path(run, "timing.jsonl"), step),
      events_(run, host, step > 0 ? step + 1 : 0) {}

void MetricsLog::metrics(const Json& record) {
  metrics_.add(record);
  events(record, "train/");
}

void MetricsLog::timing(const Json& record) {
  timing_.add(record);
  events(record, "timing/");
}

void MetricsLog::sync() {
  metrics_.lines.sync();
  metrics_.place.put();
  timing_.place.put();
  events_.put();
}

void MetricsLog::events(const Json& record, const std::string& group) {
  std::vector<std::pair<std::string, double>> scalars;
  for (const auto& [key, value] : record.items()) {
    if (key == "step") continue;
    const std::string tag = key.starts_with("val_") ? "val/" + key.substr(4) : group + key;
    if (value.is_number()) scalars.emplace_back(tag, value.get<double>());
    if (!value.is_object()) continue;
    for (const auto& [part, number] : value.items())
      if (number.is_number()) scalars.emplace_back(tag + "/" + part, number.get<double>());
  }
  const auto step = record["step"].get<std::int64_t>();
  if (!scalars.empty()) events_.scalars(step, scalars);
  if (std::string words = slowest_words(record); !words.empty())
    events_.text(step, group + "slowest_rank", words);
}

}  // namespace vfm::train
