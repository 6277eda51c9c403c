// The answer to one request of chasqui.h, from the events of the engine to those of the program. Owned by the engine of
// chasqui.h, used by its thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/core/answer.h"
#include "api/core/answer_sinks.h"
#include "capi/chasqui.h"
#include "core/event.h"

struct chasqui_event {
  std::uint64_t request = 0;
  chasqui_kind kind = CHASQUI_PART;
  std::string json{};
  std::string text{};
  chasqui_status status = CHASQUI_OK;
  chasqui::Usage usage{};  // END: of all choices
};

namespace chasqui {

// In the words of chasqui.h.
chasqui_status status_of(ErrorCode code);

class RunningAnswer {
 public:
  // `ids`: what the engine knows its choices by; the first one is the number of the request, and the choices of one
  // prompt, so many as there are for each, follow each other.
  RunningAnswer(std::vector<RequestId> ids, std::size_t of_one_prompt, bool stream,
                std::unique_ptr<AnswerWriter> writer);
  RunningAnswer(const RunningAnswer&) = delete;
  RunningAnswer& operator=(const RunningAnswer&) = delete;

  std::uint64_t number() const { return ids_.front().value; }
  const std::vector<RequestId>& ids() const { return ids_; }
  // Its finished events say that the program has asked for them.
  void note_cancel() { cancelled_ = true; }
  // Takes an event of one of its ids, and appends what the program is told; at the end of the answer, or with its
  // failure, an END or a FAILED. True then: nothing comes after that.
  bool take(Event event, std::deque<chasqui_event>& out);

 private:
  bool take_streamed(const Event& event, std::deque<chasqui_event>& out);
  bool take_whole(Event& event, std::deque<chasqui_event>& out);
  void tell_frames(std::string_view frames, std::deque<chasqui_event>& out) const;
  bool fail(const Error& error, std::deque<chasqui_event>& out) const;
  void end(std::string body, std::string text, std::deque<chasqui_event>& out) const;

  const std::vector<RequestId> ids_;
  const std::size_t of_one_prompt_;
  const bool stream_;
  const std::unique_ptr<AnswerWriter> writer_;
  std::vector<Collected> collected_;  // of an answer that does not stream, by choice
  WholeSink whole_;
  std::vector<Usage> usages_;                 // by choice
  std::size_t running_;                       // choices
  FinishReason reason_ = FinishReason::stop;  // of the first choice
  bool cancelled_ = false;
  std::string frames_;
};

}  // namespace chasqui
