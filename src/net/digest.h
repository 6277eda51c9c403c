// A checksum of bytes that come piece by piece: SHA-256, and SHA-1 for what git has named by it. Its owner feeds it;
// one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace chasqui::net {

class Digest {
 public:
  enum class Kind { sha256, sha1 };

  explicit Digest(Kind kind);
  ~Digest();
  Digest(Digest&& other) noexcept;
  Digest& operator=(Digest&& other) noexcept;

  void add(std::string_view bytes);
  // In small letters. Nothing can be added afterwards.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace chasqui::net
