// One client's request from its first try to its end, as the simulation knows it, and the table of all that have not
// ended. A record is used again after its end, so that a million requests need the memory of those alive at once.
// Owned by the simulation; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/request.h"
#include "engine/admission.h"
#include "sim/workload.h"

namespace chasqui {

struct Fifo;

struct SimRequest {
  std::uint32_t place = 0;   // in the table
  std::uint64_t serial = 0;  // which request of the workload, from 1; 0: none
  PlannedRequest plan;
  std::uint32_t client = 0;  // whose it is, when their number is fixed
  std::uint32_t worker = 0;  // that has it, once it is accepted
  TimePoint first_try{};
  TimePoint let_in{};  // the try that was accepted
  std::int32_t tries = 0;
  bool accepted = false;  // the scheduler has it

  Permit permit;                // of the try that was accepted
  RequestPtr request;           // of the try that was accepted
  std::uint64_t history = 0;    // hash of the prompt and of all tokens so far
  TokenCount known = 0;         // how many tokens that is
  TokenCount generated = 0;     // sampled by the model
  TokenCount said = 0;          // … and told in events
  TokenCount cached = 0;        // of its prompt; known at its end
  std::uint64_t said_text = 0;  // hashes of the text that the model gave and of the text in events
  std::uint64_t told_text = 0;
  SlotId slot;               // where the model holds rows of it; none: nowhere
  bool decoding = false;     // a token was sampled since its rows were last lost
  bool started = false;      // a row of it was computed
  std::uint64_t rows = 0;    // of it, also those that were computed again
  bool has_started = false;  // it had a slot
  TimePoint slot_since{};    // … when it got its latest
  std::int32_t passed = 0;   // younger requests of its kind that had one before it
  bool leaves = false;       // the client has gone, a cancel was sent
  bool failed = false;       // its last batch failed
  std::int32_t preempted = 0;
  std::uint64_t last_row_step = 0;
  TimePoint last_row_at{};

  TimePoint first_token{};
  TimePoint last_token{};
  Duration longest_gap{};

  // The list of the watch in which it stands.
  Fifo* fifo = nullptr;
  SimRequest* before = nullptr;
  SimRequest* after = nullptr;
};

class SimRequestTable {
 public:
  // Addresses stay what they are until give_back().
  SimRequest& take();
  void give_back(SimRequest& life);

  // The id of a try: ascending, and leads back to the record in one step.
  RequestId new_id(const SimRequest& life) { return RequestId{(++ids_ << kPlaceBits) | life.place}; }
  // Null when the request has ended or never was.
  SimRequest* find(RequestId id) {
    const std::uint64_t place = id.value & ((1ull << kPlaceBits) - 1);
    if (place >= size_) return nullptr;
    SimRequest& life = at(static_cast<std::uint32_t>(place));
    return life.accepted && life.request->id == id ? &life : nullptr;
  }
  // REQUIRES: place < the number of records
  SimRequest& at(std::uint32_t place) { return chunks_[place >> kChunkBits][place & (kChunk - 1)]; }
  std::size_t living() const { return size_ - free_.size(); }

 private:
  static constexpr int kPlaceBits = 24;
  static constexpr int kChunkBits = 10;
  static constexpr std::uint32_t kChunk = 1u << kChunkBits;

  std::vector<std::unique_ptr<SimRequest[]>> chunks_;
  std::vector<std::uint32_t> free_;
  std::uint32_t size_ = 0;
  std::uint64_t ids_ = 0;
};

}  // namespace chasqui
