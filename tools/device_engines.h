// The sessions of video engines that decoders and encoders of a tool take: on the GPUs of --device,
// or, with VFM_SHARE, on the first one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/engine_sessions.h"
#include "base/error.h"
#include "base/log.h"
#include "cards/find_cards.h"
#include "cli/options.h"
#include "device_workers.h"
#include "media/encode_sessions.h"
#include "media/encoder.h"
#include "media/hardware.h"

namespace vfm::cli {

/// Decoders and encoders on GPUs: those of the workers, else the first one. Before workers_of().
class DeviceEngines {
 public:
  DeviceEngines(WorkerOptions& device, const JobOptions& jobs, std::string program)
      : device_(device), jobs_(jobs), program_(std::move(program)) {}
  ~DeviceEngines() {
    if (encode_) media::set_encode_sessions(nullptr);
  }

  /// Of a tool without the model of that option: throws Error{usage} where --device has no work
  /// but that.
  void check_work(const char* model, const HwaccelOptions& hwaccel,
                  const std::string& encoder) const {
    if (device_.device == "auto") return;
    const bool gpus = !device_.device.starts_with("cpu");
    if (gpus && (hwaccel.hwaccel != "none" || media::encodes_on_gpu(encoder))) return;
    fail_usage("--device {} has no work: give {}{}", device_.device, model,
               gpus ? ", --hwaccel cuda, or --encoder h264_nvenc" : "");
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
    if (cards.empty() && !jobs_.share.empty() && media::why_no_hardware().empty()) {
      cards = first_gpu();
      for (Card& card : cards)
        card.sessions = media::decode_sessions_of(card.index);
    }
    if (all && !cards.empty())
      decode_ =
          make(std::move(cards), CardKind::decode,
               hwaccel.hwaccel == "cuda" ? EngineSessions::Wait::yes : EngineSessions::Wait::no);
    hardware_ = media::choose_hardware(hwaccel.hwaccel, numbers, decode_.get());
    return hardware_.get();
  }

  /// Whether encoders of this name, the default one if it is empty, take sessions from now on: if
  /// they work on a GPU.
  bool encode(const std::string& encoder) {
    if (!device_.workers() && jobs_.share.empty()) return false;
    if (!media::encodes_on_gpu(encoder.empty() ? media::default_encoder() : encoder)) return false;
    std::vector<Card> cards = gpus();
    if (cards.empty() && !jobs_.share.empty()) cards = first_gpu();
    if (cards.empty()) return false;
    for (Card& card : cards)
      card.sessions = media::kEncodeSessions;
    encode_ = make(std::move(cards), CardKind::encode, EngineSessions::Wait::yes);
    media::set_encode_sessions(encode_.get());
    return true;
  }

 private:
  std::vector<Card> gpus() {
    std::vector<Card> cards = device_.cards();
    std::erase_if(cards, [](const Card& card) { return card.index < 0; });
    return cards;
  }
  /// That which FFmpeg takes. None where it cannot be told from others of the machine, as instances
  /// of a GPU (MIG), or there is none, which FFmpeg will say.
  static std::vector<Card> first_gpu() {
    try {
      return cards::find_cards({"0"});
    } catch (const Error& error) {
      log_info("videos on a GPU are not counted with those of other programs: {}", error.what());
      return {};
    }
  }
  std::unique_ptr<EngineSessions> make(std::vector<Card> cards, CardKind kind,
                                       EngineSessions::Wait wait) {
    auto sessions =
        std::make_unique<EngineSessions>(jobs_.share, std::move(cards), program_, kind, wait);
    device_.keep_for(*sessions, !jobs_.share.empty());
    return sessions;
  }

  WorkerOptions& device_;
  const JobOptions& jobs_;
  std::string program_;
  std::unique_ptr<EngineSessions> decode_, encode_;
  std::shared_ptr<const media::HardwareDecoder> hardware_;
};

}  // namespace vfm::cli
