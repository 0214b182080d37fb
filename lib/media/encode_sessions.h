// Which encoders work on a GPU's video engine, NVENC, and the sessions that they take there.
//
// A GPU without NVENC (A100, H100, H200) is found by a trial when an encoder would be opened on it:
// it is left out by name, and where no GPU is left that is an error with all the reasons.
// Thread-safety: any thread, but where it says otherwise.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/engine_sessions.h"

namespace vfm::media {

struct EncoderKind;

/// Whether the encoder of this name does.
bool encodes_on_gpu(const std::string& name);

/// How many encoders a GPU is to have at once, of programs that share it: those that one NVENC
/// engine keeps up with. The driver of a GeForce allows a few more.
inline constexpr int kEncodeSessions = 3;

/// Luma samples of a picture as a video engine keeps it: both sides rounded up to 64.
std::int64_t engine_samples(int width, int height);

/// What NVENC takes of a GPU's memory, at most, for pictures of 8 bits and without B-frames:
///   32 * engine_samples * 3/2 + 48 MiB:
/// the pictures of FFmpeg that come in and the packets that go out, 8 each and a packet at most as
/// large as a picture, and 16 that H.264 may refer to; the last for what the driver has besides the
/// one context of them all (cuda_device.h).
std::int64_t nvenc_session_bytes(int width, int height);

/// For the whole program, before threads start: from now on encoders take sessions there, from
/// their first frame on until they have finished, and wait for them in the calling thread, which
/// has to have no other encoder that is open: nobody may wait for an encoder that nobody works on.
/// Null: they take none, and FFmpeg chooses the GPU.
void set_encode_sessions(EngineSessions* sessions);

/// Inside lib/media only: one for an encoder of this kind, on a GPU on which it opens; null where
/// none is to be taken. Throws Stopped; Error{device} where no GPU is left, with the reasons;
/// Error{runtime} where no GPU has so many sessions beside the models that are there, or none free
/// for a thread that has an encoder open already, which does not wait.
std::shared_ptr<EngineSessions::Session> take_encode_session(const EncoderKind& kind, int width,
                                                             int height);

}  // namespace vfm::media
