// vfm-caption --score and what goes with it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/options.h"
#include "columns/caption.h"
#include "columns/score.h"

class CaptionScoreOptions {
 public:
  void add(vfm::cli::Options& options) {
    CLI::App& app = options.app();
    const std::string group = "Scores of captions";
    app.add_flag("--score", asked_, "add no captions; say how good those are that are there")
        ->group(group);
    const auto add = [&](const char* name, std::string& value, const char* help) {
      of_score_.push_back(app.add_option(name, value, help)
                              ->type_name("DIR")
                              ->check(vfm::cli::not_empty)
                              ->group(group));
    };
    add("--score-model", captioner_, "by a model that captions: what the video tells it of them");
    add("--score-clip", clip_, "by a CLIP or SigLIP: how well each sentence fits frames");
  }

  bool asked() const { return asked_; }
  /// Whether options about how a model is asked have a meaning.
  bool asks_model() const { return asked_ && !captioner_.empty(); }
  bool asks_any() const { return asked_ && !(captioner_.empty() && clip_.empty()); }

  void check(const CLI::App& app) const {
    for (const CLI::Option* option : of_score_)
      if (!asked_ && option->count() > 0)
        vfm::fail_usage("{} is about scores of captions: it needs --score", option->get_name());
    if (!asked_) return;
    const std::vector<std::string> kept = {
        "help",       "version",    "verbose",       "quiet",     "progress",   "no-progress",
        "output",     "force",      "dry-run",       "null",      "jobs",       "hwaccel",
        "timeout",    "max-member", "score",         "protocols", "max-pixels", "score-model",
        "score-clip", "isolate",    "isolate-memory"};
    const std::vector<std::string> of_model = {"prompt", "prompt-file",  "fps",
                                               "window", "frame-tokens", "compute"};
    const auto among = [](const std::vector<std::string>& names, const CLI::Option& option) {
      return std::any_of(names.begin(), names.end(),
                         [&](const std::string& name) { return option.check_lname(name); });
    };
    for (const CLI::Option* option : app.get_options()) {
      if (option->count() == 0 || option->get_lnames().empty() || among(kept, *option)) continue;
      const std::string name = "--" + option->get_lnames().front();
      if (name == "--device" || name == "--devices") {
        if (!asks_any())
          vfm::fail_usage("{} is about a model: name one by --score-model or --score-clip DIR",
                          name);
        continue;
      }
      if (!among(of_model, *option))
        vfm::fail_usage("{} is about making captions; --score makes none", name);
      if (captioner_.empty())
        vfm::fail_usage("{} is about a model: name one by --score-model DIR", name);
    }
  }

  /// `from`: what the tool's other options say.
  vfm::columns::ScoreOptions options(const vfm::columns::CaptionOptions& from) const {
    vfm::columns::ScoreOptions options;
    options.inputs = from.inputs;
    options.directory = from.directory;
    options.force = from.force;
    options.limits = from.limits;
    options.captioner = captioner_;
    options.clip = clip_;
    options.model = from.model;
    options.hardware = from.hardware;
    return options;
  }

 private:
  bool asked_ = false;
  std::string captioner_, clip_;
  std::vector<CLI::Option*> of_score_;
};
