// A fast checksum of 128 bits (XXH3): finds every accident and no ill will, since an attacker who can change the bytes
// can also compute it anew. The same on every machine. Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

namespace chasqui {

using Checksum = std::array<std::byte, 16>;

Checksum checksum(std::span<const std::byte> bytes);

// The same for bytes that come in pieces.
class Checksummer {
 public:
  Checksummer();
  ~Checksummer();
  Checksummer(Checksummer&&) noexcept;
  Checksummer& operator=(Checksummer&&) noexcept;

  void add(std::span<const std::byte> bytes);
  // Of everything that was added so far.
  Checksum result() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace chasqui
