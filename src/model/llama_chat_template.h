// Chat templates as model files carry them (Jinja), rendered by llama-common. A model without one gets ChatML, with a
// line in the log, as llama-server does. How a template writes calls and reasoning is found out once, which takes
// llama-common some milliseconds. Const and thread-safe; see ChatTemplate for where to call it.
#pragma once

#include <memory>
#include <string>

#include "model/chat_template.h"
#include "model/llama_weights.h"

namespace chasqui {

class LlamaChatTemplate final : public ChatTemplate {
 public:
  // `source` replaces the model's own template when it is not empty. A template that does not parse is an Error.
  static Result<std::unique_ptr<LlamaChatTemplate>> make(WeightsPtr weights, const std::string& source = {});
  ~LlamaChatTemplate() override;

  Result<std::string> render(const Chat& chat) const override;
  Result<PreparedChat> prepare(const Chat& chat) const override;
  std::string_view source() const override { return source_; }
  // Some models were trained with words of their own.
  TranscriptionPrompt transcription_prompt() const override;

  // For tests: what is known of the template beforehand is not used.
  Result<PreparedChat> prepare_slowly(const Chat& chat) const;
  bool is_analysed() const;

  // False when ChatML stands in for a template that neither the model nor the caller has.
  bool is_explicit() const { return explicit_; }

 private:
  struct Impl;
  LlamaChatTemplate(WeightsPtr weights, std::unique_ptr<Impl> impl);

  // Constant after construction.
  const WeightsPtr weights_;
  const std::unique_ptr<const Impl> impl_;
  const std::string source_;
  const bool explicit_;
};

}  // namespace chasqui
