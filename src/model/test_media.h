// For the tests of this folder: prompts with pictures and sounds, read by random models. One thread.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/llama_media.h"
#include "model/llama_model.h"
#include "model/test_files.h"
#include "model/test_rows.h"

namespace chasqui {

inline const std::string kTestModels = CHASQUI_BINARY_DIR "/models/";

inline MediaFilePtr test_picture(std::uint32_t seed = 0, std::uint32_t width = 50, std::uint32_t height = 40) {
  return std::make_shared<MediaFile>(MediaFile{MediaKind::picture, test_png(width, height, seed)});
}

inline MediaFilePtr test_sound(std::uint32_t samples = 4000) {
  return std::make_shared<MediaFile>(MediaFile{MediaKind::sound, test_wav(samples)});
}

// "Look:", the files, and a question.
inline MediaPrompt read_media(const LlamaMedia& media, const std::vector<MediaFilePtr>& files,
                              const std::string& question = " what is it?") {
  std::string text = "Look:";
  for (std::size_t i = 0; i < files.size(); ++i) text += " " + std::string(media.marker());
  auto prompt = media.read(text + question, AddSpecial::yes, ParseSpecial::yes, files);
  CHECK(prompt, prompt ? "" : prompt.error().message);
  return std::move(*prompt);
}

// The rows of a prompt from `at` on up to its end, or to that of the unit or of the text that is there.
inline Batch next_rows(Model& model, const MediaPrompt& prompt, TokenCount at, TokenCount piece, std::int32_t slot) {
  Batch batch;
  const MediaUnit* const next = unit_from(prompt.units, at);
  batch.unit = unit_at(prompt.units, at);
  TokenCount stop = static_cast<TokenCount>(prompt.tokens.size());
  if (next != nullptr) stop = batch.unit == nullptr ? next->begin : next->begin + next->positions;
  if (batch.unit != nullptr) {
    if (batch.unit->causal) stop = std::min(stop, at + piece);
    const auto encoded = model.encode(*batch.unit, 0);
    CHECK(encoded, encoded ? "" : encoded.error().message);
  }
  add_rows(batch, slot, at,
           std::span(prompt.tokens).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(stop - at)));
  return batch;
}

// As the scheduler would have the prompt computed from `at` on, `piece` rows at most of a causal unit in a step; the
// last logits.
inline std::vector<float> compute_media(Model& model, const MediaPrompt& prompt, TokenCount piece = 512,
                                        std::int32_t slot = 0, TokenCount at = 0) {
  const auto end = static_cast<TokenCount>(prompt.tokens.size());
  std::size_t rows = 0;
  while (at < end) {
    const Batch batch = next_rows(model, prompt, at, piece, slot);
    CHECK(model.decode(batch) == DecodeStatus::ok);
    rows = batch.rows.size();
    at += static_cast<TokenCount>(rows);
  }
  return copy(model.logits(static_cast<std::int32_t>(rows) - 1));
}

}  // namespace chasqui
