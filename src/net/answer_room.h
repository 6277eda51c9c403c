// How much memory whole answers take that clients have not read yet: of all connections, and of each owner, so that one
// who does not read cannot take what the others' answers need. Streams are not counted: what they have unread is
// bounded by itself. Loop thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace chasqui::net {

// Who is answered. Owners are tenants; 0 stands for all who have no key.
struct AnswerOwner {
  std::uint32_t id = 0;
  bool alone = false;  // there is no other one to be protected from it
};

class AnswerRoom {
 public:
  explicit AnswerRoom(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // False: there is no room now. Answers up to kSmall always have it, and so has one where nothing else is held.
  bool take(const AnswerOwner& owner, std::size_t bytes) {
    if (bytes == 0) return true;
    const auto found = by_owner_.find(owner.id);
    const std::size_t own = found != by_owner_.end() ? found->second : 0;
    const std::size_t own_max = owner.alone ? bytes_max_ : bytes_max_ / kShare;
    const bool fits = (total_ == 0 || total_ + bytes <= bytes_max_) && (own == 0 || own + bytes <= own_max);
    if (bytes > kSmall && !fits) return false;
    by_owner_[owner.id] += bytes;
    total_ += bytes;
    return true;
  }

  void give_back(const AnswerOwner& owner, std::size_t bytes) {
    if (bytes == 0) return;  // nothing was noted, and the owner may hold nothing
    const auto own = by_owner_.find(owner.id);
    own->second -= bytes;
    if (own->second == 0) by_owner_.erase(own);
    total_ -= bytes;
  }

  std::size_t bytes() const { return total_; }

  static constexpr std::size_t kSmall = 64 * 1024;
  static constexpr std::size_t kShare = 4;  // a fourth of all for each owner that is not alone

 private:
  const std::size_t bytes_max_;
  std::size_t total_ = 0;
  std::map<std::uint32_t, std::size_t> by_owner_;  // those who hold something
};

}  // namespace chasqui::net
