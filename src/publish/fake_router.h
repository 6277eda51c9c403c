// A router of the tests: reads batches as those do, with a reader of MessagePack of its own, and keeps an index of
// blocks by the tokens before and in them.
#pragma once

#include <bit>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cache/holding_log.h"
#include "publish/kv_channel.h"

namespace chasqui::publish {

class MsgpackReader {
 public:
  explicit MsgpackReader(std::string_view bytes) : rest_(bytes) {}

  bool done() const { return rest_.empty(); }
  bool nil() {
    if (peek() != 0xC0) return false;
    take(1);
    return true;
  }
  std::uint64_t number() {
    const unsigned head = byte();
    if (head < 128) return head;
    EXPECT_TRUE(head >= 0xCC && head <= 0xCF) << head;
    return big_endian(1u << (head - 0xCC));
  }
  double real() {
    EXPECT_EQ(byte(), 0xCBU);
    return std::bit_cast<double>(big_endian(8));
  }
  std::size_t array() {
    const unsigned head = byte();
    if (head >> 4 == 9) return head & 15;
    EXPECT_TRUE(head == 0xDC || head == 0xDD) << head;
    return big_endian(head == 0xDC ? 2 : 4);
  }
  std::string text() {
    const unsigned head = byte();
    if (head >> 5 == 5) return std::string(take(head & 31));
    EXPECT_TRUE(head >= 0xD9 && head <= 0xDB) << head;
    return std::string(take(big_endian(1u << (head - 0xD9))));
  }

 private:
  unsigned peek() const { return rest_.empty() ? 0 : static_cast<unsigned char>(rest_.front()); }
  unsigned byte() { return static_cast<unsigned char>(take(1).front()); }
  std::string_view take(std::size_t bytes) {
    if (bytes > rest_.size()) throw std::out_of_range("the batch is cut");
    const std::string_view out = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return out;
  }
  std::uint64_t big_endian(std::size_t bytes) {
    std::uint64_t out = 0;
    for (const char each : take(bytes)) out = out << 8 | static_cast<unsigned char>(each);
    return out;
  }

  std::string_view rest_;
};

class FakeRouter {
 public:
  using Prefix = std::vector<Token>;  // whole blocks

  std::uint64_t next = 0;  // the batch it waits for
  std::size_t cleared = 0;

  void read(const KvBatch& batch) {
    EXPECT_EQ(batch.number, next++);
    MsgpackReader in(*batch.payload);
    EXPECT_EQ(in.array(), 3U);
    in.real();
    for (std::size_t events = in.array(); events > 0; --events) read_event(in);
    EXPECT_EQ(in.number(), 0U);
    EXPECT_TRUE(in.done());
  }
  void read(const std::vector<KvBatch>& batches) {
    for (const KvBatch& batch : batches) read(batch);
  }

  // Of the model, or of one of its adapters.
  std::set<Prefix> prefixes(const std::string& medium = "GPU", const std::string& adapter = {}) const {
    std::set<Prefix> out;
    for (const auto& [hash, block] : known_) {
      if (held_.contains({hash, medium}) && block.adapter == adapter) out.insert(block.prefix);
    }
    return out;
  }

 private:
  struct Block {
    Prefix prefix;
    std::string adapter;
  };

  void read_event(MsgpackReader& in) {
    const std::size_t members = in.array();
    const std::string tag = in.text();
    if (tag == "AllBlocksCleared") {
      EXPECT_EQ(members, 1U);
      held_.clear();
      known_.clear();
      ++cleared;
      return;
    }
    std::vector<std::uint64_t> hashes(in.array());
    for (std::uint64_t& hash : hashes) hash = in.number();
    if (tag == "BlockRemoved") {
      EXPECT_EQ(members, 3U);
      const std::string medium = in.text();
      for (const std::uint64_t hash : hashes) EXPECT_EQ(held_.erase({hash, medium}), 1U) << "it is not there";
      return;
    }
    EXPECT_EQ(tag, "BlockStored");
    EXPECT_EQ(members, 8U);
    Prefix prefix;
    if (!in.nil()) {
      const std::uint64_t parent = in.number();
      EXPECT_TRUE(known_.contains(parent)) << "a block before it is told first";
      prefix = known_[parent].prefix;
    }
    std::vector<Token> tokens(in.array());
    for (Token& token : tokens) token = static_cast<Token>(in.number());
    EXPECT_EQ(tokens.size(), hashes.size() * kHeldBlock);
    EXPECT_EQ(in.number(), 64U);
    EXPECT_TRUE(in.nil());
    const std::string medium = in.text();
    const std::string adapter = in.nil() ? std::string() : in.text();
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(i * kHeldBlock);
      prefix.insert(prefix.end(), begin, begin + kHeldBlock);
      const auto known = known_.emplace(hashes[i], Block{prefix, adapter}).first;
      EXPECT_EQ(known->second.prefix, prefix) << "one hash stands for one prefix";
      EXPECT_TRUE(held_.insert({hashes[i], medium}).second) << "it is told twice";
    }
  }

  std::map<std::uint64_t, Block> known_;  // by hash, also what has gone
  std::set<std::pair<std::uint64_t, std::string>> held_;
};

}  // namespace chasqui::publish
