// Who answers in `chasqui chat`: a model in this process, or a server. Blocks the calling thread until the answer has
// ended; a caller that wants to stop says so through AnswerSinks::stopped, which is asked every 50 ms at least.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "cli/conversation.h"

namespace chasqui::cli {

struct AnswerSettings {
  std::optional<double> temperature;  // none: what the model or the server has as its default
  std::optional<std::int64_t> max_tokens;
  std::optional<std::uint32_t> seed;
};

struct AnswerSinks {
  std::function<void(std::string_view)> text;
  std::function<void(std::string_view)> reasoning;
  std::function<bool()> stopped;
};

struct AnswerReport {
  std::string text;
  bool stopped = false;       // by the user
  std::string finish_reason;  // stop, length …
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t completion_tokens = 0;
  double first_token_s = 0;
  double total_s = 0;
};

class Answerer {
 public:
  virtual ~Answerer() = default;
  virtual std::string model_name() const = 0;
  virtual Result<AnswerReport> answer(const Conversation& conversation, const AnswerSinks& sinks) = 0;
};
using AnswererPtr = std::unique_ptr<Answerer>;

}  // namespace chasqui::cli
