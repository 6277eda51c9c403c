// Which tool each call of a conversation is of, by the calls' ids, for the results that come later and name only those.
// Owned by what reads one body, in the offload pool. Ordered, not hashed: a client chooses the ids, and could choose
// thousands that share a bucket.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace chasqui {

class ToolCallNames {
 public:
  // Of several calls with one id the last one counts.
  void add(std::string_view id, std::string_view name) { names_.insert_or_assign(std::string(id), std::string(name)); }

  // Empty where there is no such call.
  std::string of(std::string_view id) const {
    const auto found = names_.find(id);
    return found != names_.end() ? found->second : std::string();
  }

 private:
  std::map<std::string, std::string, std::less<>> names_;
};

}  // namespace chasqui
