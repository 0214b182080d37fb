// SPDX-License-Identifier: Apache-2.0
#include "pack/report.h"

#include <algorithm>
#include <string_view>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "data/frame_strip.h"
#include "data/latents.h"
#include "data/packing.h"
#include "io/file.h"
#include "report/html.h"
#include "shard/media_members.h"
#include "tensor/device.h"
#include "text/unicode.h"

namespace vfm::pack {
namespace {

constexpr std::size_t kMeasured = 200, kShown = 16;

struct Pair {
  data::ClipPixels original;
  std::vector<float> decoded;
  double psnr = 0;
  std::string caption;
};

class Report {
 public:
  Report(const PackReportOptions& options, const models::VideoTokenizer& tokenizer,
         const ClipTars& tars)
      : options_(options),
        tokenizer_(tokenizer),
        tars_(tars),
        page_("Latents", options.directory) {}

  void write() {
    const Json info = parse_json(io::read_file(io::join_path(options_.directory, "latents.json")),
                                 "latents.json");
    for (const auto& [split, facts] : info.at("splits").items())
      add_split(split, facts);
    page_.heading("Tokenizer");
    page_.paragraph(dump_json(tokenizer_.config().to_json()));
    page_.heading("Original above, decoded latent below");
    page_.gallery(figures_, 640);
    page_.svg(report::histogram(psnrs_, 20, "PSNR, dB"),
              "what the tokenizer keeps: " + counted(psnrs_.size(), "sample"));
    page_.svg(lengths(), "lengths of all samples");
    if (info.contains("mean")) add_channels(info);
    page_.write(options_.path);
  }

 private:
  std::string lengths() const {
    report::AxisRange range;
    for (const auto& [tokens, samples] : tokens_)
      range.add(tokens);
    report::Histogram histogram(range, 20);
    for (const auto& [tokens, samples] : tokens_)
      histogram.add(tokens, static_cast<std::int64_t>(samples));
    return histogram.svg("tokens (patches of 1 x 2 x 2)");
  }

  void add_split(const std::string& split, const Json& facts) {
    const data::LatentSet set(options_.directory, split);
    page_.heading("Split " + split);
    const auto number = [&](const char* what, const char* one) {
      return counted(facts.at(what).get<std::uint64_t>(), one);
    };
    page_.paragraph(fmt::format("{} in {}, {}", number("samples", "sample"),
                                number("shards", "shard"), number("tokens", "token")));
    std::map<std::string, std::map<std::string, std::size_t>> wanted;
    const data::SampleIndex& index = set.index();
    const std::size_t n = index.size(), count = std::min(n, kMeasured);
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t i = k * n / count;
      const data::Entry entry = index.entry(i);
      wanted[entry.shard][entry.key] = i;
    }
    for (const data::Form& form : index.forms())
      tokens_[static_cast<double>(data::token_count(index.sizes(form.first)))] += form.count;
    std::set<std::string> names;
    for (const auto& [name, keys] : wanted)
      names.insert(split + "/" + name);
    const auto tars = tars_.find(names);
    for (const auto& [name, keys] : wanted)
      add_shard(set, tars.at(split + "/" + name), keys);
  }

  /// `keys` has keys of latents: keys of clips, or of windows of clips.
  void add_shard(const data::LatentSet& set, const std::vector<std::string>& tars,
                 const std::map<std::string, std::size_t>& keys) {
    shard::JoinedReader reader(tars);
    shard::Sample sample;
    for (std::size_t left = keys.size(); left > 0 && reader.next(sample);) {
      check_stop();
      for (auto at = keys.lower_bound(sample.key); at != keys.end(); ++at) {
        if (!at->first.starts_with(sample.key)) break;
        const auto window = data::window_of_key(at->first, sample.key);
        if (!window) continue;
        --left;
        try {
          add_sample(set, sample, *window, at->second);
        } catch (const GpuError&) {
          throw;
        } catch (const Error& error) {
          log_info("'{}' is not in the report: {}", at->first, error.what());
        }
      }
    }
  }

  void add_sample(const data::LatentSet& set, const shard::Sample& sample, int window,
                  std::size_t i) {
    const shard::Member* media = shard::media_member(sample);
    if (media == nullptr) return;
    Pair pair;
    data::PixelOptions clip = options_.clip;
    clip.only = window;
    pair.original =
        data::clip_pixels(media->data, sample.key + "." + media->extension, sample.key, clip);
    const data::LatentSample latent = set.read(i);
    const data::Entry entry = set.index().sizes(i);
    pair.decoded =
        tokenizer_.vocabulary() > 0
            ? tokenizer_.decode_codes(latent.codes, entry.frames, entry.height, entry.width)
            : tokenizer_.decode(latent.latent, entry.frames, entry.height, entry.width);
    if (pair.decoded.size() != pair.original.pixels.size()) return;
    pair.psnr = models::psnr(pair.original.pixels, pair.decoded);
    psnrs_.push_back(pair.psnr);
    if (figures_.size() == kShown) return;
    const std::string caption = latent.meta->value("caption", Json()).is_string()
                                    ? latent.meta["caption"].get<std::string>()
                                    : sample.key;
    figures_.push_back(
        {report::data_url("image/png", data::frame_strip(pair.original.pixels, pair.decoded,
                                                         pair.original.frames, pair.original.height,
                                                         pair.original.width)),
         fmt::format("{} ({:.1f} dB)", report::set_apart(text::first_characters(caption, 200)),
                     pair.psnr),
         false});
  }

  void add_channels(const Json& info) {
    page_.heading("Channels");
    std::vector<std::vector<std::string>> rows;
    const auto frames = static_cast<std::size_t>(info.value("frames", 1));
    for (std::size_t c = 0; c < info.at("mean").size(); ++c)
      rows.push_back(
          {frames > 1 ? fmt::format("{}, frame {}", c / frames, c % frames) : fmt::format("{}", c),
           fmt::format("{:.4f}", info["mean"][c].get<double>()),
           fmt::format("{:.4f}", info["std"][c].get<double>())});
    page_.table({"channel", "mean", "standard deviation"}, rows);
  }

  const PackReportOptions& options_;
  const models::VideoTokenizer& tokenizer_;
  const ClipTars& tars_;
  report::Page page_;
  std::vector<report::Figure> figures_;
  std::vector<double> psnrs_;
  std::map<double, std::uint64_t> tokens_;  // number of samples for each number of tokens
};

}  // namespace

void ClipTars::add(const std::string& split, const ClipShard& shard) {
  lines_ += dump_json({{"name", split + "/" + shard.name}, {"tars", shard.tars}}) + "\n";
}

std::map<std::string, std::vector<std::string>> ClipTars::find(
    const std::set<std::string>& wanted) const {
  std::map<std::string, std::vector<std::string>> found;
  for (std::size_t begin = 0, end = 0; begin < lines_.size(); begin = end + 1) {
    end = lines_.find('\n', begin);
    const Json json = parse_json(std::string_view(lines_).substr(begin, end - begin), "a shard");
    const std::string name = json.at("name").get<std::string>();
    if (wanted.contains(name)) found[name] = json.at("tars").get<std::vector<std::string>>();
  }
  return found;
}

void write_pack_report(const PackReportOptions& options, const models::VideoTokenizer& tokenizer,
                       const ClipTars& tars) {
  Report(options, tokenizer, tars).write();
}

}  // namespace vfm::pack
