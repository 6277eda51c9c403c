// Up to a handful of pieces of text that leave in one write; keeps track of what is still unsent. A constant buffer
// sequence for Asio. The text must outlive it. Has a constructor so that g++ 12 does not take it for an aggregate.
#pragma once

#include <array>
#include <boost/asio/buffer.hpp>
#include <cstddef>
#include <initializer_list>
#include <string_view>

#include "base/error.h"

namespace chasqui::net {

class SendBuffers {
 public:
  using value_type = boost::asio::const_buffer;
  using const_iterator = const value_type*;

  SendBuffers(std::initializer_list<std::string_view> pieces) {
    CHECK(pieces.size() <= pieces_.size());
    for (const std::string_view piece : pieces) {
      if (piece.empty()) continue;
      pieces_[count_++] = value_type(piece.data(), piece.size());
      unsent_ += piece.size();
    }
  }

  const_iterator begin() const { return pieces_.data() + first_; }
  const_iterator end() const { return pieces_.data() + count_; }
  std::size_t unsent() const { return unsent_; }

  // The first `n` bytes are sent.
  void consume(std::size_t n) {
    unsent_ -= n;
    while (n > 0) {
      value_type& piece = pieces_[first_];
      const std::size_t part = n < piece.size() ? n : piece.size();
      piece += part;
      n -= part;
      if (piece.size() == 0) ++first_;
    }
  }

 private:
  std::array<value_type, 4> pieces_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::size_t unsent_ = 0;
};

}  // namespace chasqui::net
