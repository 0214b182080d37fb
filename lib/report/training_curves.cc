// SPDX-License-Identifier: Apache-2.0
#include "report/training_curves.h"

#include <algorithm>
#include <map>

#include "base/json.h"
#include "io/file.h"
#include "io/line_reader.h"

namespace vfm::report {
namespace {

std::map<std::string, Series> read_metrics(const std::string& path) {
  std::map<std::string, Series> columns;
  io::LineReader lines(io::File::open_read(path), "'" + path + "'");
  while (const auto line = lines.next()) {
    if (line->empty()) continue;
    const Json record = parse_json(*line, lines.where());
    const auto step = get_number(record, "step");
    if (!step) continue;
    for (const auto& [name, value] : record.items()) {
      if (!value.is_number() || name == "step") continue;
      Series& series = columns[name];
      series.name = name;
      series.x.push_back(*step);
      series.y.push_back(value.get<double>());
    }
  }
  return columns;
}

/// Replaces each value by the mean of the value and up to `reach` neighbours on each side.
Series smooth(const Series& series, std::size_t reach) {
  Series out{series.name + ", smoothed", series.x, {}};
  for (std::size_t i = 0; i < series.y.size(); ++i) {
    const std::size_t begin = i < reach ? 0 : i - reach;
    const std::size_t end = std::min(series.y.size(), i + reach + 1);
    double sum = 0;
    for (std::size_t j = begin; j < end; ++j)
      sum += series.y[j];
    out.y.push_back(sum / static_cast<double>(end - begin));
  }
  return out;
}

}  // namespace

void add_training_curves(Page& page, const std::string& metrics) {
  const auto columns = read_metrics(metrics);
  const auto find = [&](const char* name) -> const Series* {
    const auto found = columns.find(name);
    return found == columns.end() ? nullptr : &found->second;
  };
  if (const auto* loss = find("loss")) {
    std::vector<Series> lines = {*loss,
                                 smooth(*loss, std::max<std::size_t>(1, loss->y.size() / 60))};
    if (const auto* validation = find("val_loss")) lines.push_back(*validation);
    page.svg(line_chart(lines, "step", "loss", true), "Loss by step (logarithmic).");
  }
  if (const auto* psnr = find("val_psnr"))
    page.svg(line_chart({*psnr}, "step", "PSNR, dB"),
             "PSNR of the clips of validation by step: what the tokenizer keeps of them.");
  if (const auto* ssim = find("val_ssim"))
    page.svg(line_chart({*ssim}, "step", "SSIM"),
             "Structural similarity of the clips of validation by step; 1 is the same picture.");
  if (const auto* norm = find("grad_norm"))
    page.svg(line_chart({*norm}, "step", "gradient norm", true),
             "Gradient norm by step, before clipping.");
}

}  // namespace vfm::report
