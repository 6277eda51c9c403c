// One step's work and its outcome. A Batch goes from the scheduler to the runner, a BatchResult back. Worker thread
// only. Both are reused from step to step, so that a steady decode allocates nothing.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "core/kv_snapshot.h"
#include "core/request.h"
#include "core/types.h"

namespace chasqui {

struct Row {
  Token token = 0;
  TokenCount position = 0;
  SlotId slot;
  bool output = false;  // its logits are wanted
};

// The content of a slot goes to another one, which was empty; or the contents of both change places.
struct SlotMove {
  SlotId from;
  SlotId to;
  bool exchange = false;
};

// The positions from … tokens-1 that a slot holds are copied out. It may hold more only where the model has blocks, and
// then `from` is a multiple of them.
struct SlotSave {
  SlotId slot;
  TokenCount tokens = 0;
  TokenCount from = 0;
};

// A sequence goes on in a slot that another one has left: the first `keep` positions that it holds stay.
struct SlotReuse {
  RequestId request;
  SlotId slot;
  TokenCount keep = 0;
};

// A slot, empty before, holds the first `keep` tokens of the snapshot afterwards, or of what the slot `source` holds.
// Where the model has blocks it may be one of several pieces, in their order: the tokens from … end()-1 of them.
struct SlotRestore {
  RequestId request;
  SlotId slot;
  KvSnapshotPtr snapshot;  // null: from `source`
  TokenCount keep = 0;
  TokenCount from = 0;
  TokenCount to = 0;  // 0: all
  SlotId source{};

  TokenCount end() const { return to > 0 ? to : keep; }
  bool whole() const { return snapshot != nullptr && from == 0 && end() == keep; }
};

// The positions from … to-1 of a slot are forgotten, and those behind them follow the ones before: what is computed of
// them is as good as before, though not what the tokens that are left would have.
struct SlotShift {
  RequestId request;
  SlotId slot;
  TokenCount from = 0;
  TokenCount to = 0;
};

// The rows of one sequence, contiguous in Batch::rows, and behind them those that only fill up. In a decode batch it
// has several where a grammar has forced what it says.
struct BatchPart {
  const Request* request = nullptr;  // lives at least until commit()
  SlotId slot;
  std::int32_t first_row = 0;
  std::int32_t rows = 0;
  bool samples = false;  // the last row is an output row and a token is to be sampled from it
  // So many rows follow that hold draft tokens of the sequence, each with an output: as long as what is
  // sampled is what was drafted, the row after it tells one token more. The slot forgets the positions of the others.
  // Only with `samples` and in decode batches.
  std::int32_t draft_tokens = 0;
  // So many rows follow that belong to no sequence: the slot forgets their positions after the step. They make the
  // parts of a batch equally long where libllama needs that to compute them in one pass.
  std::int32_t padding = 0;
  bool tells = false;  // all are output rows, and tell how likely the next tokens of the prompt are

  std::int32_t last_row() const { return first_row + rows - 1; }
  // All that are computed for its sake.
  std::int32_t all_rows() const { return rows + draft_tokens + padding; }
};

// What the draft model does before the rows of a step are computed. It has slots of its own, numbered alike; each goes
// on at the position of its first row, whatever it held from there on.
struct Drafting {
  std::vector<Row> reading;  // what it only has to know of: prompts that it has not seen
  // Of each part whose draft tokens it makes, ascending slots: its newest tokens, the last of which has an output.
  std::vector<Row> rows;

  bool empty() const { return reading.empty() && rows.empty(); }
  void clear() {
    reading.clear();
    rows.clear();
  }
};

// All rows of one llama_decode call. Decode rows and prefill chunks go as separate batches, because with one KV
// stream per sequence a mixed batch is split into more passes over the weights than the two. A decode batch has a row
// for each of its sequences, or some where tokens were forced, and draft tokens behind it; some may be rows of a
// prompt, where that keeps the slots adjacent.
struct Batch {
  enum class Kind { decode, prefill };

  Kind kind = Kind::decode;
  // Of all rows: one set at a time is applied to the model. Lives as long as the requests.
  const AdapterSet* adapters = nullptr;
  // Before the rows, in this order. A batch may have no rows.
  std::vector<SlotSave> saves;
  std::vector<SlotId> trims;  // slots to be emptied
  std::vector<SlotReuse> reuses;
  std::vector<SlotRestore> restores;
  std::vector<SlotMove> moves;
  std::vector<SlotShift> shifts;  // only in a batch with rows, and not when a restore has failed
  std::vector<Row> rows;          // ascending slots; positions of a slot ascending
  std::vector<BatchPart> parts;   // in the order of rows
  // What all rows are places of, in a batch of one part, which lives as long as the request; null: rows are of tokens.
  const MediaUnit* unit = nullptr;
  Drafting drafting;   // with it, draft tokens are still to be written into `rows`
  bool learn = false;  // the model's heads are to know of the rows, and of what the slots held before
  // So many rows at the end belong to no sequence. They are in free slots, which are emptied after the step, and bring
  // the batch to a size whose rows cost less.
  std::int32_t padding = 0;
  Duration predicted{};     // what the step is expected to take; zero when nothing is known
  Duration copying{};       // … and what comes before its rows: saves, restores and moves
  Duration stretch{};       // by how much it is planned to make a stream wait beyond its target
  std::int32_t passes = 1;  // over the weights, in which libllama computes the rows
  // Arrivals of this class, or of a more urgent one, cut the step: they would wait for its end for too long.
  static constexpr int kUncut = -1;
  int cut_by = kUncut;

  bool empty() const {
    return rows.empty() && saves.empty() && restores.empty() && trims.empty() && reuses.empty() && moves.empty();
  }
  // Rows that belong to no sequence, wherever they are.
  std::int32_t padding_rows() const {
    std::int32_t all = padding;
    for (const BatchPart& part : parts) all += part.padding;
    return all;
  }
  // Rows that belong to prompts; decode batches have some, too.
  std::int32_t prompt_rows() const {
    std::int32_t all = 0;
    for (const BatchPart& part : parts) {
      const auto prompt = static_cast<TokenCount>(part.request->prompt.size());
      all += std::clamp(prompt - rows[static_cast<std::size_t>(part.first_row)].position, 0, part.rows);
    }
    return all;
  }
  void clear() {
    saves.clear();
    trims.clear();
    reuses.clear();
    restores.clear();
    moves.clear();
    shifts.clear();
    adapters = nullptr;
    predicted = {};
    copying = {};
    stretch = {};
    passes = 1;
    cut_by = kUncut;
    padding = 0;
    rows.clear();
    parts.clear();
    unit = nullptr;
    drafting.clear();
    learn = false;
  }
};

enum class DecodeStatus {
  ok,
  aborted,  // cut through the abort callback; the model holds what it held before
  no_room,  // no cells: a bug in our ledger, see conservation
  failed,   // the backend gave up on this batch
};

// A token that was sampled for one part.
struct Sample {
  RequestId request;
  Token token = 0;
  std::string text;                  // may be empty while a character or a possible stop string is held back
  std::vector<TokenChance> chances;  // see Event
  bool forced = false;               // not sampled: nothing else could come
  bool computed = false;             // a draft token of the batch, so that its row is there already
  bool end_of_generation = false;    // the model's own, or one of Request::stop_tokens
  bool time_is_up = false;           // Request::predict_limit
  bool outdented = false;            // Request::indent_min; text ends before the line
  bool stopped = false;              // a stop string matched; text ends before it
  std::string stop_string;

  bool ends() const { return end_of_generation || time_is_up || outdented || stopped; }
};

// How likely tokens of a prompt were, see Event.
struct PromptChances {
  TokenCount from = 0;  // place of the first in the prompt
  std::vector<std::vector<TokenChance>> chances;
};

struct BatchResult {
  DecodeStatus status = DecodeStatus::ok;
  // For each part with `samples`, in the order of parts: one, and one more for each accepted draft token, until one
  // ends the answer; and what a grammar forces behind each of them.
  std::vector<Sample> samples;
  // … but for these, in the same order, whose first token waits for the mask of a grammar: rows_put_off() of each
  // part have been forgotten, and are to be computed again.
  std::vector<RequestId> put_off;
  std::vector<PromptChances> prompts;     // one for each part that tells
  std::vector<KvSnapshotPtr> snapshots;   // one per save; null where the model could not
  std::vector<std::size_t> not_restored;  // indexes into Batch::restores; then the status is `aborted`
  Duration saving{};                      // all saves together
  Duration restoring{};                   // … and all restores
  TimePoint finished{};
  Duration compute{};                   // llama_decode alone
  Duration encoding{};                  // before it, of Batch::unit
  bool encoded = false;                 // … which had not been encoded before
  Duration cpu{};                       // processor time of the process since the last batch that was computed
  std::optional<double> joules;         // … and energy, where the machine tells
  bool drafted = false;                 // the draft model has done what it was to do
  Duration drafting{};                  // … and took so long for its draft tokens
  Duration draft_reading{};             // … and for what it had to compute first
  Duration learning{};                  // of heads
  Duration constraining{};              // what grammars and chains of samplers took, all together
  std::int32_t constrained_tokens = 0;  // … for so many tokens, those that were put off among them

  void clear() {
    status = DecodeStatus::ok;
    samples.clear();
    put_off.clear();
    prompts.clear();
    snapshots.clear();
    not_restored.clear();
    saving = {};
    restoring = {};
    compute = {};
    encoding = {};
    encoded = false;
    cpu = {};
    joules.reset();
    drafted = false;
    drafting = {};
    draft_reading = {};
    learning = {};
    constraining = {};
    constrained_tokens = 0;
  }
};

// To be called when a step has been committed: as long as they last, what it copied cannot leave the prefix cache.
inline void end_leases(Batch& batch, BatchResult& result) {
  for (SlotRestore& restore : batch.restores) restore.snapshot.reset();
  result.snapshots.clear();
}

}  // namespace chasqui
