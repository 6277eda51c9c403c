// The processes that decode what clients send, so that a file that breaks a decoder ends one of those and not the
// server: the MediaDecoder of a server, shared by its models. There are as many as threads decode at once, and two stay
// while none does; one that is lost is replaced at once. None is started before a model needs one. Where the first one
// cannot be started, the server decodes in its own process until one can, when a model is loaded again, and the log
// says so; a later one that cannot be started is an error, so that no client can bring that about. Any thread; outlives
// the models.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "app/decoder_process.h"
#include "base/limits.h"
#include "base/metric_set.h"
#include "base/shared_lock.h"
#include "model/media_decoder.h"

namespace chasqui {

struct MediaDecoderMetrics : MetricSet {
  Counter restarts{*this,
                   {"chasqui_media_decoder_restarts_total",
                    "Processes that decode pictures and sounds and were lost: they crashed, hung or were killed."}};
};

class MediaDecoders final : public MediaDecoder {
 public:
  explicit MediaDecoders(SpawnDecoder spawn = spawn_media_decoder,
                         Duration longest = kTimeLimit<"media_decode_seconds">)
      : spawn_(std::move(spawn)), longest_(longest) {}

  void expect_files() override;
  // What breaks its process, or takes it too long, is refused as what cannot be decoded.
  Result<Picture> picture(std::string_view bytes) override;
  Result<std::vector<float>> sound(std::string_view bytes, std::int32_t rate) override;

  const MediaDecoderMetrics& metrics() const { return metrics_; }

 private:
  using Process = std::unique_ptr<DecoderProcess>;
  // Nothing: it is decoded.
  std::optional<Error> decode(const DecodeOrder& order, std::string_view file, const DecoderProcess::Place& place);
  Error replace(Process process, const DecodeOrder& order, DecoderProcess::Outcome how);
  bool decodes_here();
  Process take();
  Process start();
  Process take_idle();
  void keep(Process process);
  void count_lost(std::string_view during, std::string_view why);

  const SpawnDecoder spawn_;
  const Duration longest_;
  MediaDecoderMetrics metrics_;
  SharedLock lock_;            // of all that follows; held for no longer than it takes to look
  bool here_ = false;          // the server decodes itself
  bool had_one_ = false;       // from then on it never does
  std::vector<Process> idle_;  // the one that was used last is the last
};

}  // namespace chasqui
