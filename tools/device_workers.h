// What tools with --devices have in common: the workers that it asks for, and the sessions of video
// engines that decoders and encoders take on these GPUs, or on the first one, with --share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/engine_sessions.h"
#include "base/slots.h"
#include "cards/find_cards.h"
#include "cards/stage_models.h"
#include "cli/options.h"
#include "media/encode_sessions.h"
#include "media/encoder.h"
#include "media/hardware.h"

namespace vfm::cli {

/// --devices all|0,2|cpu: the cards on which models compute, each in a worker.
struct DevicesOptions {
  std::vector<std::string> devices;
  CLI::Option* option = nullptr;
  /// After --device, which it excludes.
  void add(CLI::App& app) {
    option = app.add_option("--devices", devices,
                            "compute on several: all GPUs, some by number, or cpu once or more");
    option->type_name("all|0,2|cpu")->delimiter(',')->allow_extra_args(false);
    option->excludes(app.get_option("--device"));
  }
  /// Found with the first call, none without the option. Throws Error{usage} for cards that are not
  /// there.
  const std::vector<Card>& cards() {
    if (found_.empty() && !devices.empty()) found_ = cards::find_cards(devices);
    return found_;
  }
  /// Without --share no model of this program can know of its sessions: what they have is kept from
  /// the cards that are given from now on.
  void keep_for(const EngineSessions& sessions) {
    for (Card& card : found_)
      card.memory -= sessions.kept_bytes(card);
  }

 private:
  std::vector<Card> found_;
};

/// Decoders and encoders on GPUs: those of --devices, else the first one. Before workers_of().
class DeviceEngines {
 public:
  DeviceEngines(DevicesOptions& devices, const JobOptions& jobs, std::string program)
      : devices_(devices), jobs_(jobs), program_(std::move(program)) {}
  ~DeviceEngines() {
    if (encode_) media::set_encode_sessions(nullptr);
  }

  /// What media::choose_hardware() returns and throws; it lives as long as this. With sessions for
  /// which decoders wait if they were asked for (cuda), and not if any will do (auto).
  const media::HardwareDecoder* decoder(const HwaccelOptions& hwaccel) {
    if (hwaccel.hwaccel == "none") return nullptr;
    std::vector<Card> cards = gpus();
    std::vector<int> numbers;
    bool all = true;
    for (Card& card : cards) {
      numbers.push_back(card.index);
      all = all && media::why_no_hardware(card.index).empty();
      card.sessions = all ? media::decode_sessions_of(card.index) : 0;
    }
    if (cards.empty()) numbers = {0};
    if (all && !jobs_.share.empty() && cards.empty() && media::why_no_hardware().empty()) {
      cards = cards::find_cards({"0"});
      cards[0].sessions = media::decode_sessions_of(0);
    }
    if (all && !cards.empty())
      decode_ = make(std::move(cards), CardKind::decode,
                     hwaccel.hwaccel == "cuda" ? EngineSessions::Wait::yes
                                               : EngineSessions::Wait::no);
    hardware_ = media::choose_hardware(hwaccel.hwaccel, numbers, decode_.get());
    return hardware_.get();
  }

  /// Whether encoders of this name, the default one if it is empty, take sessions from now on: if
  /// they work on a GPU.
  bool encode(const std::string& encoder) {
    std::vector<Card> cards = gpus();
    if (cards.empty() && jobs_.share.empty()) return false;
    if (!media::encodes_on_gpu(encoder.empty() ? media::default_encoder() : encoder)) return false;
    if (cards.empty()) cards = cards::find_cards({"0"});
    for (Card& card : cards)
      card.sessions = media::kEncodeSessions;
    encode_ = make(std::move(cards), CardKind::encode, EngineSessions::Wait::yes);
    media::set_encode_sessions(encode_.get());
    return true;
  }

 private:
  std::vector<Card> gpus() {
    std::vector<Card> cards = devices_.cards();
    std::erase_if(cards, [](const Card& card) { return card.index < 0; });
    return cards;
  }
  std::unique_ptr<EngineSessions> make(std::vector<Card> cards, CardKind kind,
                                       EngineSessions::Wait wait) {
    auto sessions =
        std::make_unique<EngineSessions>(jobs_.share, std::move(cards), program_, kind, wait);
    if (jobs_.share.empty()) devices_.keep_for(*sessions);
    return sessions;
  }

  DevicesOptions& devices_;
  const JobOptions& jobs_;
  std::string program_;
  std::unique_ptr<EngineSessions> decode_, encode_;
  std::shared_ptr<const media::HardwareDecoder> hardware_;
};

}  // namespace vfm::cli

/// While items wait for cards, as many more are under way: so all cards are busy at any -j.
inline void await_workers(vfm::Slots& slots, const vfm::cards::StageModels* workers) {
  if (workers) slots.add_away(static_cast<int>(workers->together()));
}

/// Null where --devices is not given. Throws what DevicesOptions::cards() throws.
inline std::unique_ptr<vfm::cards::StageModels> workers_of(vfm::cli::DevicesOptions& options,
                                                           const vfm::cli::JobOptions& jobs,
                                                           const std::string& program) {
  if (options.devices.empty()) return nullptr;
  return std::make_unique<vfm::cards::StageModels>(options.cards(), jobs.share, program);
}
