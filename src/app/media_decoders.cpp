#include "app/media_decoders.h"

#include <span>
#include <string>

#include "base/log.h"
#include "base/thread_watch.h"
#include "model/media_limits.h"
#include "model/sound_file.h"

namespace chasqui {
namespace {

constexpr std::size_t kIdleMost = 2;

bool is_picture_order(const DecodeOrder& order) { return order.kind == static_cast<std::uint32_t>(MediaKind::picture); }

// Of a vector of them.
std::span<const float> samples_in(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

Error cannot_be_decoded(const DecodeOrder& order, std::string_view why) {
  const std::string reason = " cannot be decoded (" + std::string(why) + "); ";
  return is_picture_order(order) ? refused_media("a picture" + reason + "PNG, JPEG, GIF and BMP are read")
                                 : refused_media("a sound" + reason + "WAV, MP3 and FLAC are read");
}

// A thread of the offload pool is not stuck for that it sleeps meanwhile: each wait has an end.
void waited() { ThreadWatch::has_waited(RealClock().now()); }

Error none_to_be_had() {
  return {ErrorCode::overloaded, "Pictures and sounds cannot be decoded for now; try again later.", "", seconds(1)};
}

}  // namespace

void MediaDecoders::expect_files() {
  if (Process process = take()) {
    if (!process->filtered()) log_warning("this system filters no system calls of the process that decodes media");
    return keep(std::move(process));
  }
  {
    const SharedLock::Writing alone(lock_);
    if (had_one_) return;
    here_ = true;
  }
  log_warning("pictures and sounds are decoded in the process of the server: no other can be started for them");
}

Result<Picture> MediaDecoders::picture(std::string_view bytes) {
  if (auto small = check_media_size(MediaKind::picture, bytes.size()); !small) return small.error();
  if (decodes_here()) return decode_picture(bytes);
  Picture picture;
  const auto error =
      decode(order_to_decode(MediaKind::picture, bytes, 0), bytes, [&picture](const DecodeAnswer& answer) {
        picture.width = answer.width;
        picture.height = answer.height;
        picture.rgb.resize(answer.bytes);
        return std::as_writable_bytes(std::span(picture.rgb));
      });
  if (error) return *error;
  return picture;
}

Result<std::vector<float>> MediaDecoders::sound(std::string_view bytes, std::int32_t rate) {
  if (auto small = check_media_size(MediaKind::sound, bytes.size()); !small) return small.error();
  if (decodes_here()) return decode_sound(bytes, rate);
  std::vector<float> samples;
  const auto error =
      decode(order_to_decode(MediaKind::sound, bytes, rate), bytes, [&samples](const DecodeAnswer& answer) {
        samples.resize(answer.bytes / sizeof(float));
        return std::as_writable_bytes(std::span(samples));
      });
  if (error) return *error;
  return samples;
}

std::optional<Error> MediaDecoders::decode(const DecodeOrder& order, std::string_view file,
                                           const DecoderProcess::Place& place) {
  Process process = take();
  if (!process) return none_to_be_had();
  std::string reason;
  bool refused = false;
  std::span<std::byte> decoded;
  const auto to = [&](const DecodeAnswer& answer) {
    refused = answer.kind == DecodeAnswer::refused;
    if (!refused) return decoded = place(answer);
    reason.resize(answer.bytes);
    return std::as_writable_bytes(std::span(reason));
  };
  DecoderProcess::Outcome outcome = process->decode(order, file, to);
  waited();
  if (outcome == DecoderProcess::Outcome::answered) {
    const bool possible = refused ? is_reason(reason) : is_picture_order(order) || are_samples(samples_in(decoded));
    if (!possible) outcome = DecoderProcess::Outcome::impossible;
  }
  if (outcome != DecoderProcess::Outcome::answered) return replace(std::move(process), order, outcome);
  keep(std::move(process));
  if (refused) return refused_media(std::move(reason));
  return std::nullopt;
}

// The next one does not wait for it.
Error MediaDecoders::replace(Process process, const DecodeOrder& order, DecoderProcess::Outcome how) {
  const std::string_view during = is_picture_order(order) ? "decoding a picture" : "decoding a sound";
  std::string for_client = "its decoder failed";
  if (how == DecoderProcess::Outcome::late) {
    for_client = "it takes longer than " + std::to_string(longest_ / milliseconds(1)) + " ms";
    count_lost(during, "it took longer than it may");
  } else if (how == DecoderProcess::Outcome::impossible) {
    count_lost(during, "it answered what is impossible");
  } else {
    count_lost(during, process->end());
  }
  process.reset();
  if (Process next = start()) keep(std::move(next));
  return cannot_be_decoded(order, for_client);
}

bool MediaDecoders::decodes_here() {
  const SharedLock::Reading shared(lock_);
  return here_;
}

MediaDecoders::Process MediaDecoders::take() {
  while (Process process = take_idle()) {
    if (process->waits()) return process;
    count_lost("waiting", process->end());
  }
  return start();
}

MediaDecoders::Process MediaDecoders::start() {
  Process process = DecoderProcess::start(spawn_, longest_);
  waited();
  return process;
}

MediaDecoders::Process MediaDecoders::take_idle() {
  const SharedLock::Writing alone(lock_);
  if (idle_.empty()) return nullptr;
  Process process = std::move(idle_.back());
  idle_.pop_back();
  return process;
}

// One too many ends when it is let go of, without the lock.
void MediaDecoders::keep(Process process) {
  const SharedLock::Writing alone(lock_);
  had_one_ = true;
  here_ = false;
  if (idle_.size() < kIdleMost) idle_.push_back(std::move(process));
}

void MediaDecoders::count_lost(std::string_view during, std::string_view why) {
  metrics_.restarts.add();
  log_warning("a process that decodes pictures and sounds was lost", {{"during", during}, {"reason", why}});
}

}  // namespace chasqui
