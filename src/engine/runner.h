// Computes a batch: saves, empties, restores and moves slots, decodes, samples every row that asks for it, turns tokens
// into text and looks for stop strings. Keeps the sampler and the text assembler of each sequence that has been
// sampled. Decides nothing and changes no sequence. Owned by one Worker; worker thread only, but for steps with many
// logits, where libllama's compute threads, the worker's among them, sample the first row of each sequence that has
// neither a grammar nor a chain.
#pragma once

#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "core/batch.h"
#include "core/event.h"
#include "engine/drafter.h"
#include "model/indent_guard.h"
#include "model/model.h"
#include "model/sampler.h"
#include "model/text_assembler.h"
#include "model/tokenizer.h"

namespace chasqui {

class Runner {
 public:
  // All three outlive the runner.
  // `drafter` may be null: then the model has heads, or no batch has anything to be drafted.
  Runner(Model& model, const Tokenizer& tokenizer, const Clock& clock, std::unique_ptr<Drafter> drafter = nullptr)
      : model_(model), tokenizer_(tokenizer), clock_(clock), drafter_(std::move(drafter)) {}

  // For benchmarks: a draft token counts as accepted with the rate for its position, the last one for all that follow,
  // whatever the model says.
  void accept_synthetically(std::vector<double> rates) { synthetic_acceptance_ = std::move(rates); }
  // For tests: what masks of grammars may take after a step.
  void limit_masks(std::uint64_t work) { mask_work_ = scratch_.mask_least = work; }

  // Writes the draft model's draft tokens into the rows.
  void run(Batch& batch, BatchResult& result);

  // Before any step of it: says what of its answer was generated elsewhere (Request::begun) as it was said there, in
  // text events. What is returned ends the answer, which should not have gone on; then nothing of it is to be sampled.
  std::optional<Sample> retell(const Request& request, std::vector<Event>& events);

  // Forgets a sequence and gives back the text that was held for a character or a stop string that did not come.
  std::string close(RequestId id);

  Drafter* drafter() { return drafter_.get(); }

  std::size_t open_sequences() const { return voices_.size(); }

 private:
  // What one sequence speaks with.
  struct SequenceOutput {
    SequenceOutput(Sampler own, TextAssembler writer, IndentGuard guard)
        : sampler(std::move(own)), text(std::move(writer)), indent(guard) {}

    Sampler sampler;
    TextAssembler text;
    IndentGuard indent;
    TimePoint first_token = kNever;  // kept where the request has a limit for what follows, as is the next
    bool new_line = false;
    TokenCount said = 0;
    std::vector<Token> due;  // what a grammar has forced and the node that sampled the token before it did not say
  };

  // The first tokens of a batch, drawn by several threads at once, by part. What a grammar or a chain of libllama's
  // samplers draws is left to the worker's thread, which keeps what masks have found.
  class Draws final : public RowJob {
   public:
    struct Draw {
      Sampler* sampler = nullptr;  // null: it is not drawn here
      std::span<float> logits;
      Token token = 0;
      std::vector<TokenChance> chances;
    };
    void run(std::size_t row, std::size_t thread) override;

    std::vector<Draw> draws;
    std::vector<std::unique_ptr<SamplerScratch>> scratch;  // by thread
  };

  void compute(const Batch& batch, BatchResult& result);
  void draw_together(const Batch& batch);
  void prepare(const Batch& batch, BatchResult& result);
  bool bring(const SlotRestore& restore);
  void draft(Batch& batch, BatchResult& result);
  void learn(const Batch& batch, BatchResult& result);
  void trim_padding(const Batch& batch);
  void read(const Batch& batch, const BatchPart& part, BatchResult& result);
  void tell_prompt(const Batch& batch, const BatchPart& part, BatchResult& result);
  SequenceOutput& voice(const Request& request);
  SequenceOutput& open(const Request& request);
  std::optional<Sample> follow(const Request& request, SequenceOutput& speaker, std::vector<Event>* events);
  bool can_wait(const BatchPart& part) const;
  void put_off(const Batch& batch, const BatchPart& part, std::int32_t accepted, BatchResult& result);
  bool sample(const Request& request, std::int32_t row, std::optional<Token> instead, Draws::Draw* drawn, Sample& out,
              BatchResult& result);
  void say(const Request& request, SequenceOutput& speaker, Sample& out);
  void write(const Request& request, SequenceOutput& speaker, Sample& out);
  bool say_forced(const Batch& batch, const BatchPart& part, std::int32_t& accepted, BatchResult& result);
  std::optional<Token> synthetic_token(const Batch& batch, const BatchPart& part, std::int32_t place);

  Model& model_;
  const Tokenizer& tokenizer_;
  const Clock& clock_;
  const std::unique_ptr<Drafter> drafter_;
  std::vector<double> synthetic_acceptance_;
  std::uint64_t mask_work_ = GrammarMasks::kStepWork;
  std::minstd_rand dice_;
  std::unordered_map<RequestId, SequenceOutput> voices_;
  SamplerScratch scratch_;
  std::vector<Token> forced_;  // scratch of say_forced()
  Draws draws_;
};

}  // namespace chasqui
